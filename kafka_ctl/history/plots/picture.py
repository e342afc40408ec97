"""The parts that all plots share: a figure with words, the look of a cause, axes for times and shares."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from io import BytesIO, StringIO

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import Column
from pyspark.sql import functions as fn

from kafka_ctl.views.dot import FAMILY

LOOKS = {
    "topic creation": ("#56B4E9", "-"),
    "session expiry": ("#0072B2", "--"),
    "controlled shutdown": ("#009E73", "-"),
    "quick restart": ("#E69F00", "-"),
    "pause": ("#E69F00", "-."),
    "broker crash": ("#D55E00", "-"),
    "broker loss": ("#D55E00", "-."),
    "controller crash": ("#CC79A7", "--"),
}
"""A cause looks the same in every plot. Colour-blind readers can distinguish the colours (Okabe and Ito)."""
OTHERS = ("#000000", ":")
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Colours for anything else, in this order."""
FAINT = "#dddddd"
TICKS = {
    0.1: "0.1 ms",
    1: "1 ms",
    10: "10 ms",
    100: "0.1 s",
    1e3: "1 s",
    1e4: "10 s",
    6e4: "1 min",
    6e5: "10 min",
    3.6e6: "1 h",
    3.6e7: "10 h",
    3.6e8: "100 h",
}
TITLE = 10.5
"""Points of a title; labels have 10. That is 14 and 13 pixels."""
WIDTH = 8.4
"""Inches of a plot: 806 pixels, as wide as an output of JupyterLab in a window of 1280 pixels, beside the files."""
STEPS = 400
"""Points of a curve; the rest is left to Spark."""


class Picture(Figure):
    """A figure that shows itself in a notebook, with `alt`, the words for readers who do not see it."""

    alt = ""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict, dict]:
        png = BytesIO()
        self.savefig(png, format="png")
        coded = b64encode(png.getvalue()).decode()
        return {"image/png": coded, "text/html": self.html(), "text/plain": self.alt}, {"image/png": {"alt": self.alt}}

    def html(self) -> str:
        """The picture as SVG in an image, which a notebook that is not trusted shows, too, and never smaller."""
        drawn = StringIO()
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "kafka_ctl"}):
            self.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        text = re.sub(r"'DejaVu Sans'[^;\"]*", FAMILY, drawn.getvalue())  # measured in it, and no wider in ours
        coded = b64encode(text.encode()).decode()
        return f'<img alt="{escape(self.alt)}" style="max-width:none" src="data:image/svg+xml;base64,{coded}">'


def picture(title: str, x: str, y: str, height: float = 4.5) -> tuple[Picture, Axes]:
    """A new picture with one pair of axes, their labels and a faint grid."""
    figure = Picture(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=TITLE)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_axisbelow(True)
    axes.grid(True, color=FAINT, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def nothing(title: str) -> Picture:
    """A sentence instead of an empty frame."""
    figure = Picture(figsize=(WIDTH, 0.7))
    figure.alt = f"{title}: there is nothing to show, the answer has no rows for it."
    figure.text(0.01, 0.5, figure.alt, va="center")
    return figure


def times(axes: Axes, narrow: bool = False) -> None:
    """Durations from left to right, each power of ten as far from the next, in words of everyday life."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    near = {at: text for at, text in TICKS.items() if low / 3 <= at <= high * 3}
    few = {at: text for at, text in list(TICKS.items())[::2] if at in near}
    shown = few if narrow and len(few) > 1 else near
    axes.set_xticks(list(shown), list(shown.values()))
    axes.set_xticks([], minor=True)


def per_cent(axes: Axes) -> None:
    """Shares from bottom to top."""
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])


def named_shares(axes: Axes) -> None:
    """Shares over durations: each line has its name on it, at a height of its own, also lines on each other."""
    times(axes)
    per_cent(axes)
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    low, high = axes.get_ylim()
    for number, line in enumerate(named, 1):
        height = high - (high - low) * number / (len(named) + 1)
        points = [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())] or [(axes.get_xlim()[0], low)]
        x, top = next((point for point in points if point[1] >= height), points[-1])
        right = axes.transLimits.transform(axes.transScale.transform((x, height)))[0] > 0.6
        edge = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": line.get_color(), "linewidth": 1.5}
        place, side = (x, min(height, top)), "right" if right else "left"
        axes.annotate(
            str(line.get_label()),
            place,
            (-6 if right else 6, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            bbox=edge,
        )


def legend(axes: Axes, title: str | None = None) -> None:
    """Beside the picture, where it hides nothing; none where there is nothing to name."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(title=title, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))


def readable(ms: float | None) -> str:
    """A duration in words: 0.5 ms, 6.0 s, 2.5 min, 3.1 h."""
    if ms is None:
        return "for ever"
    for size, unit in ((3.6e6, "h"), (6e4, "min"), (1e3, "s")):
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms:.1f} ms"


def quantiles(column: str) -> Column:
    """`STEPS` + 1 quantiles of a column, as one array."""
    return fn.percentile_approx(column, [i / STEPS for i in range(STEPS + 1)], 100_000)


def curve(axes: Axes, values: Sequence[float] | None, share: float, label: str, look: tuple[str, str]) -> None:
    """The share of things that are over after so long; `values` are quantiles, and all of them make up `share`."""
    after = [max(ms, 0.1) for ms in values or []]
    percent = [100 * share * i / STEPS for i in range(STEPS + 1)][: len(after)]
    axes.step(after, percent, where="post", label=label, color=look[0], linestyle=look[1], linewidth=2)


def clock(axes: Axes, starts: Iterable[float]) -> tuple[float, float]:
    """Label the x axis for times of a history or of logs; where it begins, and the milliseconds of one unit."""
    first = min(starts, default=0.0)
    if first < 1e11:  # a simulated history counts from 0
        axes.set_xlabel("hours since the start")
        return 0.0, 3.6e6
    begin = first // 6e4 * 6e4
    axes.set_xlabel(f"minutes since {datetime.fromtimestamp(begin / 1000, UTC):%Y-%m-%d %H:%M} (the logs' clock)")
    return begin, 6e4
