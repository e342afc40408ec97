"""The try-it page: a living cluster in a browser without Jupyter, and the part of anywidget that its widgets need.

The page and Python send each other JSON texts, `{"do": ..., ...}`:

    from the page   start {fragment}               open the run that the address names
                    set {model, traits}            a click has changed a trait
                    message {model, content}       what a widget's script sends
                    link {}                        make an address of the step that is shown
    to the page     open {model, traits}           a widget there is now
                    set, message                   as above, the other way round
                    show {model}                   draw it
                    link {fragment}                the address that was asked for
                    failed {text}                  what went wrong, in a sentence
"""

from __future__ import annotations

import itertools
import json
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import traitlets

from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName, short
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Link, parse_fragment

if TYPE_CHECKING:
    from kafka_ctl.views.widget.live import Live


Content = dict[str, object]
"""A message of the page, or to it, from JSON."""
Send = Callable[[Content], object]
MODELS: dict[str, AnyWidget] = {}
"""The widgets of the page, by their ids."""
_NUMBERS = itertools.count()


class AnyWidget(traitlets.HasTraits):
    """The base of the widgets, in the place of anywidget's: the same names, without Jupyter's comms."""

    post: Send

    def __init__(self, **options: object) -> None:
        self.model_id = f"widget-{next(_NUMBERS)}"
        self._listeners: list[Callable[..., object]] = []
        self._from_page = False
        super().__init__(**options)
        MODELS[self.model_id] = self
        synced = [name for name, trait in self.traits().items() if trait.metadata.get("sync")]
        self.post({"do": "open", "model": self.model_id, "traits": {name: getattr(self, name) for name in synced}})
        self.observe(self._changed, synced)

    def _changed(self, change: Mapping[str, object]) -> None:
        if not self._from_page:
            self.post({"do": "set", "model": self.model_id, "traits": {change["name"]: change["new"]}})

    def on_msg(self, listener: Callable[..., object]) -> None:
        """Call `listener(widget, content, buffers)` with every message of the page."""
        self._listeners.append(listener)

    def send(self, content: Content, buffers: object = None) -> None:
        """Send a message to the widget's script."""
        self.post({"do": "message", "model": self.model_id, "content": content})

    def close(self) -> None:
        """The page forgets the widget."""
        del MODELS[self.model_id]
        self.post({"do": "close", "model": self.model_id})

    def receive_page(self, content: Content) -> None:
        """Take what the page says of this widget: a `message`, or traits that were `set`."""
        if content["do"] == "message":
            for listener in self._listeners:
                listener(self, content.get("content"), [])
            return
        traits = content.get("traits")
        if content["do"] != "set" or not isinstance(traits, dict):
            raise BadInput(
                f"a widget of the page cannot do {short(content)}; it takes a message, or traits that are set"
            )
        self.set_state(traits)

    def set_state(self, sync_data: Mapping[str, object]) -> None:
        """Set the traits that the page has changed. Raises BadInput for a value that a trait cannot have."""
        self._from_page = True
        try:
            for name, value in sync_data.items():
                self.set_trait(name, value)
        except traitlets.TraitError as error:
            raise BadInput(f"the page cannot set {name}: {error}") from None
        finally:
            self._from_page = False


def install(post: Send) -> None:
    """Be what `import anywidget` finds; `post` sends to the page."""
    AnyWidget.post = staticmethod(post)
    module = types.ModuleType("anywidget")
    vars(module)["AnyWidget"] = AnyWidget
    sys.modules["anywidget"] = module


EXAMPLE = Link(
    """\
lab brokers=3 generation=2.0 seed=7
create_topic orders partitions=3 replication_factor=3
settle
"""
)
"""The run that is shown where the address names none."""


class Page:
    """One page and the lab that it shows; `post` sends a text to it."""

    def __init__(self, post: Callable[[str], object]) -> None:
        self.post = post
        self.live: Live | None = None

    def send(self, content: Content) -> None:
        """Say something to the page."""
        self.post(json.dumps(content))

    def receive(self, text: str) -> None:
        """Do what the page asks for; what goes wrong is a sentence on it."""
        try:
            self._do(_parsed(text))
        except KafkaCtlError as trouble:
            self.send({"do": "failed", "text": str(trouble)})

    def _do(self, content: Content) -> None:
        asked = content["do"]
        if asked == "start":
            if not isinstance(fragment := content.get("fragment"), str):
                raise BadInput(f"a page cannot start with {short(fragment)}; give the fragment of its address as text")
            self._start(parse_fragment(fragment) or EXAMPLE)
        elif asked == "link":
            if self.live is None:
                raise BadInput("there is no run to link to")
            self.send({"do": "link", "fragment": self.live.lab.link(self.live.index).partition("#")[2]})
        elif isinstance(model := content.get("model"), str) and model in MODELS:
            MODELS[model].receive_page(content)
        else:
            raise UnknownName("widget", short(model), MODELS)

    def _start(self, link: Link) -> None:
        install(self.send)
        from kafka_ctl.views.widget.live import Live

        lab = Lab.replay(link.story)
        self.live = Live(lab)
        if link.step is not None:
            self.live.index = min(link.step, len(self.live.live_film.frames) - 1)
        self.send({"do": "show", "model": self.live.model_id})


def _parsed(text: str) -> Content:
    """The contents of a page's message. Raises BadInput for a text that is not a message."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"a message of the page cannot be read: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("do"), str):
        raise BadInput(f'a message of the page cannot be {short(content)}; it says what to do: {{"do": "link"}}')
    return content


def connect(post: Callable[[str], object]) -> Callable[[str], None]:
    """Serve a page: `post` sends it a text, and what is returned takes a text from it."""
    return Page(post).receive
