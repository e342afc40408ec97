"""The living picture of a watched cluster: it grows while the cluster changes, and has no buttons that do anything.

Separate from `live.py` because a lab can be clicked, and a watched cluster only looked at.
"""

from __future__ import annotations

from threading import Lock

from kafka_ctl.trace.record import Recorder
from kafka_ctl.views.frames import Film
from kafka_ctl.views.widget.live import LiveFilm
from kafka_ctl.views.widget.player import Widget

MOST_STEPS = 40
"""The most steps that one look at the trace adds; more are joined."""


class Watching(Widget):
    """A player of all steps so far; `refresh` adds those of new records. It stays at the end if it was there.

    `views` are the views that can be turned to. `first` is the number of records about the cluster as it was found.
    """

    def __init__(self, trace: Recorder, first: int, views: tuple[str, ...] = ("cluster",)) -> None:
        self._lock = Lock()
        self.live_film, self.views = LiveFilm(trace, trace.generation, first), list(views)
        super().__init__(film=self._all(), index=self._length() - 1)

    def _all(self) -> dict[str, object]:
        return self.live_film.film_data(self.views) | {"asks": False}

    def _length(self) -> int:
        return len(self.live_film.frames)

    @property
    def builder(self) -> Film:
        """The film of the first view."""
        return self.live_film.builders[self.views[0]][0].film

    def refresh(self) -> None:
        """Show all records since the last time; any thread may ask for it."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        last, before = self._length() - 1, self.live_film.place
        self.live_film.read(MOST_STEPS)
        if self.live_film.place == before:
            return
        if self.live_film.too_long:
            self.live_film.forget()
        if self._length() - 1 != last:
            at = self._length() - 1 if self.index == last else min(self.index, self._length() - 1)
            with self.hold_trait_notifications():
                self.film = self._all()
                self.index = at
