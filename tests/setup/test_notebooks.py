"""The notebooks as a reader finds them: their measure, what is saved in them, their pictures, their exercises."""

import ast
import re
import statistics
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from kafka_ctl.exercises.repair import Repair
from kafka_ctl.jupyter.launch import FIRST
from kafka_ctl.paths import ROOT
from kafka_ctl_course import EXERCISES
from tools import notebooks
from tools.notebooks import minutes
from tools.notebooks.__main__ import main

PATHS = notebooks.lessons()
CELLS, WORDS, MINUTES = 35, 1000, 30
PICTURES = {"image/svg+xml", "image/png"}
DRAWN = re.compile(
    r"\.player\(|plots\.|^(walk|logs|beliefs|shares|lanes|CurveWidget|MessageWidget|TurnWidget|message_bytes|broker_identity"
    r"|copies_over_time|as_one_log|grid|placement|deletion|reassignment|lists|throttles)\(|^mine$",
    re.MULTILINE,
)
"""What draws a picture."""
SILENT = {"settle", "step", "start", "stop", "close", "kill", "run_for", "create_topic", "check"}
"""What returns nothing, or prints only in the end."""

QUANTITY = re.compile(
    r"(?<![\w.,/-])(\d[\d,]*(?:\.\d+)?)(?= (?:ms|s|seconds|minutes|records|requests|operations|bytes|partitions)\b|%)"
    r"|\*\*(\d[\d,]*(?:\.\d+)?)(?![\d.]*\.)\b"
)
"""A number in prose that a run can confirm: with its unit, or bold; not the number of an exercise."""
FROM_OUTSIDE = {
    "02": (6.5, 11.5),  # after the kill: 6 s of the session, and what was run since
    "06": (2.5, 5000, 60_000, 30),  # constants of Kafka's ReplicaManager at its tag; a case that is not run
    "08": (15.1,),  # of its section on shutdowns that cannot succeed
    "14": (250,),  # a cost of the lab
    "11": (10,),  # replica.lag.time.max.ms, lesson 06
    "15": (2500,),  # an example
    "16": (100_000, 63, 17),  # published: apache/kafka#3765
    "04": (500,),  # replica.fetch.wait.max.ms
    "26": (15,),  # of lesson 04
    "18": (200_000, 30),  # an example, computed; request.timeout.ms
    "25": (10, 100),  # leader.imbalance.per.broker.percentage; a share by its definition
    "13": (17,),  # what one would expect
    "24": (0.2, 17, 32, 37, 51, 63, 64.8, 135, 503, 275_000),  # published, the source beside it; a cost of the lab
}
"""By lesson the quantities of its prose that no cell of the section computes."""
AT_A_TAG = re.compile(r"https://github\.com/apache/kafka/blob/\d+\.\d+\.\d+[^)\s]*/")

every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
every_file = pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.stem)


@cache
def read(path: Path) -> NotebookNode:
    """A notebook, which the tests share: they change copies only."""
    return nbformat.read(path, as_version=4)


def code(book: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def lengths(book: NotebookNode) -> list[int]:
    return [len(cell.source.splitlines()) for cell in code(book)]


def shows(cell: NotebookNode) -> bool:
    """Whether a cell is meant to show something: it prints, or its last line is a value."""
    body = ast.parse(cell.source).body
    names = {node.id for node in ast.walk(ast.Module(body, [])) if isinstance(node, ast.Name)}
    last = body[-1]
    if not isinstance(last, ast.Expr):
        return "print" in names
    called = last.value.func if isinstance(last.value, ast.Call) else None
    return "print" in names or getattr(called, "attr", getattr(called, "id", None)) not in SILENT


def has_picture(cell: NotebookNode) -> bool:
    return any(PICTURES & set(output.get("data", {})) for output in cell.outputs)


def test_there_is_one() -> None:
    """And the first is where the command `lab` expects it."""
    assert PATHS and notebooks.START.exists()
    assert ROOT / FIRST == notebooks.START


def measure(path: Path) -> tuple[int, int]:
    """The cells of a lesson and the words of its prose, without the notes for instructors."""
    book = read(path)
    return sum(notebooks.INSTRUCTOR not in notebooks.tags(cell) for cell in book.cells), minutes.words(book)


@every_notebook
def test_a_lesson_is_short(path: Path) -> None:
    """At most 35 cells, 1,000 words and 30 minutes of story."""
    cells, words = measure(path)
    assert cells <= CELLS and words <= WORDS
    assert 20 <= read(path).metadata.lesson.minutes <= MINUTES


@every_notebook
def test_the_minutes_are_those_of_the_formula(path: Path) -> None:
    """In the first cell, the headings, the exercises' heads and the metadata: `python -m tools.notebooks minutes`."""
    book = read(path)
    assert minutes.write(deepcopy(book), path.name[:2]) == book


def test_minutes_grow_with_what_is_read_and_done() -> None:
    """Words, lines of code, guesses, pictures; not what is folded, nor what only instructors see."""
    picture = [nbformat.v4.new_output("display_data", {"image/png": ""})]
    text = [nbformat.v4.new_output("stream", name="stdout", text="7")]
    new, prose = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    cells = {
        60: prose("a word " * 90),
        8: new("x = 1"),
        43: new('GuessWidget("01.a")', outputs=text),
        48: new("beliefs()", outputs=picture),
        98: new("lab.player()", outputs=picture),
    }
    assert [minutes.seconds(cell) for cell in cells.values()] == list(cells)
    for tag in ("hide-input", notebooks.EXERCISE, notebooks.INSTRUCTOR):
        assert minutes.seconds(new("x = 1", metadata={"tags": [tag]})) == (8 if tag == notebooks.INSTRUCTOR else 0)
    assert minutes.seconds(prose("a word", metadata={"tags": [notebooks.INSTRUCTOR]})) == 0


@every_notebook
def test_two_exercises_are_the_core(path: Path) -> None:
    """As the heads of the exercises say."""
    found = [each for name, each in EXERCISES.items() if name.startswith(path.name[:2])]
    text = "\n".join(cell.source for cell in read(path).cells)
    kinds = re.findall(r"^\*\*\d\. .+?\*\* \*(Core|Stretch), \d+ min\.\*", text, re.MULTILINE)
    assert kinds == ["Core" if each.core else "Stretch" for each in found] and kinds.count("Core") == 2


@every_notebook
def test_code_comes_in_small_portions(path: Path) -> None:
    """At most 15 lines where they are not folded, and half of all cells prose."""
    book = deepcopy(read(path))
    book.cells = [cell for cell in book.cells if notebooks.INSTRUCTOR not in notebooks.tags(cell)]
    sizes = lengths(book)
    assert 0.4 <= 1 - len(sizes) / len(book.cells) <= 0.6
    book.cells = [cell for cell in book.cells if "hide-input" not in notebooks.tags(cell)]
    assert statistics.median(sizes) <= 8 and max(lengths(book)) <= 15


def is_import(node: ast.stmt) -> bool:
    """Whether a statement imports, or names what must be installed for the imports that follow: `needs("spark")`."""
    return isinstance(node, ast.Import | ast.ImportFrom) or ast.unparse(node).startswith("needs(")


@every_notebook
def test_imports_are_in_one_cell_and_functions_in_the_package(path: Path) -> None:
    """One cell imports, nothing else, and in lesson 01 only the kit; one function that no learner writes or turns."""
    book = read(path)
    trees = {cell.id: ast.parse(cell.source) for cell in code(book)}
    importing = [
        name for name, tree in trees.items() if any(isinstance(n, ast.Import | ast.ImportFrom) for n in tree.body)
    ]
    assert len(importing) == 1
    assert all(is_import(node) for node in trees[importing[0]].body)
    lines = ast.unparse(trees[importing[0]]).splitlines()
    assert not path.name.startswith("01-") or all(line.startswith("from kafka_ctl") for line in lines)
    turned = {cell.id for cell in code(book) if "TurnWidget(" in cell.source}
    own = trees.keys() - notebooks.tagged(book, notebooks.EXERCISE).keys() - turned
    assert sum(isinstance(node, ast.FunctionDef) for name in own for node in ast.walk(trees[name])) <= 1


@every_notebook
def test_a_fact_is_asserted_now_and_then(path: Path) -> None:
    """What the prose says is checked where it is said."""
    cells = code(read(path))
    checked = [cell for cell in cells if "assert " in cell.source or "check(" in cell.source]
    assert len(checked) >= len(cells) / 5


@every_file
def test_set_up_and_assertions_are_folded(path: Path) -> None:
    """A cell of imports, or of nothing but assertions, is hidden by its tag and by what JupyterLab reads; no other."""
    for cell in code(read(path)):
        body = ast.parse(cell.source).body
        is_set_up = all(is_import(node) or isinstance(node, ast.Assert) for node in body)
        hidden = "hide-input" in notebooks.tags(cell), bool(cell.metadata.get("jupyter", {}).get("source_hidden"))
        assert hidden == (is_set_up, is_set_up), cell.source


def numbers(cells: list[NotebookNode]) -> set[float]:
    """Every number in the code of these cells, and in what it showed as text."""
    shown = [cell.source for cell in cells if cell.cell_type == "code"]
    shown += [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for cell in cells
        for output in cell.get("outputs", ())
    ]
    return {float(each) for each in re.findall(r"\d+(?:\.\d+)?", re.sub("[,_]", "", " ".join(shown)))}


def is_among(value: str, known: set[float]) -> bool:
    """Whether a number is one of these: as they are, rounded as it is, in seconds or milliseconds, or as a share."""
    digits, number = len(value.partition(".")[2]), float(value)
    return any(round(each * scale, digits) == number for each in known for scale in (1, 100, 1000, 0.001))


@every_notebook
def test_a_quantity_in_prose_is_what_its_section_computes(path: Path) -> None:
    """So a number in the text cannot become stale: nbval compares the outputs, and this the text with them."""
    book = read(path)
    sections: list[list[NotebookNode]] = []
    for cell in book.cells:
        if cell.source.startswith(("# ", "## ")) or not sections:
            sections.append([])
        if notebooks.INSTRUCTOR not in notebooks.tags(cell):
            sections[-1].append(cell)
    outside, everything = FROM_OUTSIDE.get(path.name[:2], ()), numbers(book.cells)
    wrong = []
    for section in sections:
        title = section[0].source.splitlines()[0]
        if title.startswith(("# ", "## The words", "## Exercises")):
            continue
        known = everything if title.startswith("## Summary") else numbers(section)
        for cell in section:
            for found in QUANTITY.finditer(cell.source if cell.cell_type == "markdown" else ""):
                value = (found[1] or found[2]).replace(",", "")
                if float(value) not in outside and not is_among(value, known):
                    wrong.append(f"{cell.id}: {cell.source[max(0, found.start() - 50) : found.end() + 10]}")
    assert wrong == []


@every_notebook
def test_a_lesson_has_what_every_lesson_has(path: Path) -> None:
    """Goal, guesses, times of its sections, sources, exercises, a summary, what to read next."""
    book = read(path)
    prose = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    sources = "\n".join(cell.source for cell in code(book))
    headings = re.findall(r"^## (.+)$", "\n".join(prose), re.MULTILINE)
    assert all(word in prose[0] for word in ("*You need*", "*Time*", "*Afterwards*"))
    assert [each for each in headings if each not in minutes.UNTIMED and not re.search(r" · \d+ min$", each)] == []
    assert headings[0].startswith(("The words", "Kill the controller"))
    assert headings[-2].startswith("Exercises") and headings[-1] == "Summary"
    assert "*Read next*" in prose[-1]
    assert sources.count("GuessWidget(") >= 3
    assert "](../kafka_ctl/" in "\n".join(prose) and AT_A_TAG.search("\n".join(prose))
    assert "**For instructors.**" in "\n".join(prose) and "](../docs/glossary.md)" in "\n".join(prose)


COMMAND = re.compile(r"`(?:\w[\w/.-]*\.sh|kafkacat|grep|echo|ls|kill|jconsole|kafka-ctl)\b[^`]*`")
"""What an operator types, as code."""
METRIC = re.compile(r"`(?:[A-Z][a-z]+){2,}`|`[a-z]+(?:-[a-z]+)*-max`")
"""The name of a gauge or a meter, as code."""


@every_notebook
def test_what_an_operator_types_stands_where_it_is_shown(path: Path) -> None:
    """A command and a metric in the cell after a run, and not in the summary."""
    cells = read_by_learners(path)
    at = [n for n, cell in enumerate(cells) if "**What an operator types.**" in cell.source]
    assert at
    assert all(cells[n - 1].cell_type == "code" for n in at)
    texts = [cells[n].source.partition("**What an operator types.**")[2].split("\n\n")[0] for n in at]
    assert all(COMMAND.search(text) and METRIC.search(text) for text in texts)


def read_by_learners(path: Path) -> list[NotebookNode]:
    return [c for c in read(path).cells if notebooks.INSTRUCTOR not in notebooks.tags(c)]


def test_lessons_begin_with_a_night_and_a_cluster_and_have_a_control() -> None:
    """A night in three lines, a cluster with one goal that a check judges, and a control that runs it again.

    Lesson 17 names the goal as rules below the picture, and in the last one each incident is a cluster.
    """
    without: dict[str, list[str]] = {"night": [], "cluster": [], "goal": [], "control": [], "new": []}
    for path in PATHS:
        cells = read_by_learners(path)
        night = cells[0].source.partition("\n\n")[2].partition("\n\n")[0]
        clusters = [c for c in cells[:5] if c.cell_type == "code" and c.source.endswith("\nmine")]
        goals = [c for c in cells[:5] if re.search(r'`check\("[\d.]+", mine\)`', c.source)]
        turned = [c for c in cells if "TurnWidget(" in c.source]
        returns = [c for c in cells if re.search(r"\blessons? \d\d.*\bnew here\b", c.source, re.IGNORECASE)]
        found = {"night": night.startswith("*"), "cluster": clusters, "goal": goals, "control": turned, "new": returns}
        for name, there in found.items():
            if not there:
                without[name].append(path.stem)
    assert without == {
        "night": [],
        "cluster": ["27-on-call"],
        "goal": ["17-the-bug-museum", "27-on-call"],
        "control": [],
        "new": ["01-electing-a-controller", "02-context-batches-metadata"],
    }


@every_notebook
def test_a_lesson_depends_on_no_other(path: Path) -> None:
    """It imports packages only, runs no other notebook, and reads no file but what it has written."""
    book = read(path)
    sources = "\n".join(cell.source for cell in code(book))
    assert not re.search(r"^[%!]|\.ipynb|open\(", sources, re.MULTILINE)
    named = re.findall(r"^(?:from|import) (\w+)", sources, re.MULTILINE)
    assert set(named) - set(sys.stdlib_module_names) <= {
        "kafka_ctl",
        "kafka_ctl_course",
        "pandas",
        "pyspark",
        "kafka",
        "kazoo",
    }


@every_file
def test_what_is_saved_is_a_run_from_top_to_bottom(path: Path) -> None:
    """All cells have run in order, without an error; what shows something has shown it."""
    cells = code(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert len(outputs) >= len(cells) / 4
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert [cell.source for cell in cells if shows(cell) and not cell.outputs] == []


@every_file
def test_what_is_saved_has_nothing_that_changes(path: Path) -> None:
    """Cleaning it again changes nothing."""
    book = read(path)
    assert nbformat.writes(notebooks.clean(deepcopy(book))) + "\n" == path.read_text("utf-8")


@pytest.fixture(scope="module")
def exporter() -> Any:
    """One for all notebooks: each reads its templates anew."""
    from nbconvert import HTMLExporter

    return HTMLExporter()


@every_notebook
def test_every_picture_is_there_without_javascript(path: Path, exporter: Any) -> None:
    """As an image in the file, and as an image in a page that is made from it without the widgets' state."""
    book = read(path)
    drawn = [cell for cell in code(book) if DRAWN.search(cell.source)]
    assert len(drawn) >= 4
    assert [cell.source for cell in drawn if not has_picture(cell)] == []
    body, _ = exporter.from_notebook_node(book)
    assert body.count('src="data:image/') + body.count("<svg aria-label=") >= len(drawn)
    assert "widget-view+json" not in body


@every_notebook
def test_a_player_tells_its_steps_as_text_too(path: Path) -> None:
    players = [cell for cell in code(read(path)) if ".player(" in cell.source]
    assert players
    for cell in players:
        (output,) = cell.outputs
        assert len(output.data["text/plain"].splitlines()) > 2


@every_notebook
def test_a_player_opens_at_a_step_that_the_lesson_names(path: Path) -> None:
    """It gives an index; an incident of lesson 27 is drawn from a seed, so its text names no step."""
    calls = [
        node
        for cell in code(read(path))
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".player")
    ]
    assert calls
    without = [ast.unparse(call) for call in calls if "index" not in {word.arg for word in call.keywords}]
    assert without == [] or path.stem == "27-on-call"


@every_notebook
def test_every_exercise_is_answered_rightly(path: Path) -> None:
    """Three to five of them; in the source nothing is left open or wrong."""
    book = read(path)
    assert 3 <= len(notebooks.tagged(book, notebooks.EXERCISE)) <= 5
    checked = [cell for cell in code(book) if "check(" in cell.source]
    assert len(checked) >= 3
    for cell in checked:
        reported = "".join(output.text for output in cell.outputs)
        assert reported.startswith("Right. ") and "Not yet. " not in reported and "No answer yet" not in reported


@every_notebook
def test_a_repair_is_no_look_up(path: Path) -> None:
    """Before its answer neither its ticket is named nor the museum linked, which says how it was fixed."""
    before = ""
    for cell in read(path).cells:
        asked = EXERCISES.get("".join(re.findall(r'check\("([\d.]+)", \w+\)\Z', cell.source)))
        if isinstance(asked, Repair):
            assert asked.ticket not in before and "museum.md" not in before, asked.name
        before += cell.source if notebooks.INSTRUCTOR not in notebooks.tags(cell) else ""


def test_eight_repairs_or_more_are_code() -> None:
    """A function with the bug is given."""
    repairs = [each for each in EXERCISES.values() if isinstance(each, Repair)]
    assert len(repairs) >= 8 and all(each.given.lstrip().startswith("def ") for each in repairs)


def test_an_unknown_notebook_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.ipynb")]) == 2
    assert "cannot read the notebook" in capsys.readouterr().err
    assert main(["minutes", str(tmp_path / "none.ipynb")]) == 2
    assert "none.ipynb is no lesson" in capsys.readouterr().err


def test_what_is_printed_in_pieces_is_saved_as_one() -> None:
    """A kernel flushes when it has time; outputs of another name, or with something in between, stay apart."""
    printed = [("stdout", "a"), ("stdout", "b\n"), ("stderr", "c"), ("stdout", "d"), ("stdout", "e")]
    outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in printed]
    outputs.insert(4, nbformat.v4.new_output("display_data", data={"text/plain": "x"}))
    cell = nbformat.v4.new_code_cell("print()", outputs=outputs)
    (cleaned,) = notebooks.clean(nbformat.v4.new_notebook(cells=[cell])).cells
    assert [output.get("text") for output in cleaned.outputs] == ["ab\n", "c", "d", None, "e"]
    assert [output.text for output in outputs[:2]] == ["a", "b\n"]


def test_a_notebook_saved_twice_is_the_same_bytes(tmp_path: Path) -> None:
    """Also with a widget in it, whose number is another one each time."""
    cells = [
        nbformat.v4.new_code_cell(source, id=f"cell-{n}")
        for n, source in enumerate(("import ipywidgets", "ipywidgets.IntSlider(3)"))
    ]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = tmp_path / "slider.ipynb"
    nbformat.write(book, path)
    saved = []
    for _ in range(2):
        notebooks.save(path)
        saved.append(path.read_bytes())
    assert saved[0] == saved[1]
    assert b"IntSlider(value=3)" in saved[0] and b"widget-view" not in saved[0]
