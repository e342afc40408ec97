"""The timing wheel as a film: rings that turn, tasks that come down from ring to ring, the delay queue, watch lists.

It is made from the journal of a timer (`brokers/timing_wheel.py`), to which its purgatory adds what it does; no cluster
is needed. One ring for each level, the finest inside, with its hand; a task stands in its bucket with the time at which
it is due, and goes inwards when the bucket expires.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_ctl.brokers.purgatory import Change, DelayedOperation
from kafka_ctl.brokers.timing_wheel import Move, Task, TimingWheel, Where
from kafka_ctl.errors import BadInput, short
from kafka_ctl.extras import needed_for
from kafka_ctl.views.export import checked, write
from kafka_ctl.views.frames import Film, Frame, PartState, Picture, check_player, interpolate_positions
from kafka_ctl.views.scene import Box, Part, Point, Scene, Shape, Text, box, shorten, stroke

if TYPE_CHECKING:
    from kafka_ctl.views.widget.player import Player

Entry = Move | Change
JOINS = {
    "demote": ("expire",),
    "run": ("expire",),
    "expire": ("expire",),
    "complete": ("cancel",),
    "drop": ("cancel", "complete", "purge", "expire", "drop"),
}
"""The entries that belong to the step under way, by the kinds of that step; any other begins a new one."""
KINDS = {"poll": "expire", "watch": "wait", "run": "run"}
"""The name of a step that begins with such an entry, where it is not the entry's own name."""


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
        same_operation = (
            isinstance(last, Change)
            and last.what == "watch"
            and (entry.what == "add" or (isinstance(entry, Change) and entry.operation is last.operation))
        )
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
        raise BadInput(f"limit cannot be {short(limit)}; it must be a number of frames, 1 or more")
    if wheel.journal is None:
        raise BadInput("nothing to show: this timer keeps no journal; make it with journal=True")
    if not wheel.journal:
        raise BadInput("nothing to show: nothing has been added to this timer yet")
    steps = steps_of(wheel.journal)
    drawing = WheelDrawing(wheel, wheel.journal)
    made = Film("wheel", "Timing wheel", drawing.scene)
    made.frames.append(Frame(0, "start", wheel.start, "Before the first task.", drawing.picture([])))
    each = -(-len(steps) // limit)
    for first in range(0, len(steps), each):
        together = steps[first : first + each]
        entries = [entry for step in together for entry in step.entries]
        caption = caption_of(together[0]) if each == 1 else counted(entries)
        frame = Frame(len(made.frames), together[-1].kind, entries[-1].time, caption, drawing.picture(entries))
        made.frames.append(frame)
    interpolate_positions(made.frames)
    return made


def player(wheel: TimingWheel, *, limit: int = 400, **options: Any) -> Player:
    """A player of that film; options are `index`, `speed`, `loop`, `theme` and `playing`, as for a lab's player."""
    with needed_for("a player"):
        from kafka_ctl.views.widget.player import Player

    check_player(options)
    return Player([film(wheel, limit=limit)], **options)


def export(wheel: TimingWheel, path: str | Path, *, limit: int = 400) -> Path:
    """Write that film to a file, `.svg`, `.html`, `.png` or `.gif`, as `export` of a lab does; returns its path."""
    path = checked(path)
    return write([film(wheel, limit=limit)], path)


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


WIDTH, RIM, CORE, MIDDLE = 534.0, 150.0, 30.0, (172.0, 174.0)
"""Pixels: of the picture, from the centre to the rim, of the place where tasks run, and where the centre is."""
LEFT = 350.0
"""The beginning of the column with the time and the delay queue."""
FONT, LETTER, PILL = 12, 7.0, 16.0
"""Pixels of the letters, high and wide, and of what a task is drawn as."""
MOST_BUCKETS, QUEUE, KEYS = 60, 9, 8
"""The most buckets of a ring, rows of the delay queue and watch lists that are drawn."""
LONG = 1_000_000
"""Milliseconds from which a row of the delay queue has no room for the word `bucket`."""
ROW, NAME = 23.0, 84.0
"""Pixels of a watch list's row and of its key."""


class WheelState:
    """A timer and its purgatory at one moment, by their journal."""

    def __init__(self, start: int) -> None:
        self.time = self.hand = start
        self.levels = 1
        self.where: dict[Task, Where] = {}
        self.queue: dict[Where, None] = {}
        self.watchers: dict[Hashable, list[DelayedOperation]] = {}
        self.completed: set[DelayedOperation] = set()
        self.delayed: dict[Task, None] = {}
        self.begin()

    def begin(self) -> None:
        """A new step: what has just happened belongs to the last one."""
        self.run: list[Task] = []
        self.cancelled: dict[Task, Where] = {}
        self.polled: list[Where] = []
        self.expired: set[DelayedOperation] = set()

    def take(self, entry: Move | Change) -> None:
        """One more entry of the journal."""
        self.time = max(self.time, entry.time)
        if isinstance(entry, Change):
            self._change(entry)
        elif entry.what == "poll" and entry.where is not None:
            self.hand = max(self.hand, entry.where.expires)
            self.queue.pop(entry.where, None)
            self.polled.append(entry.where)
        elif entry.task is not None:
            self._move(entry.what, entry.task, entry.where)

    def _move(self, what: str, task: Task, where: Where | None) -> None:
        if where is not None:
            self.where[task] = where
            self.queue[where] = None
            self.levels = max(self.levels, where.level)
            return
        before = self.where.pop(task, None)
        if what == "run":
            self.run.append(task)
        elif before is not None:
            self.cancelled[task] = before

    def _change(self, change: Change) -> None:
        if change.operation is None:
            return
        if change.what == "watch":
            self.watchers.setdefault(change.key, []).append(change.operation)
        elif change.what == "drop":
            self.watchers[change.key].remove(change.operation)
        else:
            self.completed.add(change.operation)

    @property
    def watched(self) -> int:
        return sum(map(len, self.watchers.values()))


class WheelDrawing:
    """The scene of a whole journal, and its pictures one after the other."""

    def __init__(self, wheel: TimingWheel, journal: Iterable[Move | Change]) -> None:
        if max(wheel.sizes) > MOST_BUCKETS:
            raise BadInput(f"a ring of {max(wheel.sizes)} buckets cannot be drawn; {MOST_BUCKETS} at most")
        journal = list(journal)
        self.tick_of, self.buckets_of = wheel.tick_of, wheel.buckets_of
        moves = [entry for entry in journal if isinstance(entry, Move)]
        self.levels = max([move.where.level for move in moves if move.where is not None], default=1)
        self.band = (RIM - CORE) / self.levels
        self.tasks = {
            task: f"task:{number}" for number, task in enumerate(dict.fromkeys(m.task for m in moves if m.task))
        }
        changes = [entry for entry in journal if isinstance(entry, Change)]
        self.keys = list(dict.fromkeys(change.key for change in changes if change.what == "watch"))
        self.operations = dict.fromkeys(change.operation for change in changes if change.operation is not None)
        self.slots: dict[DelayedOperation, int] = {}
        self.scene = self._scene()
        self.now, self.shown = WheelState(wheel.start), dict[str, PartState]()

    # Where things are

    def _scene(self) -> Scene:
        lists = 36 + ROW * min(len(self.keys), KEYS) + (20 if len(self.keys) > KEYS else 0) if self.keys else 0.0
        scene = Scene(WIDTH, 2 * MIDDLE[1] + lists)
        for level in range(1, self.levels + 1):
            scene.add(*(self._bucket(level, number) for number in range(self.buckets_of(level))))
            scene.add(*(self._hand(level, number) for number in range(self.buckets_of(level))))
        scene.add(*self._numbers(), self._core(), *self._column())
        if self.keys:
            scene.add(*self._lists())
        scene.add(*(self._pill(name, task) for task, name in self.tasks.items()))
        return scene

    def _ring(self, level: int) -> tuple[float, float]:
        """From where to where a ring reaches, in pixels from the centre."""
        return CORE + (level - 1) * self.band + 1, CORE + level * self.band - 0.6

    def _at(self, turn: float, distance: float) -> Point:
        """A point at this share of a turn, from the top and to the right, and so far from the centre."""
        angle = 2 * pi * turn - pi / 2
        return round(MIDDLE[0] + distance * cos(angle), 1), round(MIDDLE[1] + distance * sin(angle), 1)

    def _bucket(self, level: int, number: int) -> Part:
        inner, outer = self._ring(level)
        n = self.buckets_of(level)
        begin, end = number / n, (number + 1) / n
        far, near = 0.8 / (2 * pi * outer), 0.8 / (2 * pi * inner)  # neighbours do not touch
        a, b = self._at(begin + far, outer), self._at(end - far, outer)
        c, d = self._at(end - near, inner), self._at(begin + near, inner)
        way = (
            f"M{a[0]} {a[1]}A{outer:g} {outer:g} 0 0 1 {b[0]} {b[1]}"
            f"L{c[0]} {c[1]}A{inner:g} {inner:g} 0 0 0 {d[0]} {d[1]}Z"
        )
        x, y = self._at((begin + end) / 2, (inner + outer) / 2)
        title = f"level {level}, bucket {number}: {self.tick_of(level):,} ms"
        place = Box(x - 8, y - 8, 16, 16)
        return Part(f"bucket:{level}:{number}", place, (stroke(way),), (), "frame", title=title)

    def _hand(self, level: int, number: int) -> Part:
        inner, outer = self._ring(level)
        turn = number / self.buckets_of(level)
        (x, y), (x2, y2) = self._at(turn, inner - 2), self._at(turn, outer + 1)
        line = stroke(f"M{x} {y}L{x2} {y2}")
        return Part(
            f"hand:{level}:{number}", Box(x, y, 4, 4), (line,), (), "life now gone", title=f"hand of level {level}"
        )

    def _numbers(self) -> list[Part]:
        """The numbers of the buckets of the outermost ring."""
        n = self.buckets_of(self.levels)
        parts = []
        for number in range(0, n, 1 if n <= 24 else 5):
            x, y = self._at((number + 0.5) / n, RIM + 11)
            text = Text(x, y + 4, str(number), FONT)
            parts.append(Part(f"number:{number}", Box(x - 8, y - 8, 16, 16), (), (text,), "note"))
        return parts

    def _core(self) -> Part:
        x, y = MIDDLE
        circle = (("cx", f"{x:g}"), ("cy", f"{y:g}"), ("rx", f"{CORE - 4:g}"), ("ry", f"{CORE - 4:g}"))
        text = Text(x, y + 4, "run", FONT)
        place = Box(x - CORE, y - CORE, 2 * CORE, 2 * CORE)
        return Part("core", place, (Shape("body", "ellipse", circle),), (text,), "frame", title="where tasks run")

    def _column(self) -> list[Part]:
        parts = [Part("time", Box(LEFT, 6, 180, 24), (), (Text(LEFT, 24, "0 ms", 14, "start", bold=True),), "bare")]
        top = 44.0
        for level in range(1, self.levels + 1):
            text = Text(LEFT, top, "x", FONT, "start")
            parts.append(Part(f"level:{level}", Box(LEFT, top - 11, 180, 15), (), (text,), "note"))
            top += 16
        heading = Text(LEFT, top + 14, "Delay queue (tasks)", FONT, "start", bold=True)
        parts.append(Part("queue", Box(LEFT, top + 2, 180, 16), (), (heading,), "bare"))
        top += 22
        rows = min(QUEUE, int((2 * MIDDLE[1] - top - 20) // 22))
        for row in range(rows):
            y, right = top + 22 * row, WIDTH - 6
            texts = (
                Text(LEFT + 6, y + 13.5, "x", FONT, "start", bold=True),
                Text(right - 6, y + 13.5, "x", FONT, "end"),
            )
            shape = box(LEFT, y, right - LEFT, 19, 5)
            parts.append(Part(f"queued:{row}", Box(LEFT, y, right - LEFT, 19), (shape,), texts, "plate gone"))
        more = Text(LEFT, top + 22 * rows + 13, "x", FONT, "start")
        return [*parts, Part("more", Box(LEFT, top + 22 * rows, 180, 18), (), (more,), "note")]

    def _lists(self) -> list[Part]:
        top = 2 * MIDDLE[1]
        heading = Text(10, top + 18, "Watch lists", FONT, "start", bold=True)
        parts = [Part("watched", Box(10, top + 4, 76, 20), (), (heading,), "bare")]
        for name, x in (("count:watched", 10 + NAME), ("count:delayed", 120 + NAME)):
            text = Text(x + 51, top + 18, "x", FONT, bold=True)
            parts.append(Part(name, Box(x, top + 3, 102, 21), (box(x, top + 3, 102, 21, 5),), (text,), "plate"))
        self.wide = max(len(_short_name(op)) for op in self.operations) * LETTER + 12
        self.columns = int((WIDTH - 16 - NAME - 36) // (self.wide + 6))
        rows = self.keys[:KEYS]
        for row in range(len(rows) - 1):
            for slot in range(self.columns):
                x, y = self._column_of(slot) + self.wide / 2, self._row(row) + 9
                thread = stroke(f"M{x:g} {y:g}V{y + ROW:g}")
                parts.append(Part(f"thread:{row}:{slot}", Box(x, y, 1, ROW), (thread,), (), "life gone"))
        for row, key in enumerate(rows):
            y = self._row(row)
            texts = (Text(10, y + 13, shorten(str(key), 12), FONT, "start"), Text(WIDTH - 8, y + 13, "x", FONT, "end"))
            parts.append(Part(f"key:{row}", Box(10, y, NAME, 18), (), texts, "bare", title=str(key)))
            for slot in range(self.columns):
                x = self._column_of(slot)
                text = Text(x + self.wide / 2, y + 13, "x", FONT)
                shape = box(x, y, self.wide, 18, 9)
                parts.append(Part(f"entry:{row}:{slot}", Box(x, y, self.wide, 18), (shape,), (text,), "plate gone"))
        if len(self.keys) > KEYS:
            text = Text(10, self._row(KEYS) + 13, f"and {len(self.keys) - KEYS} more keys", FONT, "start")
            parts.append(Part("keys", Box(10, self._row(KEYS), 200, 18), (), (text,), "note"))
        return parts

    def _row(self, row: int) -> float:
        return 2 * MIDDLE[1] + 31 + ROW * row

    def _column_of(self, slot: int) -> float:
        return 10 + NAME + slot * (self.wide + 6)

    def _pill(self, name: str, task: Task) -> Part:
        text = str(task.expiration)
        wide = len(text) * LETTER + 9
        shape, label = box(-wide / 2, -PILL / 2, wide, PILL, PILL / 2), Text(0, 4, text, FONT)
        title = f"{task.name or 'a task'}, due at {text} ms"
        return Part(name, Box(-wide / 2, -PILL / 2, wide, PILL), (shape,), (label,), "plate gone", title=title)

    # How things look

    def picture(self, entries: Sequence[Entry]) -> Picture:
        """The picture after these entries, as a change of the one before."""
        now = self.now
        now.begin()
        for entry in entries:
            now.take(entry)
        looks = self._rings(now) | self._pills(now) | self._column_looks(now)
        looks |= self._watching(now) if self.keys else {}
        new = {name: look for name, look in looks.items() if self.shown.get(name) != look}
        self.shown.update(new)
        return Picture(new, (), self.text(now))

    def _rings(self, now: WheelState) -> dict[str, PartState]:
        held = {(where.level, where.bucket) for where in now.where.values()}
        queued = {(where.level, where.bucket) for where in now.queue}
        polled = {(where.level, where.bucket) for where in now.polled}
        looks = {}
        for level in range(1, self.levels + 1):
            made = level <= now.levels
            hand = now.hand // self.tick_of(level) % self.buckets_of(level)
            for number in range(self.buckets_of(level)):
                key = (level, number)
                style = "frame insync" if key in held else "frame doubtful" if key in queued else "frame"
                style = f"{style}{' hot' if key in polled else ''}" if made else "frame gone"
                looks[f"bucket:{level}:{number}"] = PartState(style)
                looks[f"hand:{level}:{number}"] = PartState("life now" if made and number == hand else "life now gone")
        return looks

    def _pills(self, now: WheelState) -> dict[str, PartState]:
        """The tasks of a bucket lie upon each other, the last one on top."""
        looks = {name: PartState("plate gone") for name in self.tasks.values()}
        together: dict[Where, list[Task]] = {}
        for task, where in now.where.items():
            together.setdefault(where, []).append(task)
        for where, tasks in together.items():
            self._stack(looks, tasks, self._middle(where.level, where.bucket), "plate insync")
        self._stack(looks, now.run, MIDDLE, "plate active")
        for task, where in now.cancelled.items():
            looks[self.tasks[task]] = PartState("plate deleting", at=self._middle(where.level, where.bucket))
        return looks

    def _stack(self, looks: dict[str, PartState], tasks: list[Task], at: Point, style: str) -> None:
        names = sorted((self.tasks[task] for task in tasks), key=lambda name: int(name.partition(":")[2]), reverse=True)
        for deep, name in enumerate(names):
            under = 2.0 * min(deep, 2)
            looks[name] = PartState(style if deep < 3 else "plate gone", at=(at[0] + under, at[1] - under))

    def _middle(self, level: int, number: int) -> Point:
        """The places of a bucket's tasks: neighbours at different distances, so that they do not hide each other."""
        inner, outer = self._ring(level)
        share = 0.5 if self.band < 30 else 0.68 if number % 2 else 0.3
        return self._at((number + 0.5) / self.buckets_of(level), inner + share * (outer - inner))

    def _column_looks(self, now: WheelState) -> dict[str, PartState]:
        looks = {"time": PartState("bare", (f"{now.time:,} ms",))}
        for level in range(1, self.levels + 1):
            tick = self.tick_of(level)
            label = f"level {level}: {tick:,} ms × {self.buckets_of(level)}, hand at {now.hand // tick * tick:,}"
            looks[f"level:{level}"] = PartState("note" if level <= now.levels else "note gone", (label,))
        rows = [(where, True) for where in now.polled] + [(where, False) for where in sorted(now.queue, key=_soonest)]
        shown = sum(name.startswith("queued:") for name in self.scene.parts)
        for place in range(shown):
            if place >= len(rows):
                looks[f"queued:{place}"] = PartState("plate gone", ("", ""))
                continue
            where, gone = rows[place]
            count = sum(other == where for other in now.where.values())
            bucket = "bucket " if where.expires < LONG else ""
            label = f"level {where.level}, {bucket}{where.bucket}" + ("" if gone else f" ({count})")
            style = "plate hot" if gone else "plate insync" if count else "plate doubtful"
            looks[f"queued:{place}"] = PartState(style, (f"{where.expires:,}", label))
        more = len(rows) - shown
        looks["more"] = PartState("note", (f"and {more} more",)) if more > 0 else PartState("note gone", ("",))
        return looks

    def _watching(self, now: WheelState) -> dict[str, PartState]:
        self._assign(now)
        looks = {
            "count:watched": PartState("plate", (f"watched {now.watched:,}",)),
            "count:delayed": PartState("plate", (f"delayed {len(now.where):,}",)),
        }
        by_slot = {slot: op for op, slot in self.slots.items()}
        rows: dict[int, list[int]] = {}
        for row, key in enumerate(self.keys[:KEYS]):
            listed = now.watchers.get(key, [])
            hidden = sum(op not in self.slots for op in listed)
            looks[f"key:{row}"] = PartState("bare", (shorten(str(key), 12), f"+{hidden}" if hidden else " "))
            for slot in range(self.columns):
                op = by_slot.get(slot)
                look = PartState("plate gone")
                if op is not None and op in listed:
                    rows.setdefault(slot, []).append(row)
                    look = PartState("plate deleting" if op in now.completed else "plate insync", (_short_name(op),))
                looks[f"entry:{row}:{slot}"] = look
        for row in range(len(self.keys[:KEYS]) - 1):
            for slot in range(self.columns):
                between = slot in rows and rows[slot][0] <= row < rows[slot][-1]
                looks[f"thread:{row}:{slot}"] = PartState("life" if between else "life gone")
        return looks

    def _assign(self, now: WheelState) -> None:
        """A column for each operation that is watched, as far as there are columns."""
        listed = dict.fromkeys(op for watchers in now.watchers.values() for op in watchers)
        self.slots = {op: slot for op, slot in self.slots.items() if op in listed}
        free = [slot for slot in range(self.columns) if slot not in self.slots.values()]
        for op in listed:
            if op not in self.slots and free:
                self.slots[op] = free.pop(0)

    def text(self, now: WheelState) -> str:
        """The picture in words, for a screen reader."""
        text = f"{_many(len(now.where), 'task', 'tasks')} in {_many(now.levels, 'level', 'levels')}; delay queue: "
        queued = [f"{where.expires:,} (level {where.level})" for where in sorted(now.queue, key=_soonest)]
        text += (", ".join(queued[:4]) or "empty") + (f" and {len(queued) - 4} more" if len(queued) > 4 else "") + "."
        return f"{text} Watched {now.watched:,}, delayed {len(now.where):,}." if self.keys else text


def _short_name(operation: DelayedOperation) -> str:
    return shorten(operation.name or "operation", 14)


def _soonest(where: Where) -> tuple[int, int]:
    return where.expires, where.level
