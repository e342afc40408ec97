"""The lab in pictures: players, exports, and what a notebook shows of it.

The views are made from the trace and imported at need, so that the lab runs where no picture can be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_ctl.generation import Generation
from kafka_ctl.trace import Trace


class Pictures:
    """What of a lab can be seen."""

    generation: Generation

    @property
    def trace(self) -> Trace:
        raise NotImplementedError

    def player(self, view: str | Sequence[str] = "cluster", **options: Any) -> Any:
        """A player of the whole trace: step, rewind, jump, speed. Several views are kept in step.

        `view` is `cluster`, `partition`, `replica`, `spacetime`, `zookeeper`, `queue` or `timeline`; for options such
        as `start` (the first record's `seq`) and `limit` see `views/player.py`. Raises UnknownName for another view.
        """
        from kafka_ctl.views.player import player

        return player(self.trace, view, generation=self.generation.name, **options)

    def export(self, path: str | Path, view: str | Sequence[str] = "cluster", **options: Any) -> Path:
        """Write the run as a file that plays by itself: `.svg` (no script), `.html` (one file, no network), `.gif`.

        Raises BadInput for another ending, Unavailable when a tool is missing.
        """
        from kafka_ctl.views.export import export

        return export(self.trace, path, view, generation=self.generation.name, **options)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """In a notebook: the cluster as it is now, and the same in words."""
        from kafka_ctl.views.frames import film
        from kafka_ctl.views.still import still

        return {"text/plain": repr(self), "image/svg+xml": still(film(self.trace), caption=False)}
