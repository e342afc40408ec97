"""Several runs of one story on one time axis with a common zero: a lane for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafka_ctl.errors import BadInput
from kafka_ctl.trace.timing import Timing
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg

LEFT, WIDTH, LANE, TOP = 100, 400, 92, 48
"""Pixels: where time begins, how wide it is, how high a lane is, where the first one begins."""
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Milliseconds between two marks of the axis, whichever gives ten or fewer."""

KEY = (
    "strokes: ZooKeeper operations, higher where several go together",
    "dots: elections; bars: requests; flags: leaders",
)


def lanes(runs: Mapping[str, Timing], until: float | None = None) -> Drawing:
    """The acts of the controller of each run, by name, up to `until` ms.

    A lane has, from above: ZooKeeper operations as strokes, higher where several were answered together; elections as
    dots; requests as bars from their sending to their answer; and a flag where an elected leader first knows that it
    leads. Raises BadInput without any run.
    """
    if not runs:
        raise BadInput("lanes needs at least one run")
    end = until or max(run.done for run in runs.values()) * 1.04 or 1.0
    parts = [label(20, 18 + 16 * row, text, fill=COLOURS["dim"]) for row, text in enumerate(KEY)]
    for row, (name, run) in enumerate(runs.items()):
        parts += _lane(TOP + LANE * row, name, run, end)
    base = TOP + LANE * len(runs)
    step = next((tick for tick in TICKS if end / tick <= 10), TICKS[-1])
    for number in range(int(end / step) + 1):
        x = _x(step * number, end)
        parts.append(f'<path d="M{x:.1f} {TOP}V{base}" stroke="{COLOURS["line"]}" stroke-width="0.4"/>')
        parts.append(label(x - 6, base + 16, f"{step * number:g}"))
    parts.append(label(LEFT, base + 34, "ms", fill=COLOURS["dim"]))
    text = "\n".join(f"{name}: {run}" for name, run in runs.items())
    return Drawing(svg(LEFT + WIDTH + 40, base + 44, parts), text)


def _x(ms: float, end: float) -> float:
    return LEFT + WIDTH * ms / end


def _lane(y: int, name: str, run: Timing, end: float) -> list[str]:
    c = COLOURS
    parts = [
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{LANE - 10}" fill="{c["plate"]}"/>',
        label(14, y + 40, name, "bold"),
    ]
    together = Counter(at for at in run.operations if at <= end)
    strokes = "".join(f"M{_x(at, end):.1f} {y + 22}v-{4 + 1.5 * min(n, 12):g}" for at, n in sorted(together.items()))
    parts.append(f'<path d="{strokes or "M0 0"}" stroke="{c["zoo_line"]}" stroke-width="1"/>')
    for at in sorted({*run.elections}):
        if at <= end:
            parts.append(f'<circle cx="{_x(at, end):.1f}" cy="{y + 30}" r="3.5" fill="{c["leader"]}"/>')
    for sent, answered in dict.fromkeys(run.requests):
        if sent <= end:
            x, far = _x(sent, end), _x(min(answered, end), end)
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 42}" width="{max(far - x, 1.5):.1f}" height="12" fill="{c["hot"]}" '
                'fill-opacity="0.5"/>'
            )
    for at in sorted({*run.leaders.values()}):
        if at <= end:
            parts.append(
                f'<path d="M{_x(at, end):.1f} {y + 78}v-18l9 4l-9 4" fill="{c["good"]}" stroke="{c["good"]}"/>'
            )
    return parts
