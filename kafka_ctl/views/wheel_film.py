"""The timing wheel as a film: rings that turn, tasks that come down from ring to ring, the delay queue, watch lists.

It is made from the journal of a timer (`brokers/timing_wheel.py`), to which its purgatory adds what it does; no cluster
is needed. One ring for each level, the finest inside, with its hand; a task stands in its bucket with the time at which
it is due, and goes inwards when the bucket expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_ctl.brokers.purgatory import Change, DelayedOperation
from kafka_ctl.brokers.timing_wheel import Move, Task, TimingWheel, Where
from kafka_ctl.errors import BadInput, needed_for, short
from kafka_ctl.views.export import checked, write
from kafka_ctl.views.frames import Film, Frame, PartState, Picture, interpolate_positions
from kafka_ctl.views.wheel_scene import WheelDrawing, WheelState

if TYPE_CHECKING:
    from kafka_ctl.views.widget.player import Player

Entry = Move | Change
JOINS = {"demote": ("expire",), "run": ("expire",), "expire": ("expire",), "complete": ("cancel",),
         "drop": ("cancel", "complete", "purge", "expire", "drop")}  # fmt: skip
"""What belongs to the step that is under way, by the kinds of that step; anything else begins a new one."""
KINDS = {"poll": "expire", "watch": "wait", "run": "run"}
"""What a step that begins with such an entry is called, where not by the entry's own name."""


@dataclass
class WheelStep:
    """One step: what happened together."""

    kind: str
    entries: list[Entry] = field(default_factory=list)


def steps_of(journal: Iterable[Entry]) -> list[WheelStep]:
    """The entries of a journal by step: a bucket with all its tasks, an operation with all its keys and its timer."""
    found: list[WheelStep] = []
    for entry in journal:
        now = found[-1] if found else WheelStep("")
        last = now.entries[-1] if now.entries else None
        same_operation = isinstance(last, Change) and last.what == "watch" and (
            entry.what == "add" or (isinstance(entry, Change) and entry.operation is last.operation)
        )  # fmt: skip
        if same_operation or now.kind in JOINS.get(entry.what, ()):
            now.entries.append(entry)
            if entry.what == "complete":
                now.kind = "complete"
        else:
            found.append(WheelStep(KINDS.get(entry.what, entry.what), [entry]))
    return found


def film(wheel: TimingWheel, *, limit: int = 400) -> Film:
    """The film of everything that a timing wheel, and the purgatory it serves, has done so far.

    Where that is more than `limit` steps, several share a frame. Raises BadInput for a wheel without a journal, one
    that has done nothing, and one of more buckets than can be drawn.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise BadInput(f"limit cannot be {short(limit)}; it is a number of frames, 1 or more")
    if wheel.journal is None:
        raise BadInput("nothing to show: this timer keeps no journal; make it with journal=True")
    if not wheel.journal:
        raise BadInput("nothing to show: nothing has been added to this timer yet")
    steps = steps_of(wheel.journal)
    drawing = WheelDrawing(wheel, wheel.journal)
    made, builder = Film("wheel", "Timing wheel", drawing.scene), _FilmBuilder(drawing, wheel)
    made.frames.append(Frame(0, "start", wheel.start, "Before the first task.", builder.picture([])))
    each = -(-len(steps) // limit)
    for first in range(0, len(steps), each):
        together = steps[first : first + each]
        entries = [entry for step in together for entry in step.entries]
        caption = caption_of(together[0]) if each == 1 else counted(entries)
        frame = Frame(len(made.frames), together[-1].kind, entries[-1].time, caption, builder.picture(entries))
        made.frames.append(frame)
    interpolate_positions(made.frames)
    return made


def player(wheel: TimingWheel, *, limit: int = 400, **options: Any) -> Player:
    """A player of that film; options are `index`, `speed`, `loop`, `theme` and `playing`, as for a lab's player."""
    with needed_for("a player"):
        from kafka_ctl.views.options import check_player
        from kafka_ctl.views.widget.player import Player

    check_player(options)
    return Player([film(wheel, limit=limit)], **options)


def export(wheel: TimingWheel, path: str | Path, *, limit: int = 400) -> Path:
    """Write that film to a file, `.svg`, `.html`, `.png` or `.gif`, as `export` of a lab does; returns its path."""
    path = checked(path)
    return write([film(wheel, limit=limit)], path)


class _FilmBuilder:
    """Follows the journal, and keeps how every part was shown last."""

    def __init__(self, drawing: WheelDrawing, wheel: TimingWheel) -> None:
        self.drawing, self.shown = drawing, dict[str, PartState]()
        self.now = WheelState(wheel.start)

    def picture(self, entries: Sequence[Entry]) -> Picture:
        """How things stand after these entries, as a change of the frame before."""
        self.now.begin()
        for entry in entries:
            self.now.take(entry)
        looks, text = self.drawing.looks(self.now), self.drawing.text(self.now)
        new = {name: look for name, look in looks.items() if self.shown.get(name) != look}
        self.shown.update(new)
        return Picture(new, (), text)


def place_of(where: Where | None) -> str:
    assert where is not None
    return f"bucket {where.bucket} of level {where.level}"


def caption_of(step: WheelStep) -> str:
    """One step in a sentence or two."""
    first = step.entries[0]
    match step.kind:
        case "add" | "run" | "cancel" if isinstance(first, Move) and first.task is not None:
            return _of_task(step.kind, first, first.task)
        case "expire" if isinstance(first, Move):
            return _of_bucket(first, step.entries[1:])
        case "wait":
            return _of_operation(step.entries)
        case "purge":
            gone = sum(entry.what == "drop" for entry in step.entries)
            return f"The reaper purges the watch lists: {_many(gone, 'completed entry', 'completed entries')} go."
    return _of_completion(step.entries)


def _of_task(kind: str, move: Move, task: Task) -> str:
    name = task.name or f"The task due at {task.expiration}"
    if kind == "run":
        return f"{name} runs at once: its time has come."
    if kind == "cancel":
        return f"{name} is cancelled: it leaves its bucket, which stays in the delay queue."
    due = f", due at {task.expiration}," if task.name else ""
    where = move.where
    return f"{name}{due} goes into {place_of(where)}, which expires at {where.expires if where else 0}."


def _of_bucket(polled: Move, entries: Sequence[Entry]) -> str:
    moves = [entry for entry in entries if isinstance(entry, Move) and entry.task is not None]
    sentences = [f"{polled.time} ms: {place_of(polled.where)} expires."]
    expired = [_called(entry.operation) for entry in entries if isinstance(entry, Change) and entry.what == "expire"]
    run = [move.task.name or str(move.task.expiration) for move in moves if move.what == "run" and move.task]
    if expired:
        sentences.append(f"The time of {_listed(expired)} is up.")
    elif run:
        sentences.append(f"{_listed(run)} {'run' if len(run) > 1 else 'runs'}.")
    for move in [move for move in moves if move.what == "demote"][:3]:
        assert move.task is not None
        sentences.append(f"{move.task.name or move.task.expiration} moves down into {place_of(move.where)}.")
    more = sum(move.what == "demote" for move in moves) - 3
    if more > 0:
        sentences.append(f"{more} more move down.")
    if not moves:
        sentences.append("No task is left in it.")
    return " ".join(sentences)


def _of_operation(entries: Sequence[Entry]) -> str:
    keys = [str(entry.key) for entry in entries if isinstance(entry, Change)]
    first, last = entries[0], entries[-1]
    assert isinstance(first, Change)
    until = f", until {last.task.expiration} at most" if isinstance(last, Move) and last.task is not None else ""
    return f"{_called(first.operation)} waits for an event of {_listed(keys)}{until}."


def _of_completion(entries: Sequence[Entry]) -> str:
    changes = [entry for entry in entries if isinstance(entry, Change)]
    done = next((change.operation for change in changes if change.what == "complete"), None)
    keys = [str(change.key) for change in changes if change.what == "drop"]
    if done is None:
        return f"Completed operations are taken off the list of {_listed(sorted(set(keys)))}."
    completed = f"{_called(done)} is completed by an event: the timer forgets it at once"
    return (
        f"{completed}; it leaves the list of {_listed(keys)} only." if keys else f"{completed}, the watch lists do not."
    )


def _called(operation: DelayedOperation | None) -> str:
    return (operation.name if operation else "") or "An operation"


def counted(entries: Sequence[Entry]) -> str:
    """Many steps in one sentence."""
    names = {"add": "added", "demote": "moved down", "run": "run", "cancel": "cancelled"}
    tasks = [f"{count} {done}" for what, done in names.items() if (count := sum(e.what == what for e in entries))]
    polled = sum(entry.what == "poll" for entry in entries)
    summary = f"Until {entries[-1].time} ms: {_many(polled, 'bucket expires', 'buckets expire')}"
    return f"{summary}; tasks {', '.join(tasks)}." if tasks else f"{summary}."


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _listed(names: Sequence[str]) -> str:
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
