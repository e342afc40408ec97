"""Widgets of the lessons: a curve with a parameter, a message in several versions, a run with settings to turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO

import ipywidgets

from kafka_ctl.display import Bundle, display_bundle
from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.jupyter.exercises import ALONE, GuessWidget
from kafka_ctl.views.widget.player import Player
from kafka_ctl_course.figures.drawing import Drawing
from kafka_ctl_course.figures.message_bytes import message_bytes
from kafka_ctl_course.figures.teaching import curve

__all__ = ["CurveWidget", "GuessWidget", "MessageWidget", "TurnWidget"]


class CurveWidget(ipywidgets.VBox):
    """A curve with a slider for its parameter, at first at its peak; the numbers there stand beside the lines."""

    def __init__(
        self, title: str, across: str, values: Sequence[float], lines: Mapping[str, Sequence[float]], **options: object
    ) -> None:
        self.given = title, across, tuple(values), dict(lines)
        self.picture = ipywidgets.HTML()
        self.slider = ipywidgets.SelectionSlider(
            options=[(f"{value:g}", place) for place, value in enumerate(values)],
            value=max(range(len(values)), key=lambda place: max(line[place] for line in lines.values())),
            description=across,
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="538px", max_width="100%"),
        )
        self.slider.observe(lambda change: self._draw(), "value")
        super().__init__([self.slider, self.picture], **options)
        self._draw()

    def _draw(self) -> None:
        self.picture.value = curve(*self.given, at=self.slider.value)._repr_mimebundle_()["text/html"]

    @property
    def drawing(self) -> Drawing:
        """The curve without a mark."""
        return curve(*self.given)

    def __repr__(self) -> str:
        return repr(self.drawing)

    def _repr_mimebundle_(self, **options: object) -> Bundle:
        """The widget and, where there is none, the curve as a picture and as text."""
        return display_bundle(super()._repr_mimebundle_(**options), self.drawing._repr_mimebundle_())


class MessageWidget(ipywidgets.VBox):
    """The same request in each of `messages`, by version; BadInput where there is none."""

    def __init__(self, messages: Mapping[int, bytes], **options: object) -> None:
        if not messages:
            raise BadInput("a message in no version has no bytes")
        self.messages = dict(sorted(messages.items()))
        self.picture = ipywidgets.HTML()
        self.slider = ipywidgets.SelectionSlider(
            options=list(self.messages), value=max(self.messages), description="version"
        )
        self.slider.observe(lambda change: self._draw(), "value")
        super().__init__([self.slider, self.picture], **options)
        self._draw()

    def drawing(self, version: int) -> Drawing:
        """One version, beside the one before it."""
        before = [each for each in self.messages if each < version]
        return message_bytes(self.messages[version], self.messages[before[-1]] if before else None)

    def _draw(self) -> None:
        self.picture.value = self.drawing(self.slider.value)._repr_mimebundle_()["text/html"]

    def __repr__(self) -> str:
        return "\n".join(f"version {version}: {len(data)} bytes" for version, data in self.messages.items())

    def _repr_mimebundle_(self, **options: object) -> Bundle:
        """The widget and, where there is none, the newest version as a picture and the sizes as text."""
        last = self.drawing(max(self.messages))._repr_mimebundle_()
        return display_bundle(super()._repr_mimebundle_(**options), last | {"text/plain": repr(self)})


class TurnWidget(ipywidgets.interactive):
    """Controls above a picture: `run(**settings)` runs again after each change, and returns the new picture.

        TurnWidget(story, retries=[1, 3, 5], seconds=(1, 20), unclean=False)

    A list becomes buttons, a pair a slider, `False` a box to tick; they begin with the defaults of `run`. The output of
    `run` stands above its picture, a drawing or a player, which opens at the last step if at no other. If the kit
    refuses the settings, its sentence stands there.
    """

    out: ipywidgets.Widget

    def __init__(self, run: Callable[..., Player | Drawing], **controls: object) -> None:
        super().__init__(run, **controls)
        self.add_class("kc-asks")
        for control in self.kwargs_widgets:
            control.description = control.description.replace("_", " ")
            control.style.description_width = "initial"
            control.continuous_update = False

    @staticmethod
    def widget_from_iterable(values: Iterable[object]) -> ipywidgets.ToggleButtons:
        """Buttons, so that a learner sees all values at once."""
        return ipywidgets.ToggleButtons(options=list(values), style={"button_width": "auto"})

    def update(self, *changes: object) -> None:
        """Run with the settings of the controls, and show the outcome."""
        values = [control.value for control in self.kwargs_widgets]
        self.kwargs = dict(zip(self.signature().parameters, values, strict=True))
        printed, before = StringIO(), self.out
        try:
            with redirect_stdout(printed):
                self.result = self.f(**self.kwargs)
        except KafkaCtlError as refusal:
            self.result = None
            printed.write(str(refusal))
        self.printed = printed.getvalue()
        if isinstance(self.result, Player):
            self.out = self.result
            self.result.index = self.result.index or -1
        else:
            self.out = ipywidgets.HTML(self.drawn["text/html"])
        self.children = (*self.kwargs_widgets, ipywidgets.HTML(f"{ALONE}<pre>{escape(self.printed)}</pre>"), self.out)
        before.close()

    @property
    def drawn(self) -> dict[str, str]:
        """The picture by MIME type, without the player's controls; empty after a refusal."""
        made = {} if self.result is None else self.result._repr_mimebundle_()
        bundle = made[0] if isinstance(made, tuple) else made
        return {kind: bundle.get(kind, "") for kind in ("text/html", "image/svg+xml", "text/plain")}

    @property
    def report(self) -> str:
        """The settings, and what was printed."""
        settings = ", ".join(f"{control.description}: {control.value}" for control in self.kwargs_widgets)
        return f"{settings}\n{self.printed}"

    def __repr__(self) -> str:
        return self.report + self.drawn["text/plain"]

    def _repr_mimebundle_(self, **options: object) -> Bundle:
        """The widget and, where there is none, its picture, with the settings and what was printed as text."""
        more = self.drawn | {"text/plain": repr(self)}
        more["text/html"] = f"<pre>{escape(self.report)}</pre>{more['text/html']}"
        return display_bundle(super()._repr_mimebundle_(**options), more)
