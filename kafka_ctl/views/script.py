"""A lab's story as Python: what can be pasted into a cell and makes the same run."""

from __future__ import annotations

import json
from typing import Any

from kafka_ctl.lab.story import REFUSED, UNTIL, Command


def script(lab: Any, name: str = "lab") -> list[str]:
    """One line for the lab and one for each command given so far.

    What has no call of its own (a description, what things cost, a run stopped at a record, a command that was
    refused) becomes the story that replays it.
    """
    opening, commands = lab._opening(), list(lab.commands)
    replayed = max((place + 1 for place, c in enumerate(commands) if c.name in (UNTIL, REFUSED)), default=0)
    lines = []
    if replayed or {"description", "costs", "plugins"} & opening.keys():
        text = "".join(f"{line}\n" for line in [Command("lab", (), opening), *commands[:replayed]])
        more = "".join(f", {what}={what}" for what in lab.plugins.given)  # functions, which no text can hold
        lines.append(f"{name} = Lab.replay({_plain(text)}{more})")
    else:
        lines.append(f"{name} = Lab({_arguments(opening)})")
    return lines + [call(command, name) for command in commands[replayed:]]


def call(command: Command, name: str = "lab") -> str:
    """One command as the call that gives it."""
    arguments = [_plain(value) for value in command.args]
    arguments += [f"{key}={_plain(value)}" for key, value in command.kwargs.items()]
    return f"{name}.{command.name}({', '.join(arguments)})"


def _arguments(opening: dict[str, Any]) -> str:
    given = dict(opening)
    changes = given.pop("changes", {})
    if changes:
        text = ", ".join(f"{key}={value!r}" for key, value in changes.items())
        given["generation"] = f"Generation({_plain(given['generation'])}, {text})"
    brokers = given.get("brokers")
    if isinstance(brokers, list) and brokers == list(range(1, len(brokers) + 1)):
        given["brokers"] = len(brokers)
    raw = {"generation"} if changes else set()
    return ", ".join(f"{key}={value if key in raw else _plain(value)}" for key, value in given.items())


def _plain(value: Any) -> str:
    """A value as one would type it: a pair and a partition look alike, a word of an enumeration is a text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_plain, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False) if value.isprintable() else repr(str(value))
    return repr(value)
