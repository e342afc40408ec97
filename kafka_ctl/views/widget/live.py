"""The live cluster: a lab in a notebook, with everything that can be done to it a click away.

The player's pictures go on growing while the lab runs. A click makes one call of the lab, which is added to the
visible script; what the lab refuses is said in its own sentence. Only what is new is sent to the browser, and only for
visible views: one whose drawing has no room for it (another topic, another moment on a time axis) is drawn again.

A run that a lab has left for an earlier moment is kept as a future to return to.
"""

from __future__ import annotations

import json
import math
import re
import weakref
from collections.abc import Callable, Mapping
from typing import NamedTuple

import traitlets

from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName
from kafka_ctl.lab.comparison import compare
from kafka_ctl.lab.menu import clicked
from kafka_ctl.lab.menu import menu as buttons
from kafka_ctl.lab.recorded_run import RecordedRun, at_moment, rarely_collected, replayed, run_on, take_over, undo
from kafka_ctl.lab.story import REFUSED, UNTIL, Command, Opening
from kafka_ctl.ports import LIMIT
from kafka_ctl.reassign.plan import write_plan
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import printable
from kafka_ctl.views.explain.source import lines_of
from kafka_ctl.views.explain.why import Explainer
from kafka_ctl.views.frames import Film
from kafka_ctl.views.steps import newsworthy
from kafka_ctl.views.widget.live_film import LiveFilm, shared
from kafka_ctl.views.widget.payload import LIVE, Data, number_in, read_message, text_in, texts_in
from kafka_ctl.views.widget.player import Widget

WRITTEN_HERE = ("film", "menu", "now", "beside")
"""Traits that only Python writes."""
MOST_KEPT = 20
"""The most futures that are kept; the oldest is forgotten."""
WAITS = ("settle", "run_for", "step", "run_until_violation")
"""The commands that only let time pass."""
SPEEDS = (1.0, 10.0)
"""Virtual seconds in a real one, while time runs by itself."""
LONGEST = 1000
"""The most real milliseconds that are made up for at once: a page that was late does not make time jump."""
NUMBER = re.compile("0|[1-9][0-9]*")
"""A key that was the number of a broker or a partition before JSON made a text of it."""


class Future(NamedTuple):
    """A run that was left: its last command that did more than let time pass, its end in seconds, its commands."""

    last: Command | None
    time: float
    commands: tuple[Command, ...]


def future(lab: RecordedRun) -> Future:
    """The present run of a lab as a future to return to."""
    commands = tuple(lab.commands)
    given = [command for command in commands if command.name != UNTIL]
    acts = [command for command in given if command.asked.name not in WAITS] or given
    return Future(acts[-1] if acts else None, lab.now, commands)


def pass_time(lab: RecordedRun, passed: float, speed: float | None, piece: Command | None) -> Command | None:
    """Let the time pass that fits so many real milliseconds; the story has all pieces as one `run_for`, `piece`.

    `speed` is one of `SPEEDS`; with None, silence is skipped: time goes on to the next step, and not at all while all
    is quiet. Raises BadInput when no step has come within an hour.
    """
    if speed is not None:
        return run_on(lab, round(min(passed, LONGEST) * speed) / 1000, piece)
    clock, begun, size = lab.world.clock, lab.now, len(lab.trace)
    assert isinstance(clock, VirtualClock)
    while not clock.loop.idle and not any(map(newsworthy, lab.trace.records[size:])):
        if lab.now - begun > LIMIT:
            raise BadInput(f"nothing has happened within {LIMIT:g} s of virtual time")
        wait = (clock.loop.next_time or clock.now()) - clock.now()
        piece = run_on(lab, math.floor(wait * 1000 + 1) / 1000, piece)
    return piece


def script(lab: RecordedRun, name: str = "lab") -> list[str]:
    """One line for the lab and one for each command given so far.

    A description, costs, a run stopped by Ctrl-C and a refused command have no call of their own: the story that
    replays them stands for them.
    """
    opening, commands = lab.opening, list(lab.commands)
    replays = max((place + 1 for place, c in enumerate(commands) if not _is_call(c)), default=0)
    lines = []
    if replays or {"description", "costs", "plugins"} & opening.keys():
        text = "".join(f"{line}\n" for line in [Command("lab", (), opening), *commands[:replays]])
        more = "".join(f", {what}={what}" for what in lab.plugins.given)  # functions, which no text can hold
        whole = _plain(text) if '"""' in text or "\\" in text else f'"""\n{text}"""'
        lines.append(f"{name} = Lab.replay({whole}{more})")
    else:
        lines.append(f"{name} = Lab({_arguments(opening)})")
    return lines + [call(command, name) for command in commands[replays:]]


def _is_call(command: Command) -> bool:
    return command.name != REFUSED and (command.name != UNTIL or len(command.args) == 1)


def call(command: Command, name: str = "lab") -> str:
    """One command as the call that gives it; one that ended at a record is a fork there, after all of the command."""
    if command.name == UNTIL:
        return f"{name} = {name}.fork(at={command.args[0]})"
    arguments = [_plain(value) for value in command.args]
    arguments += [f"{key}={_plain(value)}" for key, value in command.kwargs.items()]
    return f"{name}.{command.name}({', '.join(arguments)})"


def _arguments(opening: Opening) -> str:
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


def _plain(value: object) -> str:
    """A value as one would type it: a pair and a partition look alike, a word of an enumeration is a text."""
    if isinstance(value, dict):
        entries = (f"{k if NUMBER.fullmatch(str(k)) else _plain(k)}: {_plain(v)}" for k, v in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_plain, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False) if value.isprintable() else repr(str(value))
    return repr(value)


class Live(Widget):
    """A lab to be watched and clicked; `lab.live()` makes it.

        from kafka_ctl import Lab
        live = Lab(brokers=3).live()
        live.receive({"do": "act", "thing": "broker:1", "action": "kill"})
        live.now["script"][-1]  # 'lab.kill(1)'
        live

    A message with a `frame` acts at the moment of that frame, or `since` milliseconds later: the lab is that future
    from then on, and what it had before is kept in `futures`, to be returned to (in memory only; on a real ZooKeeper
    every command acts at the end). `shown` are the views that are looked at; `now` is what stands beside them: the
    script, the broken rules, the last reply. `beside` is the widget of another future, made by a fork.
    """

    _esm: object = LIVE

    shown = traitlets.List(traitlets.Unicode(), ["cluster"]).tag(sync=True)
    menu = traitlets.Dict().tag(sync=True)
    now = traitlets.Dict().tag(sync=True)
    beside = traitlets.Unicode("").tag(sync=True)

    def __init__(self, lab: RecordedRun, name: str = "lab", theme: str = "auto") -> None:
        self.lab, self.name = lab, name
        with rarely_collected():
            self.live_film = LiveFilm(lab.trace, lab.generation.name)
            film_data = self.live_film.film_data(["cluster"])
        self.other: Live | None = None
        self.futures: list[Future] = []
        """The runs that the lab has left, the newest last."""
        self._piece: Command | None = None
        """The `run_for` of the time that runs by itself."""
        self.plan = ""
        """The plan that the reassignment tool has proposed or begun last."""
        self.changed = lambda: None
        """Called after every change: a fork notifies the widget beside it."""
        super().__init__(
            film=film_data, index=len(film_data["frames"]) - 1, menu=buttons(lab), now=self._now(), theme=theme
        )
        self.on_msg(lambda _, content, buffers: self.receive(content))
        self.observe(lambda change: self._draw_missing(), "shown")
        _after_every_cell(self)

    def __repr__(self) -> str:
        return f"The living cluster of {self.lab!r}"

    @property
    def builder(self) -> Film | None:
        """The film of the cluster, while that is looked at."""
        made = self.live_film.builders.get("cluster")
        return made and made[0].film

    def set_state(self, sync_data: Mapping[str, object]) -> None:
        """Take over what the page may change; what Python writes is sent to the page only.

        The page sends its whole state after a click, which may be older than what Python has written since.
        """
        super().set_state({name: value for name, value in sync_data.items() if name not in WRITTEN_HERE})

    # Messages of the browser

    def receive(self, content: object) -> None:
        """One click: `{"do": "act", "thing": "broker:1", "action": "kill", "frame": 12}`, `undo`, `fork`, `why` ...

        A refusal, also of a message that cannot be understood, is the reply beside the picture. While time runs by
        itself, the browser asks for each piece of it: `{"do": "run", "passed": 200, "speed": 10, "frame": 12}`.
        """
        refused = False
        try:
            reply = self._answer(read_message(content))
        except KafkaCtlError as refusal:
            reply, refused = {"text": str(refusal), "refused": True}, True
        if reply is not None:
            self.refresh(reply)
        asked: Data = content if isinstance(content, dict) else {}
        if asked.get("do") == "run":
            self.send({"do": "ran", "refused": refused})
        else:
            self.send({"do": "done", "reply": reply or {}, "form": asked.get("form", 0)})

    def _answer(self, content: Data) -> Data | None:
        """Do what is asked; returns the reply, None if nothing has changed."""
        asked = content["do"]
        if asked == "act":
            thing, action = text_in(content, "thing"), text_in(content, "action")
            wanted = clicked(thing, action, texts_in(content, "given"))
            return self._at(content, lambda lab: self._act(lab, wanted))
        if asked == "run":
            return self._at(content, lambda lab: self._run(lab, content))
        if asked == "undo":
            return {"text": f"undone: {call(undo(self.lab), self.name)}"}
        if asked == "return":
            return self._return(number_in(content, "future", len(self.futures)))
        if asked == "fork":
            return self._fork(content)
        if asked == "why":
            self._explain(number_in(content, "frame", len(self)))
            return None
        if asked == "close":
            self._close_fork()
            return {}
        raise UnknownName("message", asked, ("act", "run", "undo", "return", "fork", "why", "close"))

    def _then(self, content: Data) -> tuple[int, RecordedRun] | None:
        """The frame of a message and a lab at that moment: `since` milliseconds after its step; None for the end."""
        if content.get("frame") is None or not self._travels:
            return None
        frame = number_in(content, "frame", len(self))
        if (moment := self.live_film.moment(frame)) is None:
            return None
        frames, since = self.live_film.frames, number_in({"since": 0} | content, "since", 10**12)
        time = frames[frame]["time"] + min(since, frames[frame + 1]["time"] - frames[frame]["time"])
        there = at_moment(self.lab, *moment)
        if since and (wait := round(time / 1000 - there.now, 3)) > 0:
            there.do(Command("run_for", (wait,), {}))
        return frame, there

    def _at(self, content: Data, act: Callable[[RecordedRun], Data]) -> Data:
        """Act at the moment of a message: in a lab that is at that moment, which this lab becomes unless it refuses.

        The run so far is kept as a future, but not while time runs by itself: what comes after has not been seen yet.
        """
        then = None if self.lab.closed else self._then(content)
        if then is None:
            return act(self.lab)
        frame, there = then
        begun = list(there.commands)
        try:
            return act(there)
        finally:
            if there.commands == begun:
                there.close()
            else:
                self.index = frame
                self._become(there, content.get("live") is not True)

    def _become(self, other: RecordedRun, keeps: bool = True) -> None:
        """Be another future from here on, and keep the present one, unless it is the beginning of the other."""
        if keeps and shared(self.lab.trace.records, other.trace.records) < len(self.lab.trace):
            self.futures = [*self.futures, future(self.lab)][-MOST_KEPT:]
        take_over(self.lab, other)

    def _return(self, place: int) -> Data:
        chosen = self.futures[place]
        other = replayed(self.lab, chosen.commands)
        del self.futures[place]
        self._become(other)
        return {"text": f"returned to the future with {self._named(chosen)}"}

    def _named(self, kept: Future) -> str:
        what = "no command" if kept.last is None else printable(call(kept.last.asked, self.name))
        return f"{what}, up to {kept.time:.4f} s"

    def _act(self, lab: RecordedRun, wanted: Command) -> Data:
        if not callable(getattr(lab, wanted.name, None)):
            raise BadInput(f"this lab cannot {wanted.name}")
        size = len(lab.trace)
        answer = getattr(lab, wanted.name)(*wanted.args, **wanted.kwargs)
        if wanted.name == "run_until_violation" and answer is None:
            return {"text": f"{call(wanted, self.name)}: no violation"}
        if wanted.name in ("step", "settle") and len(lab.trace) == size:
            return {"text": f"{call(wanted, self.name)}: nothing is under way"}
        if wanted.name == "generate_reassignment":
            answer = self.plan = write_plan(answer, lab.generation)
        elif wanted.name == "execute_reassignment":
            self.plan = wanted.args[0]
        return {"text": call(wanted, self.name)} if answer is None else {"text": str(answer), "answer": True}

    def _run(self, lab: RecordedRun, content: Data) -> Data:
        """Let time run by itself for as long as it has in the browser, at a speed; the last reply stays."""
        if not self._travels:
            raise BadInput("on a real ZooKeeper time runs by itself already")
        passed, speed = number_in(content, "passed", 10**9), content.get("speed")
        if speed is not None and speed not in SPEEDS:
            raise UnknownName("speed", speed, [*SPEEDS, None])
        self._piece = pass_time(lab, passed, speed, self._piece)
        return dict(self.now["reply"])

    @property
    def _travels(self) -> bool:
        return self.lab.quiet is not None

    def _fork(self, content: Data) -> Data:
        """Another future beside this one, from the end or from a moment that is looked at."""
        then = self._then(content)
        self._close_fork()
        made = self.lab.fork() if then is None else then[1]
        self.other = Live(made, f"{self.name}_2", self.theme)
        self.other.changed = lambda: self.refresh(dict(self.now["reply"]))
        self.beside = self.other.model_id or ""
        when = "the end" if then is None else f"{made.now:.4f} s"
        return {"text": f"{self.other.name} is another future of {self.name}, from {when} on"}

    def _close_fork(self) -> None:
        if self.other is not None:
            self.other.lab.close()
            self.other.close()
        self.other, self.beside = None, ""

    def _explain(self, frame: int) -> None:
        """Answer "why?", and once more when it is known which lines ran: that takes a replay."""
        explainer = Explainer(self.lab.trace, self.lab.generation, lines_of(self.lab))
        for answer in explainer.explanations(self.live_film.frames[frame]["seqs"]):
            self.send({"do": "why", "frame": frame, "why": answer})

    # Messages to the browser

    def refresh(self, reply: Data | None = None) -> None:
        """Show all records since the last time, also those that another call made."""
        before = len(self)
        if self.live_film.trace is not self.lab.trace:
            self._start_again()
        elif len(self.lab.trace) > self.live_film.place:
            self._grow(before, reply)
        new = self._now(reply)
        if new != self.now:
            self.now = new
        self.changed()

    def _start_again(self) -> None:
        """The lab is in another run: send all of it, and play from the moment shown, or where the runs part."""
        self.live_film = LiveFilm(self.lab.trace, self.lab.generation.name, before=self.live_film)
        known = self.live_film.known
        index = min(self.index, known - 1)
        self._send_all(index)
        self.send({"do": "play", "from": known if index == known - 1 else index})

    def _send_all(self, index: int) -> None:
        self.film = self.live_film.film_data(self.shown)
        self.index = min(max(index, 0), len(self) - 1)

    def _grow(self, before: int, reply: Data | None) -> None:
        """Send what is new, and in the same message what stands beside it: one message is sooner there than two."""
        frames = self.live_film.read()
        if self.live_film.too_long:
            self.live_film.forget()
            self._send_all(len(self.live_film.frames) - len(frames))
            self.send({"do": "play", "from": self.index})
            return
        views, redrawn = {}, []
        self.film["frames"] = self.live_film.frames
        for place, view in reversed(list(enumerate(self.film["views"]))):
            name = view["view"]
            if name not in self.shown:
                del self.film["views"][place], self.live_film.builders[name]
            elif (more := self.live_film.grow(name)) is None:
                self.film["views"][place] = self.live_film.show(name)
                redrawn.append(self.film["views"][place])
            else:
                views[name] = more
                _join(view, more)
        now = self._now(reply)
        self.now.clear()
        self.now.update(now)  # no second message: a page that is opened again gets it with the state
        message = {"do": "grow", "from": before, "frames": frames, "views": views}
        self.send({**message, "redrawn": redrawn, "now": now})

    def _draw_missing(self) -> None:
        """Draw the views that the reader has just turned to."""
        missing = [self.live_film.show(name) for name in self.shown if name not in self.live_film.builders]
        if missing:
            self.film["views"] += missing
            self.send({"do": "show", "views": missing})

    def _now(self, reply: Data | None = None) -> Data:
        lab = self.lab
        given = any(command.name not in (UNTIL, REFUSED) for command in lab.commands)
        now: Data = {
            "reply": reply or {},
            "waits": lab.quiet is False,
            "name": self.name,
            "title": f"Kafka {lab.generation}",
            "time": round(1000 * lab.now),
            "script": [printable(line) for line in script(lab, self.name)],
            "plan": printable(self.plan),
            "undo": self._travels and not lab.closed and given,
            "travels": self._travels,
            "futures": [self._named(kept) for kept in self.futures],
            "compared": _compared(lab, self.other.lab) if self.other else {},
        }
        if hasattr(lab, "violations") and lab.zookeeper == "memory":
            now["violations"] = self._violations()
        return now

    def _violations(self) -> list[Data]:
        """The rules that are broken, each with the frame that shows it first."""
        broken: dict[str, Data] = {}
        for frame, message in enumerate(self.live_film.frames):
            if message["kind"] == "violation":
                broken.setdefault(message["caption"], {"text": message["caption"], "frame": frame})
        return list(broken.values())


def _compared(left: RecordedRun, right: RecordedRun) -> Data:
    """The differences of two futures at the same time as one table, all times in seconds."""
    found = compare(left, right)
    sides = zip((found.left, found.right), (left, right), strict=True)
    first = [_sentence(record, lab.trace) for record, lab in sides]
    rows = [["first different fact", *first]] if found.parted is not None else []
    title = f"Differences at {found.time_ms / 1000:.4f} s"
    rows = [[printable(cell) for cell in row] for row in rows + found.rows()]
    return {"title": title if rows else f"Nothing differs at {found.time_ms / 1000:.4f} s", "rows": rows}


def _sentence(record: Record | None, trace: Recorder) -> str:
    if record is None:
        return "has ended"
    return f"{record.time_ms / 1000:.4f} s: {caption([record], trace.records)}"


def _join(view: Data, more: Data) -> None:
    """Add further rows to a view that is kept for a page that is loaded anew."""
    for name, rows in more["tracks"].items():
        view["tracks"].setdefault(name, []).extend(rows)
    for broker, partitions in more.get("details", {}).items():
        for name, rows in partitions.items():
            view.setdefault("details", {}).setdefault(broker, {}).setdefault(name, []).extend(rows)
    view["tokens"] += more["tokens"]


def _after_every_cell(live: Live) -> None:
    """In a notebook, calls made in cells are shown too, as soon as their cell has ended."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell, ref = get_ipython(), weakref.ref(live)
    if shell is None:
        return

    def look(*_: object) -> None:
        there = ref()
        if there is None:
            shell.events.unregister("post_run_cell", look)
        elif not there.lab.closed:
            there.refresh()

    shell.events.register("post_run_cell", look)
