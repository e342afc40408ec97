"""Where everything of a timing wheel's picture is, and how it looks at one moment: see `wheel_film.py`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import cos, pi, sin

from kafka_ctl.brokers.purgatory import Change, DelayedOperation
from kafka_ctl.brokers.timing_wheel import Move, Task, TimingWheel, Where
from kafka_ctl.errors import BadInput
from kafka_ctl.views.frames import PartState
from kafka_ctl.views.scene import Box, Part, Point, Scene, Shape, Text, box, shorten

WIDTH, RIM, CORE, MIDDLE = 534.0, 150.0, 30.0, (172.0, 174.0)
"""Pixels: of the picture, from the centre to the rim, of the place where tasks run, and where the centre is."""
LEFT = 350.0
"""Where the column with the time and the delay queue begins."""
FONT, LETTER, PILL = 11.5, 6.7, 16.0
"""Pixels of the letters, high and wide, and of what a task is drawn as."""
MOST_BUCKETS, QUEUE, KEYS = 60, 9, 8
"""The most buckets of a ring, rows of the delay queue and watch lists that are drawn."""
ROW, NAME = 23.0, 84.0
"""Pixels of a watch list's row and of its key."""


class WheelState:
    """What a timer and its purgatory look like at one moment, by their journal."""

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
    """The scene of a whole journal, and the looks of its parts."""

    def __init__(self, wheel: TimingWheel, journal: Iterable[Move | Change]) -> None:
        if wheel.n > MOST_BUCKETS:
            raise BadInput(f"a ring of {wheel.n} buckets cannot be drawn; {MOST_BUCKETS} at most")
        journal = list(journal)
        self.tick, self.n = wheel.tick, wheel.n
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

    # Where things are

    def _scene(self) -> Scene:
        lists = 36 + ROW * min(len(self.keys), KEYS) + (20 if len(self.keys) > KEYS else 0) if self.keys else 0.0
        scene = Scene(WIDTH, 2 * MIDDLE[1] + lists)
        for level in range(1, self.levels + 1):
            scene.add(*(self._bucket(level, number) for number in range(self.n)))
            scene.add(*(self._hand(level, number) for number in range(self.n)))
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
        begin, end = number / self.n, (number + 1) / self.n
        far, near = 0.8 / (2 * pi * outer), 0.8 / (2 * pi * inner)  # neighbours do not touch
        a, b = self._at(begin + far, outer), self._at(end - far, outer)
        c, d = self._at(end - near, inner), self._at(begin + near, inner)
        way = (
            f"M{a[0]} {a[1]}A{outer:g} {outer:g} 0 0 1 {b[0]} {b[1]}"
            f"L{c[0]} {c[1]}A{inner:g} {inner:g} 0 0 0 {d[0]} {d[1]}Z"
        )
        x, y = self._at((begin + end) / 2, (inner + outer) / 2)
        title = f"level {level}, bucket {number}: {self.tick * self.n ** (level - 1):,} ms"
        place = Box(x - 8, y - 8, 16, 16)
        return Part(
            f"bucket:{level}:{number}", place, (Shape("body", "path", (("d", way),)),), (), "frame", title=title
        )

    def _hand(self, level: int, number: int) -> Part:
        inner, outer = self._ring(level)
        (x, y), (x2, y2) = self._at(number / self.n, inner - 2), self._at(number / self.n, outer + 1)
        line = Shape("body", "path", (("d", f"M{x} {y}L{x2} {y2}"),))
        return Part(
            f"hand:{level}:{number}", Box(x, y, 4, 4), (line,), (), "life now gone", title=f"hand of level {level}"
        )

    def _numbers(self) -> list[Part]:
        """The numbers of the buckets, the same for every ring."""
        every = 1 if self.n <= 24 else 5
        parts = []
        for number in range(0, self.n, every):
            x, y = self._at((number + 0.5) / self.n, RIM + 11)
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
        parts = [Part("time", Box(LEFT, 6, 180, 24), (), (Text(LEFT, 24, "0 ms", 18, "start", bold=True),), "bare")]
        top = 44.0
        for level in range(1, self.levels + 1):
            text = Text(LEFT, top, "x", FONT, "start")
            parts.append(Part(f"level:{level}", Box(LEFT, top - 11, 180, 15), (), (text,), "note"))
            top += 16
        heading = Text(LEFT, top + 14, "Delay queue: buckets (tasks)", FONT, "start", bold=True)
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
        self.wide = max(len(_called(op)) for op in self.operations) * LETTER + 12
        self.columns = int((WIDTH - 16 - NAME - 36) // (self.wide + 6))
        rows = self.keys[:KEYS]
        for row in range(len(rows) - 1):
            for slot in range(self.columns):
                x, y = self._column_of(slot) + self.wide / 2, self._row(row) + 9
                thread = Shape("body", "path", (("d", f"M{x:g} {y:g}V{y + ROW:g}"),))
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

    def looks(self, now: WheelState) -> dict[str, PartState]:
        """Every part at this moment."""
        looks = self._rings(now) | self._pills(now) | self._column_looks(now)
        return looks | self._watching(now) if self.keys else looks

    def _rings(self, now: WheelState) -> dict[str, PartState]:
        held = {(where.level, where.bucket) for where in now.where.values()}
        queued = {(where.level, where.bucket) for where in now.queue}
        polled = {(where.level, where.bucket) for where in now.polled}
        looks = {}
        for level in range(1, self.levels + 1):
            made = level <= now.levels
            hand = now.hand // (self.tick * self.n ** (level - 1)) % self.n
            for number in range(self.n):
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
        """Where the tasks of a bucket stand: neighbours at different distances, so that they do not hide each other."""
        inner, outer = self._ring(level)
        share = 0.5 if self.band < 30 else 0.68 if number % 2 else 0.3
        return self._at((number + 0.5) / self.n, inner + share * (outer - inner))

    def _column_looks(self, now: WheelState) -> dict[str, PartState]:
        looks = {"time": PartState("bare", (f"{now.time:,} ms",))}
        for level in range(1, self.levels + 1):
            tick = self.tick * self.n ** (level - 1)
            label = f"level {level}: {tick:,} ms × {self.n}, hand at {now.hand // tick * tick:,}"
            looks[f"level:{level}"] = PartState("note" if level <= now.levels else "note gone", (label,))
        rows = [(where, True) for where in now.polled] + [(where, False) for where in sorted(now.queue, key=_soonest)]
        shown = sum(name.startswith("queued:") for name in self.scene.parts)
        for place in range(shown):
            if place >= len(rows):
                looks[f"queued:{place}"] = PartState("plate gone", ("", ""))
                continue
            where, gone = rows[place]
            count = sum(other == where for other in now.where.values())
            label = f"level {where.level}, bucket {where.bucket}" + ("" if gone else f" ({count})")
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
                    look = PartState("plate deleting" if op in now.completed else "plate insync", (_called(op),))
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
        """The picture for who cannot see it."""
        text = f"{_count(len(now.where), 'task')} in {_count(now.levels, 'level')}; delay queue: "
        queued = [f"{where.expires:,} (level {where.level})" for where in sorted(now.queue, key=_soonest)]
        text += (", ".join(queued[:4]) or "empty") + (f" and {len(queued) - 4} more" if len(queued) > 4 else "") + "."
        return f"{text} Watched {now.watched:,}, delayed {len(now.where):,}." if self.keys else text


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _called(operation: DelayedOperation) -> str:
    return shorten(operation.name or "operation", 14)


def _soonest(where: Where) -> tuple[int, int]:
    return where.expires, where.level
