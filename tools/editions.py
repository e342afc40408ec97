"""The editions of the notebooks: `python -m tools.notebooks editions`.

    notebooks/starter/      for learners: dots or a bug instead of answers, nothing saved that gives an answer away
    notebooks/instructor/   for who teaches: a timing plan, the exercises with their hints, notes; nothing saved either
    notebooks/00-start-here.ipynb   its map of the lessons and its routes
    notebooks/README.md     its table of the lessons
    a learner's copy of the course, as the wheel has it: the starters, the start page, pages, stories and pictures

The two folders are not stored: the lab of a checkout, the wheel and the site make the starters for themselves. A file
in them that a user has changed is never overwritten. With `--check` nothing is written, and which of the two stored
files is stale is named. `--slides FOLDER` also makes a presentation and a summary page to print of each lesson.
"""

from __future__ import annotations

import argparse
import ast
import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.jupyter.launch import renewed
from kafka_ctl.paths import ROOT
from kafka_ctl_course import EXERCISES
from tools.notebooks import EXERCISE, INSTRUCTOR, NOTEBOOKS, START, lessons, read, tagged, tags

if TYPE_CHECKING:
    from nbformat import NotebookNode

STARTER, TEACHING = NOTEBOOKS / "starter", NOTEBOOKS / "instructor"
README = NOTEBOOKS / "README.md"
GIVEN = ".given.json"
"""The file, in the folder of an edition, with the hashes of what was written there."""
TABLE = re.compile(r"(?<=\n\| lesson \| \|\n\| --- \| --- \|\n).*?(?=\n\n)", re.DOTALL)
"""The rows of the lessons in the README of the notebooks, the start page first."""
MINUTES = re.compile(r"^## (?P<title>.+?) · (?P<minutes>\d+) min$", re.MULTILINE)
"""A section's heading with its time."""
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
CHECK = re.compile(r"^check\(\"(?P<name>[\d.]+)\".*", re.MULTILINE)
"""The call that judges an answer."""
OUTSIDE = re.compile(r"\]\((\.\./[^)]*)\)")
"""A link to something outside the folder of the notebooks."""
LINK = re.compile(r'\[([^]["]*)\]\(((?![a-z]+:)[^)\s#]+)([^)]*)\)')
"""A link to a file: its words, the way to the file, and what follows that. Words end where a string of JSON does."""
CARRIED = ("notebooks/00-start-here.ipynb", "docs/*.md", "docs/examples/*.*", "diagrams/*.svg", "tests/traces/*.txt")
"""The files of the checkout that a learner's copy of the course has, too."""
PRINTED = """
body { font: 11pt/1.4 sans-serif; max-width: 18cm; margin: 1cm auto }
h1 { font-size: 16pt } h2 { font-size: 12pt } code { font-size: 10pt }
"""
"""The style of a page to print."""
ROUTES: dict[str, tuple[str, ...] | None] = {
    "One hour": ("01",),
    "Half a day": ("01", "02", "03", "05", "06", "08", "09"),
    "Three days": None,
    "Operators": tuple("01 02 03 04 05 06 07 08 09 11 12 13 14 15 17 18 19 20 21 22".split()),
    "Students": ("01", "02", "03", "05", "06", "09", "10", "11", "17"),
}
"""Ways through the course: numbers of lessons; None takes all of them."""


class Lesson(NamedTuple):
    """The row of a lesson in the map."""

    number: str
    file: str
    title: str
    question: str
    minutes: int
    core: int
    exercises: int


def lesson(path: Path, book: NotebookNode) -> Lesson:
    """A lesson's line in the map. Raises BadInput if the notebook does not say what it needs."""
    found = HEADING.search(book.cells[0].source)
    about = book.metadata.get("lesson", {})
    wanted = ("question", "minutes", "core", "exercises")
    if found is None or not {*wanted} <= about.keys():
        raise BadInput(f"{path.name} needs a title, and `lesson` with {', '.join(wanted)} in its metadata")
    return Lesson(path.name[:2], path.name, found[2], *(about[each] for each in wanted))


# Starters


def starter(book: NotebookNode) -> NotebookNode:
    """The notebook as a learner opens it."""
    made = _without_outputs(book)
    made.cells = [cell for cell in made.cells if INSTRUCTOR not in tags(cell)]
    for cell in tagged(made, EXERCISE).values():
        cell.source = begun(cell.source)
    return _moved(made)


def begun(source: str) -> str:
    """The code of an answer as learners begin with it: the function that they are given, or dots."""
    call = CHECK.search(source)
    given = EXERCISES[call["name"]].given.strip() if call is not None else ""
    return f"{given}\n\n\n{call[0]}" if call is not None and given else dotted(source)


def dotted(source: str) -> str:
    """The code of an answer with dots in its place: the values that are assigned, what functions return.

    Comments, names, parameters, docstrings and the call of `check` stay.

    Raises BadInput where nothing is left to answer.
    """
    lines = source.splitlines()
    parts: list[tuple[Sequence[ast.expr | ast.stmt], str]] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            parts.append(([node.value], "(..., ...)" if _is_pair(node, source) else _dots(node.value)))
        elif isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            parts.append((body, "return ..."))
        elif not (isinstance(node, ast.Import | ast.ImportFrom) or _is_check(node)):
            parts.append(([node], "..."))
    if not parts:
        raise BadInput(f"an exercise without an answer: {source!r}")
    for place, text in reversed(parts):
        first, last = place[0], place[-1]
        start, end = first.lineno - 1, (last.end_lineno or first.lineno) - 1
        before = lines[start].encode()[: first.col_offset].decode()
        after = lines[end].encode()[last.end_col_offset or 0 :].decode()
        lines[start : end + 1] = [before + text + after]
    return "\n".join(lines)


def _is_check(node: ast.stmt) -> bool:
    """True if a statement has the answer judged."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "check"


def _is_pair(node: ast.Assign, source: str) -> bool:
    """True if a pair in brackets is assigned to one name."""
    return (
        isinstance(node.value, ast.Tuple)
        and len(node.value.elts) == 2
        and (ast.get_source_segment(source, node.value) or "").startswith("(")
    )


def _dots(value: ast.expr) -> str:
    return ", ".join("..." for _ in value.elts) if isinstance(value, ast.Tuple) else "..."


# Instructors


def instructor(book: NotebookNode, number: str) -> NotebookNode:
    """The notebook as a teacher opens it, and as slides are made of it."""
    made = _without_outputs(book)
    made.cells[1:1] = [_cell("timing-plan", timing(book)), _cell("exercise-plan", exercise_plan(number))]
    for cell in made.cells:
        opens = cell.cell_type == "markdown" and HEADING.match(cell.source) is not None
        notes = INSTRUCTOR in tags(cell) or cell.id.endswith("-plan")
        cell.metadata["slideshow"] = {"slide_type": "notes" if notes else "slide" if opens else "-"}
    return _moved(made)


def timing(book: NotebookNode) -> str:
    """The timing plan, from the headings."""
    rows, begin = [], 0
    for cell in book.cells:
        for found in MINUTES.finditer(cell.source if cell.cell_type == "markdown" else ""):
            minutes = int(found["minutes"])
            rows.append(f"| {begin} to {begin + minutes} | {found['title']} |")
            begin += minutes
    if not rows:
        return f"## Timing plan\n\n{book.metadata.lesson.minutes} minutes in all."
    return "\n".join(["## Timing plan", "", "| minutes | section |", "| --- | --- |", *rows])


def exercise_plan(number: str) -> str:
    """The exercises of a lesson: what they ask for, and their hints."""
    found = [each for name, each in EXERCISES.items() if name.startswith(f"{number}.")]
    lines = ["## Exercises and hints", ""]
    for each in found:
        lines += [f"**{each.name} {each.title}** ({each.kind}, {'core' if each.core else 'stretch'})", ""]
        lines += [f"{place}. {text}" for place, text in enumerate(each.hints, 1)] + [""]
    if not found:
        lines.append("The answers are in the notebook of the same name one folder up.")
    return "\n".join(lines).rstrip()


def summary_page(book: NotebookNode) -> str:
    """A page to print: the goal, the words and the summary of a lesson, as HTML without anything from outside."""
    import mistune

    wanted = [book.cells[0].source]
    wanted += [
        cell.source
        for cell in book.cells
        if cell.cell_type == "markdown" and re.match(r"## (The words|Summary)", cell.source)
    ]
    body = "\n".join(str(mistune.html(MINUTES.sub(r"## \g<title>", text))) for text in wanted)
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><style>{PRINTED}</style>\n{body}</html>\n'


# The start page


def course_map(found: Sequence[Lesson]) -> str:
    """All lessons as a table."""
    rows = [
        f"| {each.number} | [{each.title}](starter/{each.file}) | {each.question} "
        f"| {each.minutes} | {each.core} | {each.exercises} |"
        for each in found
    ]
    reading = "On GitHub, where no starters are, [README.md](README.md) leads to the lessons."
    head = [
        "## The lessons",
        "",
        reading,
        "",
        "| | lesson | question | minutes | core exercises (min) | all exercises (min) |",
    ]
    return "\n".join([*head, "| --- | --- | --- | --- | --- | --- |", *rows])


def routes(found: Sequence[Lesson]) -> str:
    """The ways through the course; their hours are those of the lessons and their core exercises."""
    lines = ["## Which way?", ""]
    for name, numbers in ROUTES.items():
        chosen = [each for each in found if numbers is None or each.number in numbers]
        minutes = sum(each.minutes + each.core for each in chosen)
        time = f"{minutes} minutes" if minutes < 60 else f"{minutes / 60:.1f} hours"
        links = " → ".join(f"[{each.number}](starter/{each.file} '{each.title}')" for each in chosen)
        lines.append(f"- **{name}** ({time}): {links}")
    return "\n".join(lines)


def start_page(book: NotebookNode, found: Sequence[Lesson]) -> NotebookNode:
    """The start page with its map and its routes made anew."""
    made = deepcopy(book)
    for cell in made.cells:
        if cell.id in ("map", "routes"):
            cell.source = course_map(found) if cell.id == "map" else routes(found)
    return made


def front_page(page: str, found: Sequence[Lesson]) -> str:
    """The README of the notebooks with its table of the lessons made anew; the row of the start page stays."""
    rows = [f"| [{each.title}]({each.file}) | {each.question} |" for each in found]
    return TABLE.sub(lambda old: "\n".join([old[0].split("\n")[0], *rows]), page)


# All of them


def starters() -> dict[str, NotebookNode]:
    """The notebooks for learners, by the names of their files."""
    return {path.name: starter(read(path)) for path in lessons()}


def instructors() -> dict[str, NotebookNode]:
    """The notebooks for teachers, by the names of their files."""
    return {path.name: instructor(read(path), path.name[:2]) for path in lessons()}


def pages() -> dict[Path, str]:
    """The stored files that list the lessons, as they would be made now."""
    found = [lesson(path, read(path)) for path in lessons()]
    return {START: text(start_page(read(START), found)), README: front_page(README.read_text("utf-8"), found)}


def course() -> dict[str, str]:
    """The files of a learner's copy of the course, by their places in it; their links lead to others of them."""
    paths = [path for pattern in CARRIED for path in sorted(ROOT.glob(pattern))]
    files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    files |= {f"notebooks/starter/{name}": text(book) for name, book in starters().items()}

    def led(place: str, link: re.Match[str]) -> str:
        """A link as it was, or to the starter of a lesson; where the copy has no such file, the file's name alone."""
        words, way, rest = link.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), way))
        if target in files or not (ROOT / target).exists():
            return link[0]
        if target.replace("notebooks/", "notebooks/starter/") in files:
            return f"[{words}]({way.replace('notebooks/', 'notebooks/starter/')}{rest})"
        return f"`{target}`" if target.endswith(words) else words

    return {place: LINK.sub(partial(led, place), whole) for place, whole in files.items()}


def stale() -> list[str]:
    """The stored files that are not as they would be made now."""
    return [f"notebooks/{path.name} is stale" for path, made in pages().items() if path.read_text("utf-8") != made]


def text(book: NotebookNode) -> str:
    """A notebook as it is written."""
    import nbformat

    return str(nbformat.writes(book)) + "\n"


def give(folder: Path, books: Mapping[str, NotebookNode]) -> list[str]:
    """Write notebooks into a folder; those that a user has changed there stay.

    Returns the names of these, once for each newer edition of them.
    """
    files = {name: text(book).encode() for name, book in books.items()}
    folder.mkdir(exist_ok=True)
    return renewed(folder, files, GIVEN, beside=False)


def give_starters() -> list[str]:
    """Write the starters of this checkout; the names of those that a learner has changed, as `give` returns them."""
    return give(STARTER, starters())


def write() -> list[str]:
    """Write the stored files and both editions; the names of the notebooks that stay, as `give` returns them."""
    for path, made in pages().items():
        path.write_text(made, encoding="utf-8")
    return [*give_starters(), *give(TEACHING, instructors())]


def restore(kept: Path | None) -> list[str]:
    """Make every starter that was changed, or is missing, as it was; the names of these.

    Changed files are kept in the folder `kept`, if one is given.
    """
    names = []
    for name, book in starters().items():
        place = STARTER / name
        found = place.read_text("utf-8") if place.exists() else None
        if found == text(book):
            continue
        if found is not None and kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            (kept / name).write_text(found, encoding="utf-8")
        place.unlink(missing_ok=True)
        names.append(name)
    give_starters()
    return names


def write_slides(folder: Path) -> None:
    """A presentation and a summary page of each lesson."""
    from nbconvert import SlidesExporter

    folder.mkdir(parents=True, exist_ok=True)
    for path in lessons():
        book = read(path)
        slides, _ = SlidesExporter().from_notebook_node(_with_outputs(instructor(book, path.name[:2]), book))
        (folder / f"{path.stem}.slides.html").write_text(slides, encoding="utf-8")
        (folder / f"{path.stem}.summary.html").write_text(summary_page(book), encoding="utf-8")


def _with_outputs(made: NotebookNode, book: NotebookNode) -> NotebookNode:
    """The same with what the source shows."""
    shown = {cell.id: cell.outputs for cell in book.cells if cell.cell_type == "code"}
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs = shown[cell.id]
    return made


def _without_outputs(book: NotebookNode) -> NotebookNode:
    made = deepcopy(book)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return made


def _moved(book: NotebookNode) -> NotebookNode:
    """The notebook one folder further down: its links still lead where they led."""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = OUTSIDE.sub(r"](../\1)", cell.source)
    return book


def _cell(name: str, source: str) -> NotebookNode:
    import nbformat

    return nbformat.v4.new_markdown_cell(source, id=name)


def main(argv: Sequence[str]) -> int:
    """The command; its exit status: 1 when something is stale."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks editions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when something is stale")
    parser.add_argument("--slides", type=Path, metavar="FOLDER", help="also write slides and summary pages there")
    chosen = parser.parse_args(argv)
    try:
        if chosen.check:
            for problem in (problems := stale()):
                print(f"kafka_ctl: {problem}; `python -m tools.notebooks editions` makes it anew", file=sys.stderr)
            return int(bool(problems))
        for name in write():
            print(f"kafka_ctl: {name} was changed, so it stays; rename it to get the newer one")
        if chosen.slides:
            write_slides(chosen.slides)
            print(f"wrote slides and summary pages to {chosen.slides}")
    except BadInput as problem:
        print(f"kafka_ctl: {problem}", file=sys.stderr)
        return 2
    return 0
