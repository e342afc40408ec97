"""Messages between the try-it page and Python, as JSON texts: `{"do": ..., ...}`.

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

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_ctl.browser import widgets
from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName, short
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Link, parse_fragment

if TYPE_CHECKING:
    from kafka_ctl.views.widget.live import Live

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

    def send(self, content: widgets.Content) -> None:
        """Say something to the page."""
        self.post(json.dumps(content))

    def receive(self, text: str) -> None:
        """Do what the page asks for; what goes wrong is a sentence on it."""
        try:
            self._do(_parsed(text))
        except KafkaCtlError as trouble:
            self.send({"do": "failed", "text": str(trouble)})

    def _do(self, content: widgets.Content) -> None:
        asked = content["do"]
        if asked == "start":
            if not isinstance(fragment := content.get("fragment"), str):
                raise BadInput(f"a page cannot start with {short(fragment)}; give the fragment of its address as text")
            self._start(parse_fragment(fragment) or EXAMPLE)
        elif asked == "link" and self.live is not None:
            self.send({"do": "link", "fragment": self.live.lab.link(self.live.index).partition("#")[2]})
        elif isinstance(model := content.get("model"), str) and model in widgets.MODELS:
            widgets.MODELS[model].receive_page(content)
        else:
            raise UnknownName("widget", short(model), widgets.MODELS)

    def _start(self, link: Link) -> None:
        widgets.install(self.send)
        from kafka_ctl.views.widget.live import Live

        lab = Lab.replay(link.story)
        self.live = Live(lab)
        if link.step is not None:
            self.live.index = min(link.step, len(self.live.live_film.frames) - 1)
        self.send({"do": "show", "model": self.live.model_id})


def _parsed(text: str) -> widgets.Content:
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
