"""Right and wrong answers to the exercises of lesson 09."""

from __future__ import annotations

from typing import Any


def takes_out(states: dict) -> Any:
    """The right lists, by a function that changes what it was given."""
    online = []
    for replica in list(states):
        if states[replica] == "OnlineReplica":
            online.append(replica)
            del states[replica]
    return online, list(states)


RIGHT: dict[str, list[Any]] = {
    "09.2": [lambda asked, newest: asked >= newest, lambda asked, newest: not asked < newest],
    "09.3": [takes_out],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "09.2": [
        (lambda asked, newest: asked > newest, "Equal is not old"),
        (lambda asked, newest: asked == newest, "This is how a broker hears of a new controller"),
        (lambda asked, newest: True, "was replaced and does not know it yet"),
        (lambda asked, newest: asked >= newest + 1 if newest else True, "your function answers False. Equal"),
        (lambda asked, newest: None, "True or False is expected"),
    ]
}
