"""The lab in pictures: the live cluster, players, exports, and what a notebook shows of it.

The views are made from the trace and imported at need, so that the lab runs where no picture can be drawn.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_ctl.errors import BadInput, Unavailable, needed_for, short
from kafka_ctl.lab.time_travel import TimeTravel

if TYPE_CHECKING:
    from kafka_ctl.views.live import Live
    from kafka_ctl.views.player import Player
    from kafka_ctl.views.why import Why

MOST_DRAWN = 100_000
"""Records from which a notebook still draws a lab unasked; more would keep the kernel busy for seconds."""


class Rendering(TimeTravel):
    """What of a lab can be seen."""

    _live: Live | None = None

    def live(self, theme: str = "auto") -> Live:
        """The living cluster as a notebook widget: click a thing to do something to it; every click is a call.

        `theme` is `auto`, `light` or `dark`. The same widget every time, so that two displays show the same.
        """
        from kafka_ctl.views.options import check_theme

        check_theme(theme)
        if self._live is None:
            from kafka_ctl.views.widget.live import Live

            self._live = Live(self, theme=theme)
        self._live.refresh()
        return self._live

    def why(self, seq: int, lines: bool | None = None) -> Why:
        """Why the record `seq` came about: the rule, its inputs, what it decided, what it would have otherwise.

        The lines that ran are marked up to record 50,000, or with `lines` never or always: for that the story is
        replayed twice, in eight times the time it took. Raises BadInput when there is no such record.
        """
        from kafka_ctl.views.explain.executed_lines import lines_of
        from kafka_ctl.views.explain.why import MOST_REPLAYED, why

        if lines is not None and not isinstance(lines, bool):
            raise BadInput(f"lines cannot be {short(lines)}; it is True, False or None")
        most = MOST_REPLAYED if lines is None else inf if lines else -1
        return why(self.trace, seq, self.generation, lines_of(self), most)

    def player(self, view: str | Sequence[str] = "cluster", **options: Any) -> Player:
        """A player of the whole trace: step, rewind, jump, speed. Several views are kept in step.

        `view` is `cluster`, `partition`, `replica`, `spacetime`, `zookeeper`, `queue` or `timeline`; for options such
        as `start` (the first record's `seq`) and `limit` see `views/widget/player.py`. Raises UnknownName for another
        view.
        """
        with needed_for("a player"):
            from kafka_ctl.views.explain.executed_lines import lines_of
            from kafka_ctl.views.options import check_own
            from kafka_ctl.views.widget.player import player

        check_own("player", options)
        return player(self.trace, view, generation=self.generation.name, lines=lines_of(self), **options)

    def export(self, path: str | Path, view: str | Sequence[str] = "cluster", **options: Any) -> Path:
        """Write the run as a file that plays by itself: `.svg` (no script), `.html` (one file, no network), `.gif`.

        It begins where the first command was given, when the cluster had started; with `start=0` at the first record.
        Raises BadInput for another ending, Unavailable when a tool is missing.
        """
        from kafka_ctl.views.explain.executed_lines import lines_of
        from kafka_ctl.views.export import export
        from kafka_ctl.views.options import check_own

        check_own("export", options)
        if self.commands and self.commands[0].seq < len(self.trace):
            options.setdefault("start", self.commands[0].seq)
        return export(self.trace, path, view, generation=self.generation.name, lines=lines_of(self), **options)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, str], dict[str, object]]:
        """In a notebook: the living cluster; where no widget can run, the cluster as it is now, and in words."""
        if len(self.trace) > MOST_DRAWN:
            return {"text/plain": repr(self)}, {}
        try:
            from kafka_ctl.views.frames import film
            from kafka_ctl.views.static_svg import static_svg

            shown = None if self.closed else self.live()
            picture = static_svg((shown and shown.builder) or film(self.trace), caption=False)
        except (ModuleNotFoundError, Unavailable):  # nothing to draw with: words will do
            return {"text/plain": repr(self)}, {}
        coded = base64.b64encode(picture.encode()).decode()
        image = f'<img alt="{escape(repr(self))}" style="max-width:100%" src="data:image/svg+xml;base64,{coded}">'
        bundle = {"text/html": image, "image/svg+xml": picture, "text/plain": repr(self)}
        if shown is None:
            return bundle, {}
        made = shown._repr_mimebundle_(**options)
        widget, meta = made if isinstance(made, tuple) else (made or {}, {})
        return {**widget, **bundle}, meta
