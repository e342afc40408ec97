"""The settings that a lesson lets a learner turn: the ends of each control, in every combination."""

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kafka_ctl import Lab
from kafka_ctl_course.widgets import TurnWidget
from tools import notebooks

BROKEN = {
    "05": {"I4", "I25"},
    "09": {"I9"},
    "14": {"I4", "I16", "I18", "I19", "I25"},
    "17": {"I8", "I14", "I18"},
    "18": {"I9", "I14"},
}
"""By lesson the invariants that some settings break, as the lesson says."""
REFUSED = {"10"}
"""The lessons in which a setting asks for more replicas than there are brokers."""
KEPT = ast.Import | ast.ImportFrom | ast.FunctionDef


def widget_of(path: Path) -> TurnWidget:
    """The control of a lesson, from its own cell; of the cells before only the imports and functions are run."""
    names: dict[str, Any] = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        if "pyspark" in cell.source:
            pytest.importorskip("pyspark")
        body = ast.parse(cell.source).body
        is_turned = "TurnWidget(" in cell.source
        kept = body[:-1] if is_turned else [node for node in body if isinstance(node, KEPT)]
        exec(compile(ast.Module(kept, []), cell.id, "exec"), names)
        if is_turned:
            return eval(ast.unparse(body[-1]), names)
    raise AssertionError(path)


def values(control: Any) -> list[object]:
    """The first and the last value of a control."""
    if hasattr(control, "options"):
        return [control.options[0], control.options[-1]]
    return [control.min, control.max] if hasattr(control, "min") else [False, True]


TURNED = [path for path in notebooks.lessons() if "TurnWidget(" in path.read_text("utf-8")]


def test_at_least_twelve_lessons_have_one() -> None:
    assert len(TURNED) >= 12


@pytest.mark.parametrize("path", TURNED, ids=lambda path: path.stem)
def test_every_setting_has_its_picture(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting breaks an invariant or is refused where the lesson does not say so; some do where it does."""
    labs: list[Lab] = []
    begin = Lab.__init__

    def noted(lab: Lab, *given: Any, **options: Any) -> None:
        begin(lab, *given, **options)
        labs.append(lab)

    monkeypatch.setattr(Lab, "__init__", noted)
    lesson, broken, pictures = path.name[:2], set[str](), set[str]()
    widget = widget_of(path)
    for turn in range(2 ** len(widget.kwargs_widgets)):
        ends = turn ^ turn >> 1  # a Gray code: each turn moves one control, so that each picture is drawn once
        for place, control in enumerate(widget.kwargs_widgets):
            control.value = values(control)[ends >> place & 1]
        pictures.add(widget.drawn["image/svg+xml"])
        broken |= {violation.invariant for lab in labs for violation in lab.violations}
        labs.clear()
    assert (broken, "" in pictures) == (BROKEN.get(lesson, set()), lesson in REFUSED)
    assert len(pictures - {""}) >= 2
