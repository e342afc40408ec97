"""Names for steps of a film: what a link in the prose beside a player leads to, also when a step gets another number.

`lab.player(marks={"race-lost": "already elected"})` names the first step whose caption has these words; a link
`[the race is lost](#step-race-lost)` in a notebook's text goes there, and is marked while that step is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape

from kafka_ctl.errors import BadInput, short
from kafka_ctl.trace.record import Record
from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, Frame

Where = str | int | Callable[[Record], bool]
"""A step: words of its caption, the `seq` of one of its records, or a question that one of its records answers."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LINK = re.compile(r"\[([^\[\]]+)\]\(#step-([\w-]+)\)")


def find_marks(film: Film, records: Sequence[Record], marks: Mapping[str, Where]) -> dict[str, int]:
    """Name -> number of the first step that it fits; BadInput for other names and places, and where no step fits."""
    if not isinstance(marks, Mapping):
        raise BadInput(f"marks cannot be {short(marks)}; it is a dict such as {{'race-lost': 'already elected'}}")
    by_seq = {record.seq: record for record in records}
    found = {}
    for name, where in marks.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(f"a mark's name cannot be {short(name)}; it has only a to z, 0 to 9, -: 'race-lost'")
        frame = next((frame for frame in film.frames if _fits(frame, where, by_seq)), None)
        if frame is None:
            raise BadInput(f"the mark {name!r} fits no step: {_wanted(where)} is in none of the {len(film)} steps")
        found[name] = frame.index
    return found


def _fits(frame: Frame, where: Where, by_seq: Mapping[int, Record]) -> bool:
    if isinstance(where, str) and where:
        return where in frame.caption
    if isinstance(where, int) and not isinstance(where, bool):
        return where in frame.seqs
    if callable(where):
        return any(where(by_seq[seq]) for seq in frame.seqs)
    raise BadInput(f"a mark cannot stand at {short(where)}; give words of a caption, a record's seq, or a function")


def _wanted(where: Where) -> str:
    return (
        f"what {short(where)} asks for"
        if callable(where)
        else f"record {where}"
        if isinstance(where, int)
        else repr(where)
    )


def prose_html(text: str, marks: Mapping[str, int]) -> str:
    """Plain text with links such as `[here](#step-race-lost)` as HTML paragraphs; BadInput for a link to no mark."""

    def link(found: re.Match[str]) -> str:
        if found[2] not in marks:
            known = ", ".join(marks) or "none"
            raise BadInput(f"the text links to the step {found[2]!r}, which is no mark; marks: {known}")
        return f'<a href="#step-{found[2]}">{found[1]}</a>'

    parts = [part.strip() for part in re.split(r"\n\s*\n", printable(text)) if part.strip()]
    return "".join(f"<p>{_LINK.sub(link, escape(part, quote=False))}</p>" for part in parts)
