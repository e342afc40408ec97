"""Which moves the two state machines made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from kafka_ctl.history.plots.picture import Picture, nothing
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

TABLES = {"partition": PARTITION, "replica": REPLICA}
MADE, NEVER, ILLEGAL = "#cfe5f3", "#ffffff", "#f6c6a8"


def transition_counts(answer: DataFrame) -> Picture:
    """Both machines as grids: from the state of the row to that of the column, so many times.

    `answer` comes from `questions.transition_counts`. A dot is a move that is not legal and was not tried; *never*, a
    legal one that was not made; a hatched cell, one that the table does not have, which was tried or even made.
    """
    rows = {(row.machine, row.source, row.target): row for row in answer.collect()}
    if not any(row.made or row.refused for row in rows.values()):
        return nothing("Moves of the state machines")
    figure = Picture(figsize=(9, 6.4), layout="constrained")
    grids = figure.subplots(2, 1, height_ratios=(4, 7))
    for axes, (name, tables) in zip(grids, TABLES.items(), strict=True):
        states = [str(state) for state in tables["2.0"].states]
        _grid(axes, name, states, {key[1:]: row for key, row in rows.items() if key[0] == name})
    figure.suptitle("Moves of the state machines", x=0.01, ha="left")
    never = sorted(f"{source} to {target}" for (_, source, target), r in rows.items() if r.legal and not r.made)
    wrong = [f"{s} to {t} ({r.made} made, {r.refused} refused)" for (_, s, t), r in sorted(rows.items()) if not r.legal]
    figure.alt = (
        f"Moves of the state machines. {sum(r.made for r in rows.values())} made; legal but never made: "
        f"{', '.join(never) or 'none'}; not legal: {', '.join(wrong) or 'none tried'}."
    )
    return figure


def _grid(axes: Axes, name: str, states: list[str], rows: dict[tuple[str, str], Any]) -> None:
    short = [
        state.removesuffix("Partition").removesuffix("Replica").replace("ReplicaDeletion", "Del.") for state in states
    ]
    for y, source in enumerate(states):
        for x, target in enumerate(states):
            row = rows.get((source, target))
            text, colour, hatch = "·", NEVER, None
            if row is not None and row.legal:
                text, colour = (f"{row.made:,}", MADE) if row.made else ("never", NEVER)
            elif row is not None:
                text, colour, hatch = f"{row.made:,}", ILLEGAL, "//"
            text += f"\n({row.refused:,} refused)" if row is not None and row.refused else ""
            edge = "black" if text != "·" else "#dddddd"
            axes.add_patch(_cell(x, y, colour, edge, hatch))
            axes.text(x, y, text, ha="center", va="center", fontsize=8)
    axes.set_xlim(-0.5, len(states) - 0.5)
    axes.set_ylim(len(states) - 0.5, -0.5)
    axes.set_xticks(range(len(states)), short)
    axes.set_yticks(range(len(states)), short)
    axes.xaxis.tick_top()
    axes.set_ylabel(f"{name}: from")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _cell(x: int, y: int, colour: str, edge: str, hatch: str | None) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, facecolor=colour, edgecolor=edge, hatch=hatch, linewidth=0.8)
