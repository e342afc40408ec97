"""The shortest story that shows a difference: commands are left out as long as it stays."""

from __future__ import annotations

from collections.abc import Callable

from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.lab import story

ATTEMPTS = 60
"""So often a story is tried without one of its commands."""


def shortest(text: str, differs: Callable[[str], bool]) -> str:
    """A story with as few commands as can be found for which `differs` still holds; the given one, if for none.

    What cannot be played without a command that was left out does not count.
    """
    opening, *commands = map(str, story.parse(text))
    attempts, place = 0, len(commands) - 1
    while place >= 0 and attempts < ATTEMPTS:
        fewer = commands[:place] + commands[place + 1 :]
        attempts += 1
        if _still(differs, story_of(opening, fewer)):
            commands = fewer
        place -= 1
    return story_of(opening, commands)


def story_of(opening: str, commands: list[str]) -> str:
    """The text of a story."""
    return "\n".join([opening, *commands]) + "\n"


def _still(differs: Callable[[str], bool], text: str) -> bool:
    try:
        return differs(text)
    except KafkaCtlError:
        return False
