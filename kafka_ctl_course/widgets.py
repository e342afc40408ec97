"""Widgets of the lessons: a curve with a parameter to turn, and a message in several versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets

from kafka_ctl.errors import BadInput
from kafka_ctl.jupyter.widgets import Bundle, GuessWidget, display_bundle
from kafka_ctl_course.figures.drawing import Drawing
from kafka_ctl_course.figures.message_bytes import message_bytes
from kafka_ctl_course.figures.teaching import curve

__all__ = ["CurveWidget", "GuessWidget", "MessageWidget"]


class CurveWidget(ipywidgets.VBox):
    """A curve with a slider for its parameter; the numbers at the slider stand below it."""

    def __init__(
        self, title: str, across: str, values: Sequence[float], lines: Mapping[str, Sequence[float]], **options: object
    ) -> None:
        self.given = title, across, tuple(values), dict(lines)
        self.picture = ipywidgets.HTML()
        self.slider = ipywidgets.SelectionSlider(
            options=[(f"{value:g}", place) for place, value in enumerate(values)],
            description=across,
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="560px"),
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
        self.slider = ipywidgets.SelectionSlider(options=list(self.messages), description="version")
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
