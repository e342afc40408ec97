"""The exercises that have been solved: a small file in the folder of the course.

The folder is a learner's copy of the course, around the folder where the program runs, or the checkout. Elsewhere the
file is where this user's programs keep their data.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NotRequired, TypedDict

from kafka_ctl.paths import COURSE_LIST, IN_CHECKOUT, ROOT

FOLDER = "KAFKA_CTL_DATA"
"""An environment variable: the folder to use instead; empty, nothing is kept."""


NAME = ".kafka-ctl-progress.json"
"""The file in the folder of the course."""


class Entry(TypedDict):
    """The progress in one exercise: if it was ever solved, how often it was checked, the hints that were read."""

    solved: bool
    checks: int
    hints: int
    code: NotRequired[str]
    """The function of the last right answer, as source text."""


Progress = dict[str, Entry]
listeners: list[Callable[[], None]] = []
"""Called whenever something has changed."""
session_code: dict[str, str] = {}
"""The functions that solved exercises since the program began."""
UNSEEN: Entry = {"solved": False, "checks": 0, "hints": 0}


def place() -> Path | None:
    """The file; None where nothing is to be kept."""
    chosen = os.environ.get(FOLDER)
    if chosen is not None:
        return Path(chosen, "progress.json") if chosen else None
    here = Path.cwd()
    copies = (folder for folder in (here, *here.parents) if (folder / COURSE_LIST).is_file())
    if (course := next(copies, ROOT if IN_CHECKOUT else None)) is not None:
        return course / NAME
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "kafka_ctl" / "progress.json"


def storage(text: str | None = None) -> str:
    """The stored text; with `text`, store that instead.

    Everything goes through here: where there is no file system, this is the function to replace. A file that cannot be
    read or written is none: exercises work without it.
    """
    path = place()
    with suppress(OSError, UnicodeDecodeError):
        if path is not None and text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        if path is not None and text is None:
            return path.read_text(encoding="utf-8")
    return text or ""


def progress() -> Progress:
    """The progress in each exercise that was tried, by its name."""
    try:
        stored: object = json.loads(storage() or "{}")
    except ValueError:
        return {}
    if not isinstance(stored, dict):
        return {}
    return {name: _entry(each) for name, each in stored.items() if isinstance(each, dict)}


def _entry(stored: dict[str, object]) -> Entry:
    counts = {what: value if isinstance(value := stored.get(what), int) else 0 for what in ("checks", "hints")}
    entry: Entry = {"solved": stored.get("solved") is True, "checks": counts["checks"], "hints": counts["hints"]}
    return entry | {"code": code} if isinstance(code := stored.get("code"), str) else entry


def note_check(name: str, solved: bool, code: str = "") -> None:
    """Note a check of an exercise. An exercise that was solved once stays solved.

    `code` is the function that solved it.
    """
    known = progress()
    entry = known.get(name, UNSEEN)
    if code:
        session_code[name], entry = code, entry | {"code": code}
    _store(known | {name: {**entry, "solved": entry["solved"] or solved, "checks": entry["checks"] + 1}})


def kept_code() -> dict[str, str]:
    """The source text of each function that solved an exercise; without a file, those of this session."""
    return {name: entry["code"] for name, entry in progress().items() if "code" in entry} | session_code


def note_hint(name: str, number: int) -> None:
    """Note how many hints of an exercise have been read."""
    known = progress()
    entry = known.get(name, UNSEEN)
    _store(known | {name: {**entry, "hints": max(entry["hints"], number)}})


def reset() -> None:
    """Forget everything: as if no exercise had been tried."""
    session_code.clear()
    _store({})


def _store(known: Progress) -> None:
    storage(json.dumps(known, indent=1, sort_keys=True) + "\n")
    for listener in listeners:
        listener()
