"""The widgets of exercises: which have been solved, after each check, and a question to answer before a cell is run.

Separate from `kafka_ctl_course/widgets.py` because the kit's part of a question knows no course.
"""

from __future__ import annotations

import re
from html import escape
from itertools import groupby

import ipywidgets
import traitlets

from kafka_ctl.display import Bundle, display_bundle
from kafka_ctl.errors import Unavailable, UnknownName
from kafka_ctl.exercises import progress_file
from kafka_ctl.exercises.checking import GUESSES, Row, in_columns, rows, summary
from kafka_ctl.exercises.exercise import Guess, PictureGuess
from kafka_ctl.lab.lab import Lab
from kafka_ctl.paths import import_from_checkout
from kafka_ctl.views.captions import listed
from kafka_ctl.views.frames import film
from kafka_ctl.views.widget.payload import GUESS
from kafka_ctl.views.widget.player import Player

MARKS = {True: "✓ ", False: ""}


class ProgressWidget(ipywidgets.VBox):
    """A table of the exercises, and a button that forgets what was solved and restores the notebooks of learners."""

    def __init__(self, **options: object) -> None:
        self.table = ipywidgets.HTML()
        self.button = ipywidgets.Button(
            description="Start anew", tooltip="Forget what was solved, restore the notebooks"
        )
        self.sure = ipywidgets.Button(description="Yes, all anew", button_style="warning")
        self.sure.layout.display = "none"
        self.button.on_click(lambda _: self._ask(True))
        self.sure.on_click(lambda _: self._reset())
        self.reply = ipywidgets.HTML()
        super().__init__([self.table, ipywidgets.HBox([self.button, self.sure]), self.reply], **options)
        progress_file.listeners.append(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the stored progress."""
        found = rows()
        parts = [f"<p><b>{escape(summary(found))}</b></p>"]
        parts += [_lesson(name, list(group)) for name, group in groupby(found, key=lambda row: row.lesson)]
        self.table.value = "".join(parts)

    def close(self) -> None:
        """Follow no longer."""
        if self.refresh in progress_file.listeners:
            progress_file.listeners.remove(self.refresh)
        super().close()

    def _ask(self, open: bool) -> None:
        self.sure.layout.display = "" if open else "none"

    def _reset(self) -> None:
        progress_file.reset()
        self.reply.value = escape(restore_notebooks())
        self._ask(False)

    def __repr__(self) -> str:
        return summary(rows())


def restore_notebooks() -> str:
    """Restore the starters in a checkout, and say which were restored."""
    stored = progress_file.place()
    kept = None if stored is None else stored.parent / "starters"
    try:
        names = import_from_checkout("tools.editions").restore(kept)
    except Unavailable:
        return "What was solved is forgotten."
    if not names:
        return "What was solved is forgotten; no notebook had to be restored."
    where = "" if kept is None else f" What they were is kept in {kept}."
    return f"What was solved is forgotten. Restored: {', '.join(names)}.{where} Close and reopen those that are open."


def _lesson(name: str, rows: list[Row]) -> str:
    """One lesson as a table; solved exercises have a mark, not only a colour."""
    lines = "".join(
        f"<tr><td>{row.name}</td><td>{row.kind}</td><td>{escape(row.title)}</td>"
        f"<td>{MARKS[row.solved]}{row.state}</td></tr>"
        for row in rows
    )
    caption = f'<caption style="text-align: left">{escape(name)}</caption>'
    return f'<table style="border-spacing: 12px 2px">{caption}{lines}</table>'


OPTIONS = """<style>
.kc-option.jupyter-button { font: 13px/26px Helvetica, Arial, sans-serif; height: 28px; padding: 0 10px;
  border: 1px solid var(--jp-border-color0, #57606a); border-radius: 5px;
  background: var(--jp-layout-color0, #fff); color: var(--jp-content-font-color1, #1f2328); }
.kc-option.jupyter-button:hover:enabled { border-color: #0072b2; box-shadow: none; }
.kc-option.jupyter-button:is(.kc-right, .kc-wrong) { opacity: 1; border-width: 2px; line-height: 24px; }
.kc-option.jupyter-button.kc-right { border-color: #00735a; }
.kc-option.jupyter-button.kc-wrong { border-color: #c24a00; border-style: dashed; }
.kc-question .widget-html-content { height: auto; line-height: 1.5; }
</style>"""
"""The look of the kit for buttons of Jupyter, in its light and dark themes."""
ALONE = """<style>
.kc-asks .jupyter-widgets-disconnected::before { content: none; }
.kc-asks.jupyter-widgets-disconnected::before { font: inherit; color: inherit; text-align: left;
  content: "Python was restarted, or is not running. Run the cell again to go on."; }
.kc-asks .kc .gone { display: none; }
</style>"""
"""Without Python, one sentence above a widget of class `kc-asks`, not an icon of Jupyter at each of its parts."""
VERDICTS = ("Not right", "Right")
NONE = "none"
"""The guess, or the outcome, that names no thing of the picture."""


def _html(text: str) -> str:
    """A text of an exercise for the page, with the parts in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


class GuessPicture(Player):
    """The picture of a question: `guessed` are the things that were clicked, while it is `answering`; then `right`."""

    _esm: str = GUESS
    clicked: frozenset[str] | None = None
    """`guessed` as the last click left it; the trait may come later. None before a click."""

    kind = traitlets.Unicode("broker").tag(sync=True)
    many = traitlets.Bool(False).tag(sync=True)
    guessed = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answering = traitlets.Bool(True).tag(sync=True)
    right = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def receive(self, content: object) -> None:
        """Take what the browser's clicks chose, `{"do": "guess", "guessed": ["broker:2"]}`, before the trait has it."""
        match content:
            case {"do": "guess", "guessed": [*things]}:
                self.clicked = frozenset(map(str, things))
            case _:
                super().receive(content)


class GuessWidget(ipywidgets.VBox):
    """The question `name`, to be answered before a cell is run: with a button for each option, or in a picture.

    A click commits, and is answered; in a picture the run follows that shows it. UnknownName for another question.
    """

    picture: GuessPicture | None = None

    def __init__(self, name: str, **options: object) -> None:
        if name not in GUESSES:
            raise UnknownName("guess", name, GUESSES)
        self.guess = GUESSES[name]
        self.reply = ipywidgets.HTML()
        question = self.guess.question if isinstance(self.guess, Guess) else self.guess.text
        asked = ipywidgets.HTML(f"{OPTIONS}{ALONE}<b>Guess first.</b> {_html(question)}")
        self.buttons: list[ipywidgets.Button] = []
        between = self._options(self.guess) if isinstance(self.guess, Guess) else self._picture(self.guess)
        for button in self.buttons:
            button.add_class("kc-option")
        self.asked: list[ipywidgets.Widget] = [asked, *between, self.reply]
        super().__init__(self.asked, **options)
        self.add_class("kc-asks").add_class("kc-question")

    def _options(self, guess: Guess) -> list[ipywidgets.Widget]:
        wide = ipywidgets.Layout(width="auto", max_width="480px")
        self.buttons = [ipywidgets.Button(description=text, layout=wide) for text, _ in guess.options]
        for number, button in enumerate(self.buttons):
            button.on_click(lambda _, number=number: self.choose(number))
        return list(self.buttons)

    def _picture(self, guess: PictureGuess) -> list[ipywidgets.Widget]:
        self.lab = Lab.replay(guess.before)
        before = film(self.lab.trace, start=len(self.lab.trace), generation=self.lab.generation.name)
        self.picture = GuessPicture([before], kind=guess.kind, many=guess.kind == "partition")
        self.buttons = [ipywidgets.Button(description="Commit" if self.picture.many else "No broker")]
        self.buttons[0].on_click(lambda _: self.commit())
        if not self.picture.many:
            self.picture.observe(lambda change: self.commit(), "guessed")
        return [self.picture, *self.buttons]

    def choose(self, number: int) -> None:
        """Commit to one option: it is marked as right or as wrong, and the others cannot be chosen any more."""
        assert isinstance(self.guess, Guess)
        for button in self.buttons:
            button.disabled = True
        right = number == self.guess.right
        self.buttons[number].icon = "check" if right else "times"
        self.buttons[number].add_class("kc-right" if right else "kc-wrong")
        option, reply = self.guess.options[number]
        self.reply.value = f"You say: <i>{_html(option)}</i>. {VERDICTS[right]}. {_html(reply)}"

    def commit(self) -> None:
        """Commit to what is chosen in the picture, nothing meaning none of them; the run and the reason follow."""
        guess, picture = self.guess, self.picture
        if not isinstance(guess, PictureGuess) or picture is None or not picture.answering:
            return
        picture.answering, self.buttons[0].disabled = False, True
        chosen = frozenset(picture.guessed) if picture.clicked is None else picture.clicked
        mine = chosen or frozenset({NONE})
        with Lab.replay(guess.before + guess.run) as run:
            right = guess.outcome(run) or frozenset({NONE})
            played = run.player("cluster", start=len(self.lab.trace), limit=60, playing=True)
        picture.right = sorted(right)
        remarks = [guess.hints[one] for one in sorted(mine - right) if one in guess.hints]
        mine_named, right_named = (escape(names(things, guess.kind)) for things in (mine, right))
        reply = [
            f"You say: <i>{mine_named}</i>. {VERDICTS[mine == right]}: in the run it is {right_named}.",
            *map(_html, [*remarks, guess.why]),
        ]
        self.reply.value = " ".join(reply)
        self.children = (*self.asked, played)

    def __repr__(self) -> str:
        return in_columns(self.guess.text)

    def _repr_mimebundle_(self, **options: object) -> Bundle:
        """The widget or, where widgets cannot be shown, the question as text, with its picture if it has one."""
        more = {"text/plain": repr(self)}
        if self.picture is not None:
            drawn = self.picture._repr_mimebundle_()[0]
            more |= {kind: drawn[kind] for kind in ("text/html", "image/svg+xml")}
        return display_bundle(super()._repr_mimebundle_(**options), more)


def names(things: frozenset[str], kind: str) -> str:
    """Things of a picture in words: `broker 2`, `orders-0 and orders-2`, `no partition`."""
    if things == {NONE}:
        return f"no {kind}"
    return listed([one.removeprefix("partition:").replace(":", " ") for one in sorted(things)], 8)
