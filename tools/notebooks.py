"""Runs the notebooks and saves what they show: `python -m tools.notebooks [NOTEBOOK ...]`.

What changes with every run is left out (widget models, times), so that a notebook that is run again is saved as the
same bytes, and nbval can compare every output with the saved one.

A notebook may have a twin with solutions, `solutions/` beside it. Its opening and its answers (cells tagged `exercise`)
are written there; the questions, their checks and what these need (cells tagged `twin`) are copied from the notebook.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = ROOT / "notebooks"
EXERCISE, COPIED = "exercise", "twin"
WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    """Every notebook that is not a twin, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def twin_of(path: Path) -> Path:
    """Where the solutions to a notebook's exercises are."""
    return path.parent / "solutions" / path.name


def read(path: Path) -> NotebookNode:
    """A notebook from its file; BadInput when there is none."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except OSError as problem:
        raise BadInput(f"cannot read the notebook {path}: {problem.strerror}") from None


def tagged(book: NotebookNode, *tags: str) -> dict[str, NotebookNode]:
    """The cells that have one of these tags, by their id."""
    return {cell.id: cell for cell in book.cells if {*tags} & {*cell.metadata.get("tags", ())}}


def solved(book: NotebookNode, twin: NotebookNode) -> NotebookNode:
    """What the twin has to be: its own opening, then the notebook's tagged cells, exercises with the twin's answers.

    Raises BadInput when an exercise has no answer.
    """
    answers, taken = tagged(twin, EXERCISE), deepcopy(tagged(book, EXERCISE, COPIED))
    for name, cell in tagged(book, EXERCISE).items():
        if name not in answers or answers[name].source == cell.source:
            raise BadInput(f"exercise {name!r} has no answer in the twin; it has {', '.join(answers) or 'none'}")
        taken[name].source = answers[name].source
    own = {cell.id for cell in book.cells}
    whole = deepcopy(book)
    whole.cells = [*(cell for cell in twin.cells if cell.id not in own), *taken.values()]
    return whole


def clean(book: NotebookNode) -> NotebookNode:
    """Take out of a notebook, in place, what the next run would have differently."""
    book.metadata.pop("widgets", None)  # with it, a page made by nbconvert shows nothing without a network
    book.metadata.get("language_info", {}).pop("version", None)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)  # without its model it would show as an error
    return book


def execute(book: NotebookNode, folder: Path, seconds: int = 300) -> NotebookNode:
    """Run every cell, in place, in `folder`; a cell that fails or takes longer ends it with nbclient's error."""
    from nbclient import NotebookClient

    client = NotebookClient(
        book, timeout=seconds, resources={"metadata": {"path": str(folder)}}, store_widget_state=False
    )
    client.execute()
    return book


def save(path: Path) -> None:
    """Run a notebook and, if it has one, its twin, and write both."""
    import nbformat

    book, twin = read(path), twin_of(path)
    books = {path: book}
    if twin.exists():
        books[twin] = solved(book, read(twin))
    for place, each in books.items():
        print(f"running {place.parent.name}/{place.name}", flush=True)
        nbformat.write(clean(execute(each, place.parent)), place)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description="Run notebooks and save them.")
    parser.add_argument("notebook", nargs="*", type=Path, help="which ones (default: all)")
    chosen: Iterable[Path] = [path.resolve() for path in parser.parse_args(argv).notebook] or notebooks()
    try:
        for path in chosen:
            save(path)
    except BadInput as problem:
        print(f"kafka_ctl: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
