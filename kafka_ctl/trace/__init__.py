"""The trace of a run, as its reader has it: records that print, draw and save themselves.

Actors write a `Recorder` (`record.py`), which knows none of this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_ctl.display import table
from kafka_ctl.extras import needed_for
from kafka_ctl.trace.record import CAUSE, KINDS, SET, Record, Recorder
from kafka_ctl.trace.text import subject_and_change, text

if TYPE_CHECKING:
    from kafka_ctl.views.widget.player import Player

__all__ = ["CAUSE", "KINDS", "SET", "Record", "Recorder", "Trace"]


class Trace(Recorder):
    """The records of one history, in order; a sequence that can be sliced, filtered, printed and saved.

        from kafka_ctl import Lab
        trace = Lab(brokers=3).trace
        trace.slice(kind="event", action="Startup", target="done")[0].actor.partition("-")[0]  # 'controller'
        print(trace.text())
        print(trace.kafka_log("controller"))

    The trace of a lab grows while the lab runs.
    """

    def text(self, level: str = "story") -> str:
        """The trace as aligned text, one fact a line; `level` is one of `LEVELS`."""
        return text(self.records, level)

    def _repr_html_(self) -> str:
        """The first records as a table."""
        head = ("seq", "time_ms", "actor", "kind", "subject", "change", "cause")
        rows = ((r.seq, r.time_ms, r.actor, r.kind, *subject_and_change(r), r.cause) for r in self)
        return table(head, rows, len(self)).html()

    def kafka_log(self, name: str = "state-change", generation: str | None = None) -> str:
        """`state-change.log` or `controller.log` as Kafka of a generation (the lab's own) would have written it."""
        from kafka_ctl.kafka_log.write import kafka_log

        return kafka_log(self.records, name, self.generation if generation is None else generation)

    def player(self, view: str | Sequence[str] = "cluster", **options: object) -> Player:
        """A player of these records, as `Lab.player` makes it of all of a lab's."""
        with needed_for("a player"):
            from kafka_ctl.views.widget.player import player

        return player(self, view, generation=self.generation, **options)

    def to_arrow(self) -> Any:
        """The trace as a pyarrow table in the trace schema."""
        with needed_for("an Arrow table"):
            from kafka_ctl.history.schema import to_arrow

        return to_arrow(self)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to one Parquet file in the trace schema."""
        with needed_for("Parquet"):
            from kafka_ctl.history.schema import to_parquet

        to_parquet(self, path)
