"""What is made of the notebooks: fresh, without answers, and running as far as there are answers."""

import json
import posixpath
import re
from pathlib import Path

import nbformat
import pytest
from prose import Prose
from tables import tabled

from kafka_ctl.errors import BadInput
from kafka_ctl.exercises.exercise import PictureGuess
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.jupyter.launch import served_folder
from kafka_ctl.paths import ROOT
from kafka_ctl_course import EXERCISES, GUESSES
from tools import editions, notebooks
from tools.notebooks.__main__ import main

LESSONS = notebooks.lessons()

NEEDED = re.compile(r"\*You need\* ([^.;]*)")
"""What a lesson says that it needs."""

every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def test_what_is_made_is_fresh() -> None:
    assert editions.stale() == [], "python -m tools.notebooks editions"


def test_what_is_stale_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """And made anew, with both editions, by the same command."""
    page = editions.README.read_text("utf-8")
    for name, place in (
        ("README", "README.md"),
        ("STARTER", "starter"),
        ("TEACHING", "instructor"),
        ("START", "0.ipynb"),
    ):
        monkeypatch.setattr(editions, name, tmp_path / place)
    editions.README.write_text(page.replace("](05-", "](04-"), "utf-8")
    editions.START.write_text(notebooks.START.read_text("utf-8"), "utf-8")
    assert main(["editions", "--check"]) == 1
    reported = capsys.readouterr().err
    assert "README.md is stale" in reported and "0.ipynb" not in reported
    assert main(["editions"]) == main(["editions", "--check"]) == 0
    assert editions.README.read_text("utf-8") == page
    names = [path.name for path in LESSONS]
    assert [path.name for path in sorted((tmp_path / "instructor").glob("*.ipynb"))] == names


@tabled
def test_dots_take_the_place_of_answers(source: str, made: str) -> None:
    assert editions.dotted(source) == made


def test_an_exercise_needs_something_to_answer() -> None:
    with pytest.raises(BadInput, match="without an answer"):
        editions.dotted("# nothing")


@every_lesson
def test_nothing_in_a_starter_gives_an_answer_away(path: Path) -> None:
    """No output, no note for instructors, and nothing of an answer's cell but what stays."""
    book = notebooks.read(path)
    made = editions.starter(book)
    cells = {cell.id: cell for cell in made.cells}
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in made.cells)
    assert not notebooks.tagged(made, notebooks.INSTRUCTOR)
    for name, cell in notebooks.tagged(book, notebooks.EXERCISE).items():
        call = editions.CHECK.search(cell.source)
        assert call is not None and ("..." in cells[name].source) != isinstance(EXERCISES[call["name"]], Repair)
        assert cells[name].source == editions.begun(cell.source) != cell.source


@every_lesson
def test_links_of_an_edition_lead_somewhere(path: Path) -> None:
    book, start = notebooks.read(path), notebooks.read(notebooks.START)
    made = {editions.STARTER: editions.starter(book), editions.TEACHING: editions.instructor(book, path.name[:2])}
    for folder, each in [*made.items(), (notebooks.NOTEBOOKS, book), (notebooks.NOTEBOOKS, start)]:
        for cell in each.cells:
            for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", cell.source if cell.cell_type == "markdown" else ""):
                target = Path(folder, link).resolve()
                source = notebooks.NOTEBOOKS / target.name if target.parent in made else target
                assert link.startswith("https://") or source.exists(), f"{path.name}: {link}"


def test_links_of_a_copy_of_the_course_stay_in_it() -> None:
    """Each leads to a file of the copy; of one that the copy does not have, the name is left."""
    files = editions.course()
    for place, whole in files.items():
        cells = json.loads(whole)["cells"] if place.endswith(".ipynb") else [{"cell_type": "markdown", "source": whole}]
        for cell in cells if place.endswith((".ipynb", ".md")) else []:
            prose = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for link in re.findall(r"\]\((?!https?://|#)([^)\s#]+)", re.sub(r"(?s)```.*?```", "", prose)):
                assert posixpath.normpath(f"{place}/../{link}") in files, f"{place}: {link}"
    index, lesson = files["docs/README.md"], files["notebooks/starter/01-electing-a-controller.ipynb"]
    assert "[lesson 01](../notebooks/starter/01-electing-a-controller.ipynb)" in index
    assert "[election](../tests/traces/election.txt)" in index and "- The first story, in" in index
    assert "here `kafka_ctl/controller/failover.py`." in lesson and "](../../docs/glossary.md)" in lesson


@every_lesson
def test_a_link_to_a_step_has_its_mark(path: Path) -> None:
    """Each that the prose names is a mark of a player, and no mark is without a link; the first lesson has some."""
    cells = notebooks.read(path).cells
    links = {name for c in cells if c.cell_type == "markdown" for name in re.findall(r"\(#step-([\w-]+)\)", c.source)}
    marks = re.findall(
        r"marks = \{(.*?)\}|marks=\{(.*?)\}", "\n".join(c.source for c in cells if c.cell_type == "code")
    )
    assert links == {name for pair in marks for text in pair for name in re.findall(r'"([\w-]+)":', text)}
    assert links or not path.name.startswith("01-")


@every_lesson
def test_the_minutes_of_the_sections_are_those_of_the_lesson(path: Path) -> None:
    book = notebooks.read(path)
    found = [int(each[2]) for cell in book.cells for each in editions.MINUTES.finditer(cell.source)]
    assert sum(found) == book.metadata.lesson.minutes + book.metadata.lesson.exercises


def test_the_instructors_edition_has_a_plan_and_the_hints() -> None:
    source = notebooks.read(ROOT / "notebooks" / "05-electing-leaders.ipynb")
    book = editions.instructor(source, "05")
    assert [cell.source for cell in book.cells if cell.cell_type == "code"] == [
        cell.source for cell in source.cells if cell.cell_type == "code"
    ]
    text = "\n".join(cell.source for cell in book.cells)
    assert "| 0 to 4 | One rule" in text and "**For instructors.**" in text
    assert all(hint in text for hint in EXERCISES["05.2"].hints)
    assert {cell.metadata.slideshow.slide_type for cell in book.cells} == {"slide", "notes", "-"}


def test_slides_and_summary_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made from what the source shows; a summary needs nothing from outside."""
    monkeypatch.setattr(editions, "lessons", lambda: [ROOT / "notebooks" / "05-electing-leaders.ipynb"])
    editions.write_slides(tmp_path)
    slides = (tmp_path / "05-electing-leaders.slides.html").read_text("utf-8")
    assert slides.count("<section") > 10 and "data:image/svg+xml" in slides
    summary = (tmp_path / "05-electing-leaders.summary.html").read_text("utf-8")
    assert "<h2>Summary</h2>" in summary and "<script" not in summary and len(summary) < 10_000


def test_the_start_page_maps_every_lesson() -> None:
    text = "\n".join(cell.source for cell in notebooks.read(notebooks.START).cells)
    assert all(f"(starter/{path.name})" in text for path in LESSONS)
    assert all(f"**{name}**" in text for name in editions.ROUTES)
    assert "On GitHub" in text and "(README.md)" in text


@pytest.mark.parametrize(("name", "hours"), [("One hour", 1), ("Half a day", 4.5), ("Three days", 24)])
def test_a_route_takes_as_long_as_its_name_says(name: str, hours: float) -> None:
    lessons = [notebooks.read(path).metadata.lesson for path in LESSONS if _is_on(path, editions.ROUTES[name])]
    assert 0.55 * hours <= sum(each.minutes + each.core for each in lessons) / 60 <= hours


def test_a_route_has_the_lessons_that_its_lessons_need() -> None:
    """Each before the lesson that needs it; behind a semicolon stands what helps."""
    needed = {path.name[:2]: NEEDED.findall(notebooks.read(path).cells[0].source) for path in LESSONS}
    needs = {number: re.findall(r"\b\d\d\b", text) for number, (text,) in needed.items()}
    assert sum(map(bool, needs.values())) == len(LESSONS) - 1
    for name, route in editions.ROUTES.items():
        taken = route or tuple(needs)
        for place, number in enumerate(taken):
            assert {*needs[number]} <= {*taken[:place]}, f"{name}: lesson {number}"


def _is_on(path: Path, route: tuple[str, ...] | None) -> bool:
    return route is None or path.name[:2] in route


def test_operators_learn_what_costs_them() -> None:
    """Leaders that do not return after restarts, and what an acknowledgement is worth."""
    assert {"06", "08", "15", "04"} <= {*(editions.ROUTES["Operators"] or ())}


def test_a_lesson_says_its_question(prose: Prose) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A title")])
    prose.refuses(BadInput, editions.lesson, Path("99-x.ipynb"), book)


@every_lesson
def test_guesses_and_exercises_of_a_notebook_are_its_own(path: Path) -> None:
    """All of the lesson's, each once and in order."""
    text = "\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "code")
    for found, known in (
        (re.findall(r'GuessWidget\("([^"]+)"\)', text), GUESSES),
        (re.findall(r'check\("([^"]+)"', text), EXERCISES),
    ):
        assert found == [name for name in known if name.startswith(path.name[:2])]


@pytest.mark.parametrize("name", GUESSES)
def test_a_guess_can_be_wrong(name: str) -> None:
    guess = GUESSES[name]
    if isinstance(guess, PictureGuess):
        assert len(guess.hints) >= 2 and guess.why and guess.question.endswith("?")
        return
    assert 3 <= len(guess.options) <= 5 and 0 <= guess.right < len(guess.options)
    assert all(reported for _, reported in guess.options)
    assert len({option for option, _ in guess.options}) == len(guess.options)


def test_the_lab_of_a_checkout_makes_the_starters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """One that a learner has changed stays, and is named once for each newer edition."""
    monkeypatch.setattr(editions, "STARTER", tmp_path / "starter")
    monkeypatch.setattr(editions, "lessons", lambda: LESSONS[:2])
    assert served_folder() == ROOT
    first, second = (tmp_path / "starter" / path.name for path in LESSONS[:2])
    assert second.read_text("utf-8") == editions.text(editions.starter(notebooks.read(LESSONS[1])))
    first.write_text("mine")
    assert served_folder() == ROOT and capsys.readouterr().out == ""
    monkeypatch.setattr(editions, "starter", lambda book: book)
    assert served_folder() == served_folder() == ROOT
    assert first.read_text() == "mine" and second.read_text("utf-8") == LESSONS[1].read_text("utf-8")
    reported = capsys.readouterr().out
    assert reported.count(first.name) == 1 and second.name not in reported


def test_starters_that_were_edited_are_restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the button of the start page too; what they were is kept."""
    from kafka_ctl.exercises import progress_file
    from kafka_ctl.jupyter.exercises import ProgressWidget

    monkeypatch.setattr(editions, "STARTER", tmp_path / "starter")
    monkeypatch.setattr(editions, "lessons", lambda: LESSONS[:2])
    monkeypatch.setenv(progress_file.FOLDER, str(tmp_path / "data"))
    first, second = (tmp_path / "starter" / path.name for path in LESSONS[:2])
    assert editions.restore(None) == [first.name, second.name]
    fresh = first.read_text("utf-8")
    assert fresh == editions.text(editions.starter(notebooks.read(LESSONS[0])))
    first.write_text("mine")
    widget = ProgressWidget()
    widget.button.click()
    widget.sure.click()
    assert f"Restored: {first.name}." in widget.reply.value and first.read_text("utf-8") == fresh
    assert (tmp_path / "data" / "starters" / first.name).read_text() == "mine"
    widget.sure.click()
    assert "had to be restored" in widget.reply.value
    widget.close()
