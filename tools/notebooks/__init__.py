"""Runs the notebooks and saves what they show: `python -m tools.notebooks [NOTEBOOK ...]`.

Outputs that change with every run are left out (widget models, times). So a notebook that is run again is saved as the
same bytes, and nbval can compare every output with the saved one.

The notebooks are the source: with the answers to their exercises and notes for instructors. The editions of learners
and instructors are made of them: `python -m tools.notebooks editions` (`tools/editions.py`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_ctl.errors import BadInput
from kafka_ctl.exercises.progress_file import FOLDER
from kafka_ctl.paths import ROOT

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = ROOT / "notebooks"
START = NOTEBOOKS / "00-start-here.ipynb"
EXERCISE, INSTRUCTOR = "exercise", "instructor"
"""Tags of cells: the answer to an exercise, a note for instructors."""
WIDGET = "application/vnd.jupyter.widget-view+json"
PROGRESS = re.compile(r"^\(still running: .*\)\n", re.MULTILINE)
"""The line that a check prints while it takes long (`kafka_ctl/exercises/answers.py`, `still_running`)."""


def notebooks() -> list[Path]:
    """Every notebook that is a source, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def lessons() -> list[Path]:
    return [path for path in notebooks() if path != START]


def read(path: Path) -> NotebookNode:
    """A notebook from its file. Raises BadInput if there is none."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except OSError as problem:
        raise BadInput(f"cannot read the notebook {path}: {problem.strerror}") from None


def tags(cell: NotebookNode) -> set[str]:
    return {*cell.metadata.get("tags", ())}


def tagged(book: NotebookNode, *wanted: str) -> dict[str, NotebookNode]:
    """The cells that have one of these tags, by their id."""
    return {cell.id: cell for cell in book.cells if {*wanted} & tags(cell)}


def clean(book: NotebookNode) -> NotebookNode:
    """Take out of a notebook, in place, what the next run would have differently."""
    book.metadata.pop("widgets", None)  # with it, a page made by nbconvert shows nothing without a network
    book.metadata.get("language_info", {}).pop("version", None)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
            cell.outputs = _merged(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.text = PROGRESS.sub("", output.text)
                output.get("data", {}).pop(WIDGET, None)  # without its model it would show as an error
    return book


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs with what a cell printed in one piece: a kernel sends it in pieces that depend on its speed."""
    made: list[NotebookNode] = []
    for output in outputs:
        if made and output.output_type == "stream" and made[-1].get("name") == output.name:
            made[-1] = made[-1].copy()
            made[-1].text += output.text
        else:
            made.append(output)
    return made


def execute(book: NotebookNode, folder: Path, seconds: int = 300) -> NotebookNode:
    """Run every cell, in place, in `folder`; a cell that fails or takes longer ends it with nbclient's error.

    The exercises in it are not noted as solved.
    """
    from nbclient import NotebookClient

    client = NotebookClient(
        book, timeout=seconds, resources={"metadata": {"path": str(folder)}}, store_widget_state=False
    )
    client.execute(env={**os.environ, FOLDER: ""})
    return book


def save(path: Path) -> None:
    """Run a notebook and write it."""
    import nbformat

    print(f"running {path.name}", flush=True)
    nbformat.write(clean(execute(read(path), path.parent)), path)
