"""Functions of one's own in a running lab: an election, an assignment, a request batch, a fence.

    Lab(elections={"offline": mine})    `mine(assignment, isr, live, unclean)` elects whenever a leader is missing
    Lab(rules={"fence": mine})          `mine(request_epoch, newest_seen)` decides what a broker obeys

`ELECTIONS` and `RULES` list every name with what its function is given and has to return. A function cannot stand in a
story: the story names it, and `Lab.replay` wants it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NoReturn, TypeVar

from kafka_ctl.balance import Candidate
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.election import Election
from kafka_ctl.errors import BadInput, PluginFailed, UnknownName, short

T = TypeVar("T")
ELECTIONS = {
    "offline": "assignment, isr, live, unclean",
    "unclean": "assignment, isr, live, unclean",
    "preferred": "assignment, isr, live",
    "reassigned": "target, isr, live",
    "controlled_shutdown": "assignment, isr, live, shutting_down",
}
"""By occasion, what an election is given: tuples of broker ids, `live` and `shutting_down` as sets.

Each returns an `Election` or a pair (leader, ISR); None when nobody may lead.
"""

RULES = {
    "assignment": "brokers, partitions, replication_factor",
    "batch": "changes",
    "deletion": "states, alive, halted",
    "fence": "request_epoch, newest_seen",
    "high_watermark": "ends, isr, leader",
    "late": "now, last_caught_up, follower_end, leader_end, max_lag",
    "pipeline": "operations, window",
    "reassignment": "old, new",
    "rebalance": "partitions, live, moving, percentage",
    "shrink": "leader, isr, gone",
    "target": "replicas, adding, removing, target",
    "transition": "source, target",
}
"""What the other functions are given.

`assignment` returns `{partition: [broker ids]}` of a new topic. `batch` gets triples (kind, partition, receivers) and
returns requests (kind, receiver, [partitions]) in the order of sending. `deletion` gets the states of a topic's
replicas, `{(partition, broker): "OfflineReplica"}`, and returns one of `MOVES`. `fence` returns whether a broker
obeys a request with this controller epoch. `high_watermark` gets where the log of each assigned replica ends, as its
leader knows (-1 for one that has not fetched yet), and returns the offset below which all records are committed.
`late` gets, of a follower in the ISR, when it last had everything and where both logs end, and returns whether it
leaves the ISR; times are milliseconds. `pipeline` cuts a list of names of ZooKeeper operations into lists, each sent
when the one before is answered; `window` is how many may be in flight. `reassignment`, asked by 0.10 and 2.0, returns
four collections of broker ids: AR while it lasts, who gets a replica, who loses one, and who has to be in the ISR
before. `rebalance` gets `Candidate`s of `kafka_ctl.balance`, sets of live brokers and of partitions under
reassignment, and returns those whose preferred replicas an automatic check elects. `shrink` returns leader and ISR of
a partition once the replica on broker `gone`, which is in the ISR, goes Offline. `target`, asked by 2.4 for a
reassignment that begins, changes or is cancelled, gets the three lists of the topic's znode and the new replicas, and
returns the three lists. `transition` gets two states of a partition, such as "New" and "Online", and returns whether
the move is legal.
"""

MOVES = ("complete", "wait", "start")
"""What a controller may do next with a topic that is to be deleted."""
KINDS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
"""The requests of a batch."""
STRATEGIES = {"reassign": "reassigned", "controlled-shutdown": "controlled_shutdown"}
"""What the controller calls the strategies that have another name here."""
Function = Callable[..., object]
Change = tuple[str, TopicPartition, tuple[int, ...]]
Request = tuple[str, int, tuple[TopicPartition, ...]]


class Plugins:
    """The functions that one lab was given; `failed` hears of the first error in one of them."""

    def __init__(
        self, elections: Mapping[str, Function] | None = None, rules: Mapping[str, Function] | None = None
    ) -> None:
        self.elections = _functions("elections", elections, ELECTIONS)
        self.rules = _functions("rules", rules, RULES)
        self.failed: Callable[[BaseException], None] = lambda error: None

    @property
    def given(self) -> dict[str, Any]:
        """What `Lab` has to be given for the same functions; empty without any."""
        both = {"elections": self.elections, "rules": self.rules}
        return {name: functions for name, functions in both.items() if functions}

    @property
    def names(self) -> list[str]:
        """What a story says of them: `elections.offline`."""
        return [f"{what}.{name}" for what, functions in self.given.items() for name in functions]

    def elect(
        self,
        strategy: str,
        usual: Callable[..., Election | None],
        assignment: Sequence[int],
        isr: Sequence[int],
        *others: Iterable[int] | bool,
    ) -> Election | None:
        """The outcome of one election: of the function for this strategy, of `usual` where there is none."""
        name = STRATEGIES.get(strategy, str(strategy))
        mine = self.elections.get(name)
        if mine is None:
            return usual(assignment, isr, *others)
        values = (
            tuple(assignment),
            tuple(isr),
            *(other if isinstance(other, bool) else frozenset(other) for other in others),
        )
        answer = self._call("elections", name, values)
        try:
            return _election(answer, isr)
        except (TypeError, ValueError):
            self._fail("elections", name, values, f"returned {short(answer)}; {ELECTED}")

    def assign(self, brokers: Iterable[int], partitions: int, replication_factor: int) -> dict[int, list[int]]:
        """The replicas of a new topic; what a topic cannot be created with is refused later."""
        values = sorted(brokers), partitions, replication_factor
        answer = self._call("rules", "assignment", values)
        try:
            return {_integer(number): [_integer(id) for id in ids] for number, ids in answer.items()}
        except (AttributeError, TypeError, ValueError):
            wanted = "a dictionary such as {0: [1, 2]} is expected: by partition, the ids of its brokers"
            self._fail("rules", "assignment", values, f"returned {short(answer)}; {wanted}")

    def next_deletion(self, states: Mapping[tuple[int, int], str], alive: Iterable[int], halted: bool) -> str:
        """What is done next with a topic that is to be deleted: one of `MOVES`."""
        values = dict(states), frozenset(alive), halted
        answer = self._call("rules", "deletion", values)
        if not isinstance(answer, str) or answer not in MOVES:
            self._fail("rules", "deletion", values, f"returned {short(answer)}; one of {', '.join(MOVES)} is expected")
        return answer

    def move(self, old: tuple[int, ...], new: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Of a reassignment: AR while it lasts, who gets a replica, who loses one, who has to be in sync before."""
        values = tuple(old), tuple(new)
        answer = self._call("rules", "reassignment", values)
        try:
            during, create, remove, in_sync = (tuple(map(_integer, part)) for part in answer)
        except (TypeError, ValueError):
            wanted = "four collections of broker ids are expected, such as ([1, 2, 3], [3], [1], [2, 3])"
            self._fail("rules", "reassignment", values, f"returned {short(answer)}; {wanted}")
        return during, create, remove, in_sync

    def head_for(
        self, replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], target: tuple[int, ...]
    ) -> tuple[tuple[int, ...], ...]:
        """The three lists of a partition on its way to other replicas: all of them, those added, those removed."""
        values = tuple(replicas), tuple(adding), tuple(removing), tuple(target)
        answer = self._call("rules", "target", values)
        try:
            full, more, less = (tuple(map(_integer, part)) for part in answer)
        except (TypeError, ValueError):
            wanted = "three lists of broker ids are expected, such as ([3, 4, 2, 1], [4], [1])"
            self._fail("rules", "target", values, f"returned {short(answer)}; {wanted}")
        return full, more, less

    def obeys(self, request_epoch: int, newest_seen: int) -> bool:
        """Whether a broker that has seen `newest_seen` obeys a request with this controller epoch."""
        return self._decides("fence", request_epoch, newest_seen)

    def _decides(self, name: str, *values: object) -> bool:
        """The answer of a rule that says yes or no."""
        answer = self._call("rules", name, values)
        if not isinstance(answer, bool):
            self._fail("rules", name, values, f"returned {short(answer)}; True or False is expected")
        return answer

    def is_late(self, now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
        """Whether a follower has to leave the ISR; times are milliseconds."""
        return self._decides("late", now, last_caught_up, follower_end, leader_end, max_lag)

    def may_move(self, source: str, target: str) -> bool:
        """Whether a partition may move from one state to the other; `New`, `Online`, ..."""
        return self._decides("transition", source, target)

    def high_watermark(self, ends: Mapping[int, int], isr: tuple[int, ...], leader: int) -> int:
        """The offset below which the records of a partition are committed, by what its leader knows."""
        values = dict(ends), isr, leader
        answer = self._call("rules", "high_watermark", values)
        if not isinstance(answer, int) or isinstance(answer, bool) or answer > ends[leader]:
            wanted = f"an offset is expected, a whole number up to {ends[leader]}, where the leader's log ends"
            self._fail("rules", "high_watermark", values, f"returned {short(answer)}; {wanted}")
        return answer

    def trips(self, operations: Sequence[T], window: int) -> list[Sequence[T]]:
        """The operations by the round trip that they are sent in; the function is given, and returns, their names."""
        names = list(map(_operation, operations))
        answer = self._call("rules", "pipeline", (names, window))
        try:
            trips = [list(each) for each in answer]
        except TypeError:
            trips = []
        if [each for trip in trips for each in trip] != names or not all(trips):
            wanted = "a list of lists is expected, with every operation once and in order: so are the answers paired"
            self._fail("rules", "pipeline", (names, window), f"returned {short(answer)}; {wanted}")
        ends = list(accumulate(map(len, trips)))
        return [operations[end - len(trip) : end] for end, trip in zip(ends, trips, strict=True)]

    def rebalance(
        self, partitions: list[Candidate], live: frozenset[int], moving: frozenset[TopicPartition], percentage: int
    ) -> list[TopicPartition]:
        """The partitions whose preferred replicas are elected, in the order of a check."""
        values = list(partitions), live, moving, percentage
        answer = self._call("rules", "rebalance", values)
        try:
            chosen = {TopicPartition(each.topic, each.partition) for each in answer}
        except (AttributeError, TypeError):
            wanted = "a list of some of the partitions that were given is expected"
            self._fail("rules", "rebalance", values, f"returned {short(answer)}; {wanted}")
        return [tp for each in partitions if (tp := TopicPartition(each.topic, each.partition)) in chosen]

    def shrink(self, leader: int, isr: tuple[int, ...], gone: int) -> tuple[int, tuple[int, ...]]:
        """Leader and ISR once the replica on broker `gone` is Offline."""
        values = leader, isr, gone
        answer = self._call("rules", "shrink", values)
        try:
            found = _election(answer, isr)
        except (TypeError, ValueError):
            found = None
        if found is None:
            wanted = "a leader (-1 for none) and the ISR are expected, such as (2, (2, 3))"
            self._fail("rules", "shrink", values, f"returned {short(answer)}; {wanted}")
        return found.leader, found.isr

    def pack(self, changes: list[Change]) -> list[Request]:
        """The requests of one batch."""
        answer = self._call("rules", "batch", (list(changes),))
        try:
            return [_request(kind, broker, partitions) for kind, broker, partitions in answer]
        except (TypeError, ValueError):
            wanted = "a list of requests such as ('LeaderAndIsr', 1, [partition, partition]) is expected"
            self._fail("rules", "batch", (changes,), f"returned {short(answer)}; {wanted}")

    def _call(self, what: str, name: str, values: tuple[object, ...]) -> Any:
        try:
            return (self.elections if what == "elections" else self.rules)[name](*values)
        except Exception as error:
            self._fail(what, name, values, f"raised {type(error).__name__}: {error}", error)

    def _fail(self, what: str, name: str, values: Iterable[object], did: str, why: Exception | None = None) -> NoReturn:
        words = (ELECTIONS if what == "elections" else RULES)[name].split(", ")
        called = ", ".join(f"{word}={plain(value)}" for word, value in zip(words, values, strict=True))
        error = PluginFailed(f"{what}[{name!r}] {did} (called with {called})")
        self.failed(error)
        raise error from why


ELECTED = "a leader and the ISR are expected, such as (2, (2, 3)), or None for nobody"


def plain(value: object) -> str:
    """A value as one would type it: sets in order, without their type."""
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(map(plain, sorted(value))) + "}" if value else "set()"
    return short(value)


def _operation(operation: object) -> str:
    """A ZooKeeper operation in two words, `set /controller`; of a transaction its last part."""
    last = operation.ops[-1] if hasattr(operation, "ops") else operation
    return f"{type(last).__name__.lower()} {last.path}" if hasattr(last, "path") else str(last)


def _functions(what: str, given: Mapping[str, Function] | None, known: Mapping[str, str]) -> dict[str, Function]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadInput(f"{what} cannot be {short(given)}; it is a dictionary of functions: {', '.join(known)}")
    for name, function in given.items():
        if name not in known:
            raise UnknownName(f"name in {what}", name, known)
        if not callable(function):
            raise BadInput(f"{what}[{name!r}] cannot be {short(function)}; it is a function of ({known[name]})")
    return dict(given)


def _election(answer: Any, isr: Iterable[int]) -> Election | None:
    """What a function returned as an Election; ValueError or TypeError where it is none."""
    if answer is None or isinstance(answer, Election):
        return answer
    leader, members = answer
    return Election(_integer(leader), tuple(map(_integer, members)), unclean=leader not in tuple(isr))


def _request(kind: str, broker: object, partitions: Iterable[TopicPartition]) -> Request:
    if kind not in KINDS or not all(isinstance(tp, TopicPartition) for tp in partitions):
        raise ValueError(kind)
    return kind, _integer(broker), tuple(partitions)


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def wanted(names: object, given: Plugins) -> None:
    """BadInput where a story names plug-ins that were not given again."""
    if not isinstance(names, list):
        raise BadInput(f"plugins={short(names)}: a list of names such as elections.offline is expected")
    missing = [str(name) for name in names if name not in given.names]
    if missing:
        what, _, name = missing[0].partition(".")
        raise BadInput(
            f"this story was made with functions that a story cannot hold: {', '.join(missing)}; give them again, "
            f"as in Lab.replay(story, {what}={{{name!r}: mine}})"
        )
