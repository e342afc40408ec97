"""The player: a notebook widget that steps, rewinds, jumps and plays through a film.

The pictures are laid out in Python; the browser only changes looks (`player.js`, no import, no build, no
network). Where no widget can run, the same display shows the step at which the player opens, or a filmstrip if that is
the first one, and the steps as text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import anywidget
import traitlets

from kafka_ctl.display import Bundle, display_bundle
from kafka_ctl.errors import BadInput, short
from kafka_ctl.trace.record import Record
from kafka_ctl.views.dot import printable
from kafka_ctl.views.explain.source import Lines
from kafka_ctl.views.explain.why import Explainer
from kafka_ctl.views.frames import Film, check_player, film, find_marks, relevant_to, views_of
from kafka_ctl.views.svg import filmstrips, stacked, static_svg
from kafka_ctl.views.widget.payload import PLAYER, SHEET, Data, number_in, payload, read_message, with_log


class Widget(anywidget.AnyWidget):
    """A widget that shows frames in the browser.

    `index` is the frame shown and can be set, -1 for the last; `selected` is what was clicked: `broker:1`,
    `partition:a-0`.
    """

    _esm: object = PLAYER
    _css = SHEET

    film = traitlets.Dict().tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)
    loop = traitlets.Bool(False).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    theme = traitlets.Enum(["auto", "light", "dark"], "auto").tag(sync=True)
    own = traitlets.Unicode("").tag(sync=True)
    """The id of the widget's model, by which the browser sees whether Python still answers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.own = self.model_id or ""

    def __len__(self) -> int:
        return len(self.film["frames"])

    def set_state(self, sync_data: Mapping[str, object]) -> None:
        """Set the traits that the page has changed; a step that is no longer there becomes the last one."""
        index = sync_data.get("index")
        if isinstance(index, int):
            sync_data = {**sync_data, "index": min(index, len(self) - 1)}
        super().set_state(sync_data)

    @traitlets.validate("index")
    def _in_range(self, proposal: Mapping[str, int]) -> int:
        if not -len(self) <= proposal["value"] < len(self):
            raise BadInput(f"step {short(proposal['value'])} does not exist; the steps are 0 to {len(self) - 1}")
        return proposal["value"] % len(self)

    @traitlets.validate("speed")
    def _above_zero(self, proposal: Mapping[str, float]) -> float:
        check_player({"speed": proposal["value"]})
        return proposal["value"]


class Player(Widget):
    """Films of one stretch of a trace, played together; made by `player`.

        from kafka_ctl import Lab
        player = Lab(brokers=3).player("zookeeper")
        player.index = len(player) - 1
        player.speed = 2
        player

    The views are kept in step. `runs` are those that answer "why?": the one of all films, or one of each film.
    """

    def __init__(
        self, films: Sequence[Film], data: Data | None = None, runs: Sequence[Explainer] = (), **options: Any
    ) -> None:
        self.films, self.runs = tuple(films), tuple(runs)
        super().__init__(film=data or payload(self.films), **options)
        self.on_msg(lambda _, asked, buffers: self.receive(asked))

    def receive(self, content: object) -> None:
        """Answer the browser: `{"do": "why", "frame": 3}`, of two runs with `"side": 1`; ignore others."""
        try:
            asked = read_message(content)
            if asked["do"] != "why" or not self.runs:
                return
            side = number_in(asked, "side", len(self.runs)) if len(self.runs) > 1 else 0
            seqs = self.films[side].frames[number_in(asked, "frame", len(self))].seqs
        except BadInput as refusal:
            self.send({"do": "refused", "text": str(refusal)})
            return
        for found in self.runs[side].explanations(seqs) if seqs else ():
            self.send({**asked, "why": found})

    def __repr__(self) -> str:
        return self.films[0].text()

    def _repr_mimebundle_(self, **options: Any) -> Bundle:
        """The widget and its replacements: a picture as SVG and as an image, the steps as text.

        The picture is the step that is shown or, of a player at its first step, a filmstrip.
        """
        shown = super()._repr_mimebundle_(**options)
        index = self.index
        still = stacked(self.films, [static_svg(one, index) for one in self.films]) if index else filmstrips(self.films)
        coded = base64.b64encode(still.encode()).decode()
        titles = ", ".join(film.title for film in self.films)
        alt = escape(printable(f"{titles} in pictures; the steps are listed as text."))
        picture = f'<img alt="{alt}" style="max-width:none" src="data:image/svg+xml;base64,{coded}">'
        return display_bundle(shown, {"text/html": picture, "image/svg+xml": still, "text/plain": repr(self)})


def player(records: Sequence[Record], view: str | Sequence[str] = "cluster", **options: Any) -> Player:
    """A player of these records.

    `view` is `cluster`, `partition`, `replica`, `spacetime` or `zookeeper`, or several of them, which then
    keep step. Options: those of `film` in `views/frames.py` (`start`, `limit` ...), `index`, `speed`, `loop`,
    `theme`, `marks` (names of steps for links in the prose, see `views/frames.py`), and `lines` (what finds the lines
    that ran, see `views/explain/source.py`). `index` is a number, -1 for the last step, one of the marks, or
    words: the player opens at the first step with them in its sentence. Raises UnknownName for another view, BadInput
    for an empty trace.
    """
    names = ("index", "speed", "loop", "theme", "playing")
    own: Data = {name: options.pop(name) for name in names if name in options}
    lines: Lines | None = options.pop("lines", None)
    marks, at = options.pop("marks", {}), own.get("index")
    if isinstance(at, str):
        own["index"] = 0
    check_player(own)
    views = views_of(view)
    options.setdefault("is_relevant", relevant_to(views))
    films = [film(records, name, (*names, "marks"), **options) for name in views]
    data, runs = with_log(films, records, options, lines)
    if marks:
        data["marks"] = find_marks(films[0], records, marks)
    if isinstance(at, str):
        own["index"] = data["marks"][at] if at in marks else find_marks(films[0], records, {"index": at})["index"]
    return Player(films, data, runs, **own)
