"""The outcomes of a drill as one picture.

Separate from `drill.py` because it needs matplotlib and the packages of histories.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backend_bases import FigureCanvasBase

from kafka_ctl.drills.outcome import Outcome
from kafka_ctl.errors import UnknownName
from kafka_ctl.history.plots.picture import SERIES, Picture, legend, picture

MOST = 40
"""The most rows that are drawn."""


def check_ending(file: str) -> None:
    """Raise UnknownName for a file whose ending is no format of a picture."""
    ending = Path(file).suffix[1:].lower()
    if ending and ending not in FigureCanvasBase.filetypes:
        raise UnknownName("format of a picture", ending, sorted(FigureCanvasBase.filetypes))


def plot(outcomes: Sequence[Outcome]) -> Picture:
    """Three bars for each of the worst `MOST` rows: partitions offline, below `min.insync.replicas`, interrupted."""
    rows = outcomes[:MOST]
    title = "What each scenario does to the partitions"
    figure, axes = picture(title, "partitions", "", max(2.5, 0.6 + 0.32 * len(rows)))
    both = len({row.unclean for row in rows}) > 1
    names = [row.scenario.name + (f", unclean {'on' if row.unclean else 'off'}" if both else "") for row in rows]
    parts = {
        "offline at the end": ([row.offline for row in rows], SERIES[5]),
        "below min.insync.replicas": ([row.below_min_isr for row in rows], SERIES[1]),
        "without a leader for some time": ([row.interrupted for row in rows], SERIES[4]),
    }
    for place, (label, (values, colour)) in enumerate(parts.items()):
        axes.barh([n + 0.27 * (place - 1) for n in range(len(rows))], values, 0.26, color=colour, label=label)
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    legend(axes)
    worst = rows[0]
    figure.alt = (
        f"{title}. {len(rows)} of {len(outcomes)} scenarios. The worst: {worst.scenario.name}, {worst.offline} "
        f"partitions offline, {worst.below_min_isr} below min.insync.replicas, {worst.interrupted} interrupted."
    )
    return figure
