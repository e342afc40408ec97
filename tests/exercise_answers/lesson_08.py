"""Right and wrong answers to the exercises of lesson 08."""

from __future__ import annotations

from typing import Any

HUNDRED = "write_znode /controller_epoch 100"


AGAIN = "delete_controller\nsettle\n"


RIGHT: dict[str, list[Any]] = {
    "08.1": [(5, 5), [5, 5]],
    "08.2": [lambda asked, newest: asked >= newest, lambda asked, newest: not asked < newest],
    "08.3": ["fences_writes", ["fences_writes", "broker_epochs"], {"fences_writes": True}],
    "08.4": [[HUNDRED, "delete_controller"], AGAIN * 3, "bounce 1\nsettle\nbounce 2\nsettle\nbounce 3\nsettle"],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "08.1": [
        ((5, 4), "So it is in 2.0"),
        ((4, 4), "the first controller counts, too"),
        ((1, 4), "Each election raises the epoch"),
        ((0, 0), "leaves `/controller_epoch` alone"),
        ("(5, 5)", "'(5, 5)' is text"),
        ((5, 6), "Look again at: the version"),
    ],
    "08.2": [
        (lambda asked, newest: asked > newest, "Equal is not old"),
        (lambda asked, newest: asked == newest, "This is how a broker hears of a new controller"),
        (lambda asked, newest: True, "was replaced and does not know it yet"),
        (lambda asked, newest: asked >= newest + 1 if newest else True, "your function answers False. Equal"),
        (lambda asked, newest: None, "True or False is expected"),
    ],
    "08.3": [
        ("checks_controller_epoch", "`checks_controller_epoch` is about something else"),
        ("ends_with_session", "`ends_with_session` is about something else"),
        ("broker_epochs", "`broker_epochs` is about something else"),
        ("preempts_queue", "`preempts_queue` is about something else"),
    ],
    "08.4": [
        ("delete_controller", "The brokers have seen epoch 4"),
        ("write_znode /controller_epoch 4", "keeps the epoch that it was elected with"),
        ("bounce 1", "the others have not"),
        ("create_topic more partitions=1", "refused like the last one"),
        ("""elect_preferred '["new-0"]'""", "the brokers refuse to hear of it"),
    ],
}
