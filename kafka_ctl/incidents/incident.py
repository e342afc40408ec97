"""An incident as a learner sees it: a page, a cluster or its logs, a clock, a budget, an answer and its score."""

from __future__ import annotations

import functools
import random
import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.display import Rows, Table, table
from kafka_ctl.errors import BadInput, Unavailable, UnknownName, short
from kafka_ctl.incidents.kinds import TABLES, Played, play
from kafka_ctl.kafka_log.write import EPOCH, NAMES, kafka_log
from kafka_ctl.lab import story, validate
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.metrics import MetricValue
from kafka_ctl.lab.view import BrokerTable
from kafka_ctl.trace import details
from kafka_ctl.trace.model import broker_of
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_ctl.views.widget.player import Player

TODAY = "today"
PAGE = "lab/index.html"
"""The address of JupyterLab within a site; `tools/site/page/lesson.mjs` opens what follows the hash."""
BUDGET = 8
HEAL = 3
"""The commands that `heal` counts as: it stands for the teams of the network and the machines."""
LOOK_SECONDS = 10
"""Seconds that a look at the cluster or a log takes."""
PROMPT_SECONDS, LATE_SECONDS = 600.0, 3600.0
"""An answer before the first has all points for its time, one after the second none."""
LOOKS = """
    partitions partition brokers metrics znodes stat config logs log log_dirs reassignments balance identity replicas
    controller controller_memory now quiet
""".split()
"""The attributes and methods of `Lab` that a learner on call may use."""
COMMANDS = """
    start shutdown kill heal elect_preferred elect_leaders reassign cancel_reassignment execute_reassignment
    verify_reassignment alter_config create_topic add_partitions delete_topic delete_controller write_znode
    delete_znode set_broker_id set_meta produce
""".split()
WAITS = ("run_for", "settle")
LONGEST_WAIT = 3600.0
MOST_SEED = 10**18 - 1
LOGS = ("server", "client", *NAMES)
ZOOKEEPER = "zookeeper"


class Console:
    """The cluster of an incident: looks take 10 seconds each, commands count, and the trace is closed until the answer.

    It has these methods of `Lab`: those that look, those of administrators, `run_for` and `settle`; after the answer
    all others, too. Raises BadInput for what is closed, for a command beyond the budget, and for a command in an
    incident with logs only.
    """

    def __init__(self, lab: Lab, living: bool, answered: Callable[[], bool]) -> None:
        self._lab, self._living, self._answered = lab, living, answered
        self._began, self._read = lab.now, 0.0
        self.spent = 0
        """The commands given so far."""

    @property
    def seconds(self) -> float:
        """Seconds since the page."""
        return self._lab.now - self._began + self._read

    def look(self) -> Lab:
        """The lab after the seconds of one look. Without a living cluster they pass for the reader alone."""
        if self._living:
            self._lab.run_for(LOOK_SECONDS)
        else:
            self._read += LOOK_SECONDS
        return self._lab

    def do(self, line: str) -> object:
        """Give one command as a line of a story, `start 3`."""
        if not isinstance(line, str):
            raise BadInput(f"a command cannot be {short(line)}; it must be text, such as `start 3`")
        found = list(story.parse(line))
        if len(found) != 1:
            raise BadInput(f"a command is one line, such as `start 3`; {short(line)} has {len(found)} commands")
        if self._answered():
            return self._lab.do(found[0])
        return self._give(found[0].name, *found[0].args, **found[0].kwargs)

    def _give(self, name: str, *args: object, **kwargs: object) -> object:
        if self._answered():
            return getattr(self._lab, name)(*args, **kwargs)
        if name not in (*COMMANDS, *WAITS):
            raise UnknownName("command of an administrator", name, (*COMMANDS, *WAITS))
        if not self._living:
            raise BadInput(f"{name}: this incident has logs and tables only; nothing can be changed")
        cost = 0 if name in WAITS else HEAL if name == "heal" else 1
        if self.spent + cost > BUDGET:
            raise BadInput(f"{name} counts as {cost}, and {BUDGET - self.spent} of {BUDGET} commands are left")
        given = validate.bind(getattr(Lab, name), (self._lab, *args), kwargs)
        if name == "run_for" and validate.seconds("a time", given["seconds"]) > LONGEST_WAIT:
            raise BadInput(f"run_for: an operator waits for {LONGEST_WAIT:g} s at most, and then looks again")
        answer = getattr(self._lab, name)(*args, **kwargs)
        self.spent += cost
        return answer

    @property
    def brokers(self) -> BrokerTable:
        """The brokers, as `Lab.brokers`. As long as the incident is open, a process that stands still is not named."""
        found = self.look().brokers
        return found if self._answered() else BrokerTable({n: b._replace(paused=None) for n, b in found.items()})

    @validate.call
    def metrics(self, broker: int) -> dict[str, MetricValue]:
        """The metrics of a broker, as `Lab.metrics`. Raises Unavailable while its process does not answer."""
        self._lab.metrics(broker)  # a look that is refused takes no time
        lab = self.look()
        process = lab.world.brokers[broker]
        if process.state == DOWN or process.is_paused:
            raise Unavailable(f"broker {broker} does not answer")
        return lab.metrics(broker)

    def _look(self, name: str, *args: object, **kwargs: object) -> object:
        """Look with a method of `Lab`; what it refuses takes no time."""
        getattr(self._lab, name)(*args, **kwargs)
        return getattr(self.look(), name)(*args, **kwargs)

    def __getattr__(self, name: str) -> object:
        if name in LOOKS:
            found = getattr(self._lab, name)
            if callable(found):
                return functools.wraps(found)(functools.partial(self._look, name))
            return getattr(self.look(), name)
        if name in COMMANDS or name in WAITS:
            return functools.wraps(getattr(self._lab, name))(functools.partial(self._give, name))
        if not name.startswith("_") and hasattr(self._lab, name):
            if self._answered():
                return getattr(self._lab, name)
            looks = ", ".join(LOOKS[:7])
            raise BadInput(
                f"{name} is closed while the incident is open; allowed: looks such as {looks}, and an administrator's "
                "commands; dir() of this cluster lists them"
            )
        raise AttributeError(f"the cluster of an incident has no {name!r}")

    def __dir__(self) -> list[str]:
        opened = (name for name in dir(Lab) if self._answered() and not name.startswith("_"))
        return sorted({*LOOKS, *COMMANDS, *WAITS, *opened, "do", "seconds", "spent"})


class Part(NamedTuple):
    """One part of a score: the points, the most there can be, and the reason."""

    part: str
    points: int
    most: int
    reason: str


class Score(Rows[Part]):
    """The parts of a score, and their sum in percent of what was possible."""

    @property
    def percent(self) -> int:
        """The points in percent, rounded to a whole number."""
        return round(100 * sum(part.points for part in self) / sum(part.most for part in self))

    def table(self) -> Table:
        """A row for each part, and their sum."""
        whole = Part(
            "sum", sum(part.points for part in self), sum(part.most for part in self), f"{self.percent} of 100"
        )
        return table(Part._fields, [*self, whole], len(self) + 1)


class LogText(str):
    """Lines of a log, shown as they are."""

    def __repr__(self) -> str:
        return str(self).rstrip("\n") or "(no lines)"


class Incident:
    """One incident of a seed.

        incident = on_call(17)
        incident.lab.partitions()            # 10 seconds of the clock
        incident.logs("controller")
        incident.lab.start(3)                # one command of the budget
        incident.answer(cause="broker-down", component=3)

    `page` is the operator's text, `clock` the seconds since then, `score` the result of the answer. With `logs_only` no
    command can be given, and a look takes time for the reader alone.
    """

    def __init__(self, seed: int, logs_only: bool) -> None:
        self.seed, self.logs_only = seed, logs_only
        self._played = play(seed)
        self.lab = Console(self._played.lab, not logs_only, lambda: self.score is not None)
        self.score: Score | None = None
        self._lost, self._leaderless = self._played.lost(), self._played.leaderless_seconds()

    @property
    def page(self) -> str:
        """The text that wakes the operator: the symptom, the memories of colleagues, and the tools."""
        played, lab = self._played, self._played.lab
        symptom = TABLES.symptoms[played.kind.symptom].page.format(**played.names)
        ids = ", ".join(map(str, sorted(lab.world.brokers)))
        tools = "Logs and tables only." if self.logs_only else f"A budget of {BUDGET} commands."
        return (
            f"{EPOCH + timedelta(seconds=self.lab._began):%H:%M:%S}  {symptom}\n{' '.join(played.remembered)}\n"
            f"Kafka {lab.generation.kafka}, brokers {ids}. {tools}"
        )

    def __repr__(self) -> str:
        return self.page

    @property
    def clock(self) -> float:
        """Virtual seconds since the page."""
        return round(self.lab.seconds, 1)

    @property
    def alert(self) -> bool:
        """True while the monitor sees the symptom of the page; also for a symptom that is over."""
        return self._played.has_symptom()

    @property
    def left(self) -> int:
        """Commands that are left; `heal` counts as 3."""
        return 0 if self.logs_only else BUDGET - self.lab.spent

    def logs(self, name: str = "server", broker: int | None = None, contains: str = "") -> LogText:
        """The lines of a log: `server`, `controller` and `state-change` of the brokers, or `client` of the producers.

        With `broker`, only the lines of its process; with `contains`, only those in which this regular expression is
        found. Raises UnknownName for other names and brokers, BadInput for what is not a regular expression.
        """
        if name not in LOGS:
            raise UnknownName("log", name if isinstance(name, str) else short(name), LOGS)
        brokers = sorted(self._played.lab.world.brokers)
        if broker is not None and (not isinstance(broker, int) or broker not in brokers):
            raise UnknownName("broker", broker, brokers)
        if not isinstance(contains, str):
            raise BadInput(f"contains cannot be {short(contains)}; it must be a regular expression as text")
        try:
            wanted = re.compile(contains)
        except re.error as error:
            raise BadInput(f"contains cannot be {short(contains)}: {error}") from None
        lab = self.lab.look()
        if name in NAMES:
            text = kafka_log(lab.trace, name, lab.generation.name, broker)
        else:
            text = "".join(
                line for record in lab.trace.records for line in _lines(record, name, broker, lab.generation.name)
            )
        return LogText("".join(line for line in text.splitlines(keepends=True) if wanted.search(line)))

    def answer(self, cause: str, component: object) -> Score:
        """Close the incident: its cause, one of `CAUSES`, and the component that has to be looked after.

        The component is a broker's id, a topic, or `zookeeper`. Returns the score: cause, component, time, and with a
        living cluster also whether the symptom is gone and what was lost since the page. These three count half where
        only one of cause and component is right, and not at all where neither is: who cannot say what was repaired
        cannot say that it will hold. Raises UnknownName for another cause or component, BadInput for a second answer.
        """
        if self.score is not None:
            raise BadInput("this incident is answered already; on_call() opens another one")
        if not isinstance(cause, str) or cause not in TABLES.causes:
            raise UnknownName("cause", cause if isinstance(cause, str) else short(cause), TABLES.causes)
        named = self._component(component)
        rights = self._played.components
        is_cause, is_component = cause == self._played.kind.cause, named in rights
        found = [
            Part("cause", 40 * is_cause, 40, "right" if is_cause else f"it was {self._played.kind.cause}"),
            Part("component", 20 * is_component, 20, "right" if is_component else f"it was {' or '.join(rights)}"),
        ]
        others = [_timed(self.lab.seconds), *([] if self.logs_only else self._repaired())]
        right = is_cause + is_component
        self.score = Score([*found, *(part._replace(points=part.points * right // 2) for part in others)])
        return self.score

    def _component(self, given: object) -> str:
        """The name of a component: `3` for a broker, however it was written."""
        lab = self._played.lab
        topics = {p.topic for p in lab.partitions()} | {self._played.names["t"]}
        known = [*map(str, sorted(lab.world.brokers)), *sorted(topics), ZOOKEEPER]
        written = given.strip() if isinstance(given, str) else short(given)
        text = re.sub(r"(?i)^broker[ -]*(?=\d+$)", "", written)
        text = text if text in known else re.sub(r"-\d+$", "", text)
        if isinstance(given, bool) or text not in known:
            raise UnknownName("component", given if isinstance(given, str) else short(given), known)
        return text

    def _repaired(self) -> list[Part]:
        played, parts = self._played, []
        if TABLES.symptoms[played.kind.symptom].fixable:
            gone = not self.alert
            parts.append(Part("repair", 20 * gone, 20, "the symptom is gone" if gone else "the symptom is still there"))
        lost, leaderless = played.lost() - self._lost, played.leaderless_seconds() - self._leaderless
        points = 0 if lost > 0 else 10 - min(10, int(max(0.0, leaderless - PROMPT_SECONDS) / 60))
        reason = f"{max(0, lost)} acknowledged records, {max(0.0, leaderless):.0f} partition-seconds without a leader"
        return [*parts, Part("lost since the page", points, 10, reason)]

    def solution(self) -> Solution:
        """The cause, and the proof: the same story without the fault. Raises BadInput before the answer."""
        if self.score is None:
            raise BadInput("the solution opens after answer(cause=..., component=...)")
        return Solution(self._played, self.seed)

    def link(self) -> str:
        """The address that opens this incident on a site, in a notebook; it does not tell cause or component."""
        return f"{PAGE}#on-call={self.seed}{'&logs' * self.logs_only}"


class Solution:
    """The cause of an incident, its story, and the proof that without the fault the symptom is gone."""

    def __init__(self, played: Played, seed: int) -> None:
        self._played, self._seed = played, seed
        kind = played.kind
        self.cause, self.meaning = kind.cause, TABLES.causes[kind.cause]
        self.components = played.components
        self.reason = kind.reason.format(**played.names)

    @functools.cached_property
    def without_fault(self) -> Played:
        """The same story without the fault."""
        return play(self._seed, faulty=False)

    @property
    def is_proven(self) -> bool:
        """True if the symptom is absent from the story without the fault."""
        return not self.without_fault.has_symptom()

    @property
    def story(self) -> str:
        """The commands of the whole run, the learner's among them."""
        return self._played.lab.story

    def player(self, view: str = "cluster") -> Player:
        """The film from the fault on, opened at it; `view` is one of those of `Lab.player`."""
        return self._played.lab.player(view, start=self._played.began, limit=60, index=1)

    def __repr__(self) -> str:
        proof = "absent" if self.is_proven else "there all the same"
        return (
            f"{self.cause} ({', '.join(self.components)}): {self.meaning}.\n{self.reason}\n"
            f"The same story without the fault: the symptom is {proof}."
        )


def on_call(seed: int | str | None = None, *, logs_only: bool = False, today: date | None = None) -> Incident:
    """The incident of a seed: a number, a link of `Incident.link()`, or `today` for the incident of the day.

    Without a seed one is drawn. With `logs_only` there are only logs and tables. `today` is the date of the incident of
    the day. The same seed is the same incident, record for record. Raises BadInput for another seed.
    """
    alone = validate.flag("logs_only", logs_only)
    if seed is None:
        seed = random.randrange(2**31)
    elif seed == TODAY:
        if not isinstance(today, date | None):
            raise BadInput(f"today cannot be {short(today)}; it must be a datetime.date")
        seed = (today or date.today()).toordinal()
    elif isinstance(seed, str):
        found = re.search(r"(?:^|#on-call=)(\d{1,18})(&logs)?$", seed.strip())
        if found is None:
            allowed = f"a number from 0 to {MOST_SEED}, {TODAY!r}, or a link that ends in #on-call=NUMBER"
            raise BadInput(f"a seed cannot be {short(seed)}; it must be {allowed}")
        seed, alone = int(found[1]), alone or found[2] is not None
    return Incident(validate.integer("a seed", seed, 0, MOST_SEED), alone)


def _timed(seconds: float) -> Part:
    """The part of a score for the time since the page."""
    late = min(1.0, max(0.0, (seconds - PROMPT_SECONDS) / (LATE_SECONDS - PROMPT_SECONDS)))
    return Part("time", round(10 * (1 - late)), 10, f"{seconds:.0f} s since the page")


def _lines(record: Record, name: str, broker: int | None, generation: str) -> list[str]:
    """The line that a record leaves in `server.log` or with a producer; none for most records."""
    action = "refused" if record.action == "stopped" and record.error else record.action
    key, none = (record.kind, action), ("", "")
    file, text = TABLES.lines.get(key) or TABLES.lines.get((*key, generation), none)
    owner = broker_of(record)
    of_client = record.actor == "producer"
    if file != name or owner is None or broker not in (None, owner) or of_client != (name == "client"):
        return []
    fields = dict.fromkeys(("records", "acks", "session", "isr_before", "partitions", "offset"), "")
    fields |= details.named(record.detail)
    if fields["records"]:
        values = [value for value, _ in details.records(fields["records"])]
        fields["records"] = f"{values[0]} to {values[-1]}"
    outcome = record.error or f"offset {fields['offset']}"
    columns = {"broker": owner, "tp": str(record.tp) if record.topic else "", "message": record.detail}
    filled = text.format(**fields | columns | {"isr": details.listed(record.isr or ()), "outcome": outcome})
    moment = EPOCH + timedelta(milliseconds=int(record.time_ms))
    whose = f"broker {owner}: " if broker is None and name == "server" else ""
    return [f"[{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}] {whose}{filled}\n"]


CAUSES = TABLES.causes
"""The causes that an answer can name, each with what it means."""
