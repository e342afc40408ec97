"""The part of anywidget that the kit's widgets need, for a page without Jupyter: synchronised traits, and messages.

Separate from `page.py` because it stands in for a library, which that one uses.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Mapping

import traitlets

from kafka_ctl.errors import BadInput, short

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
        self._from_page = True
        try:
            for name, value in traits.items():
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
