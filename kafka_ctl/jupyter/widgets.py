"""Widgets of the lessons: a guess to commit to before a cell is run, and a curve with a parameter to turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets

from kafka_ctl.errors import UnknownName
from kafka_ctl.exercises.checking import GUESSES
from kafka_ctl.views.teaching import Drawing, curve


class GuessWidget(ipywidgets.VBox):
    """The question `name` with a button for each option; a click commits, and is answered."""

    def __init__(self, name: str, **options: Any) -> None:
        if name not in GUESSES:
            raise UnknownName("guess", name, GUESSES)
        self.guess = GUESSES[name]
        self.reply = ipywidgets.HTML()
        wide = ipywidgets.Layout(width="auto", max_width="480px")
        self.buttons = [ipywidgets.Button(description=text, layout=wide) for text, _ in self.guess.options]
        for number, button in enumerate(self.buttons):
            button.on_click(lambda _, number=number: self.choose(number))
        question = ipywidgets.HTML(f"<b>Guess first.</b> {escape(self.guess.question)}")
        super().__init__([question, *self.buttons, self.reply], **options)

    def choose(self, number: int) -> None:
        """Commit to one option: it is marked, and the others cannot be chosen any more."""
        for place, button in enumerate(self.buttons):
            button.disabled = True
            button.icon = "check" if place == number else ""
        option, said = self.guess.options[number]
        self.reply.value = f"You say: <i>{escape(option)}</i>. {escape(said)}"

    def __repr__(self) -> str:
        return self.guess.text

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget and, where there is none, the question as text."""
        return shown(super()._repr_mimebundle_(**options), {"text/plain": repr(self)})


class CurveWidget(ipywidgets.VBox):
    """A curve with a slider for its parameter; the numbers at the slider stand below it."""

    def __init__(
        self, title: str, across: str, values: Sequence[float], lines: Mapping[str, Sequence[float]], **options: Any
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

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget and, where there is none, the curve as a picture and as text."""
        return shown(super()._repr_mimebundle_(**options), self.drawing._repr_mimebundle_())


def shown(shown: Any, more: dict[str, str]) -> Any:
    """What a widget shows, and what shows without it."""
    bundle, meta = shown if isinstance(shown, tuple) else (shown or {}, {})
    return {**bundle, **more}, meta
