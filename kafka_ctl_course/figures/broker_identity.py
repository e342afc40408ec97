"""The sources of a broker's id, its configuration, its log directories and ZooKeeper, and those that contradict."""

from __future__ import annotations

from kafka_ctl.brokers.identity import NOT_CONFIGURED
from kafka_ctl.lab.view import IdentityView
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, plate, svg

WIDTH, HEIGHT, STEP, DOWN = 240, 74, 256, 114


def broker_identity(found: IdentityView) -> Drawing:
    """The sources, two in a row; those that contradict each other have a thick edge. The outcome stands below."""
    configured = None if found.configured == NOT_CONFIGURED else found.configured
    boxes = [("broker.id", [f"{configured}" if configured is not None else "not configured"], configured)]
    for path, meta in found.files.items():
        lines = ["no file"] if meta is None else meta.text.split()
        boxes.append((f"{path}/meta.properties", lines, None if meta is None else meta.broker))
    boxes.append(("/brokers/seqid", [f"{found.generated} ids given out"], None))
    ids = {id for _, _, id in boxes if id is not None}
    parts, rows = [], []
    for place, (name, lines, id) in enumerate(boxes):
        wrong = found.problem is not None and id is not None
        parts += _box(20 + STEP * (place % 2), DOWN * (place // 2), name, lines, wrong)
        rows.append(f"{name}: {', '.join(lines)}" + " (!)" * wrong)
    end = _outcome(found, ids)
    below = DOWN * ((len(boxes) + 1) // 2)
    parts.append(label(20, below + 30, end, "bold", COLOURS["bad"] if found.problem else ""))
    return Drawing(svg(max(538, 30 + 7 * len(end)), below + 48, parts), "\n".join([*rows, end]))


def _outcome(found: IdentityView, ids: set[int]) -> str:
    if found.problem is not None:
        return f"does not start: {found.problem.splitlines()[0].partition('. ')[0]}"[:96]
    return f"starts as broker {min(ids)}" if ids else "starts with the next id from ZooKeeper"


def _box(x: int, y: int, name: str, lines: list[str], wrong: bool) -> list[str]:
    box = plate(x, y + 30, WIDTH, HEIGHT, wrong, radius=6)
    texts = [label(x + 8, y + 50 + 17 * row, line[:34]) for row, line in enumerate(lines)]
    return [label(x, y + 22, name, "bold"), box, *texts]
