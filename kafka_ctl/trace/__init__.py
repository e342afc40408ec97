"""The trace of a run, as its reader has it: records that print, draw and save themselves.

Actors write a `Recorder` (`record.py`), which knows none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka_ctl.errors import needed_for
from kafka_ctl.trace.record import CAUSE, KINDS, SET, Record, Recorder
from kafka_ctl.trace.text import text

__all__ = ["CAUSE", "KINDS", "SET", "Record", "Recorder", "Trace"]


class Trace(Recorder):
    """The records of one history, in order; a sequence that can be sliced, filtered, printed and saved."""

    def text(self, level: str = "story") -> str:
        """The trace as aligned text, one fact a line; `level` is one of `LEVELS`."""
        return text(self.records, level)

    def kafka_log(self, name: str = "state-change", generation: str | None = None) -> str:
        """What Kafka of a generation (the lab's own) would have written to `state-change.log` or `controller.log`."""
        from kafka_ctl.kafka_log.write import kafka_log

        return kafka_log(self.records, name, generation or self.generation)

    def player(self, view: str | Sequence[str] = "cluster", **options: Any) -> Any:
        """A player of these records, as `Lab.player` makes it of all of a lab's."""
        with needed_for("a player"):
            from kafka_ctl.views.player import player

        return player(self, view, generation=self.generation, **options)

    def to_arrow(self) -> Any:
        """The trace as a pyarrow table in the trace schema."""
        with needed_for("an Arrow table"):
            from kafka_ctl.history.schema import to_arrow

        return to_arrow(self)

    def to_parquet(self, path: Any) -> None:
        """Write the trace to one Parquet file in the trace schema."""
        with needed_for("Parquet"):
            from kafka_ctl.history.schema import to_parquet

        to_parquet(self, path)
