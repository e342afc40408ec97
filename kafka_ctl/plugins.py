"""Functions of one's own in a running lab: an election, an assignment, a request batch, a fence.

    Lab(elections={"offline": mine})    `mine(assignment, isr, live, unclean)` elects whenever a leader is missing
    Lab(rules={"fence": mine})          `mine(request_epoch, newest_seen)` decides what a broker obeys

`ELECTIONS` and `RULES` list every name with what its function is given and has to return. A function cannot stand in a
story: the story names it, and `Lab.replay` wants it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from kafka_ctl.balance import Candidate
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.election import Election
from kafka_ctl.errors import BadInput, PluginFailed, UnknownName, UnusableFunction, raised, short

T = TypeVar("T")
F = TypeVar("F")
ELECTIONS = {
    "offline": "assignment, isr, live, unclean",
    "unclean": "assignment, isr, live, unclean",
    "preferred": "assignment, isr, live",
    "reassigned": "target, isr, live",
    "controlled_shutdown": "assignment, isr, live, shutting_down",
}
"""By occasion, what an election is given: tuples of broker ids, `live` and `shutting_down` as sets.

Each returns an `Election` or a pair (leader, ISR); None when no replica may lead.
"""

RULES = {
    "assignment": "brokers, partitions, replication_factor",
    "batch": "changes",
    "brokers": "known, listed, read",
    "bumped": "cached, written",
    "deletion": "states, alive, halted",
    "electable": "partition, live, moving",
    "fence": "request_epoch, newest_seen",
    "high_watermark": "ends, isr, leader",
    "late": "now, last_caught_up, follower_end, leader_end, max_lag",
    "own_write": "wanted, stored",
    "pipeline": "operations, window",
    "reassignment": "old, new",
    "rebalance": "partitions, live, moving, percentage",
    "receivers": "assignment, live, shutting_down",
    "retry": "asked, refused",
    "session": "broker, controller",
    "shrink": "leader, isr, gone",
    "startup": "states",
    "takeover": "steps",
    "target": "replicas, adding, removing, target",
    "transition": "source, target",
    "truncate": "high_watermark, end, shared",
    "waiting": "asked, queued, moving",
}
"""The arguments of the other functions.

`assignment` returns `{partition: [broker ids]}` of a new topic. `batch` gets triples (kind, partition, receivers) and
returns requests (kind, receiver, [partitions]) in the order of sending. `brokers` gets three sets of broker ids: those
the controller knows, the children of `/brokers/ids`, and those whose znodes it then read; it returns the new brokers,
which were read, and the dead ones, which it knew. `bumped` gets the leader epoch in the controller's memory and the one
that a reassignment has just written, and returns the one to remember. `deletion` gets the states of a topic's
replicas, `{(partition, broker): "OfflineReplica"}`, and returns one of `MOVES`. `electable` gets a `Candidate` of
`kafka_ctl.balance` that its preferred replica does not lead, and sets as `rebalance` does; it returns whether an
automatic check may elect that replica. `fence` returns whether a broker
obeys a request with this controller epoch. `high_watermark` gets where the log of each assigned replica ends, as its
leader knows (-1 for one that has not fetched yet), and returns the offset below which all records are committed.
`late` gets, of a follower in the ISR, when it last had everything and where both logs end, and returns whether it
leaves the ISR; times are milliseconds. `own_write` gets the text that a leader wanted to write into a `state` znode and
the text that is there after a refusal, and returns whether its own write was done. `pipeline` cuts a list of names of
ZooKeeper operations into lists, each sent when the one before is answered; `window` is how many may be in flight.
`reassignment`, asked by 0.10 and 2.0, returns four collections of broker ids: AR while it lasts, who gets a replica,
who loses one, and who has to be in the ISR before. `rebalance` gets `Candidate`s of `kafka_ctl.balance`, sets of live
brokers and of partitions under reassignment, and returns those whose preferred replicas an automatic check elects.
`receivers` returns the brokers that get the LeaderAndIsr of an election in a controlled shutdown; a broker that shuts
down is in `live`, too. `retry` gets the partitions of a round of elections, and those whose write was refused for its
version; it returns the partitions of the next round. `session`, asked by 0.10, returns whether a broker with a new
session resigns and competes; `controller` is the id in `/controller`, -1 without one. `shrink` returns leader and ISR
of a partition once the replica on broker `gone`, which is in the ISR, goes Offline. `startup` gets the states that a
new controller has guessed, `{(topic, partition, broker): "OnlineReplica"}`, and returns two lists of these replicas:
those it moves to Online, and those it moves to Offline. `takeover` gets `STEPS` and returns them in the order in which
a new controller takes them. `target`, asked by 2.4 for a reassignment that begins, changes or is cancelled, gets the
three lists of the topic's znode and the new replicas, and returns the three lists. `transition` gets two states of a
partition, such as "New" and "Online", and returns whether the move is legal. `truncate` returns the offset at which a
new follower cuts its log, which ends at `end`; `shared` is where its leader's log parts from it by leader epochs, None
until the leader has answered. `waiting` gets the
topics that are to be deleted now, those that waited already, and those with a move or an election; it returns those
whose deletion has to wait.
"""

STEPS = ("replica states", "partition states", "unfinished work", "metadata")
"""The steps of a new controller that has read the cluster; `metadata` goes to all brokers."""
MOVES = ("complete", "wait", "start")
"""The possible next steps for a topic that is to be deleted."""
KINDS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
"""The requests of a batch."""
STRATEGIES = {"reassign": "reassigned", "controlled-shutdown": "controlled_shutdown"}
"""The controller's names for strategies that have another name here."""
Function = Callable[..., object]
Change = tuple[str, TopicPartition, tuple[int, ...]]
Request = tuple[str, int, tuple[TopicPartition, ...]]


class Plugins:
    """The functions that one lab was given; `failed` hears of the first error in one of them, `interrupted` of Ctrl-C.

    A function may never end, so Ctrl-C interrupts it (`interruptible`), and the actor goes on as if it had raised.
    """

    def __init__(
        self, elections: Mapping[str, Function] | None = None, rules: Mapping[str, Function] | None = None
    ) -> None:
        self.elections = _functions("elections", elections, ELECTIONS)
        self.rules = _functions("rules", rules, RULES)
        self.failed: Callable[[BaseException], None] = lambda error: None
        self.interrupted: Callable[[KeyboardInterrupt], None] | None = None
        self.interruptible: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `Lab` for the same functions; empty without any."""
        both = {"elections": self.elections, "rules": self.rules}
        return {name: functions for name, functions in both.items() if functions}

    @property
    def names(self) -> list[str]:
        """The names in a story: `elections.offline`."""
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
        if name not in self.elections:
            return usual(assignment, isr, *others)
        rest = (other if isinstance(other, bool) else frozenset(other) for other in others)
        return cast("Election | None", self.decided("elections", name, tuple(assignment), tuple(isr), *rest))

    def rule(self, name: str, usual: F) -> F:
        """The function that decides: the plugged-in one, whose answers are checked and decoded, or else `usual`."""
        return cast("F", partial(self.decided, "rules", name)) if name in self.rules else usual

    def decided(self, what: str, name: str, *values: object) -> object:
        """The decoded answer of a function that was given; PluginFailed where it cannot be decoded."""
        expected = ELECTED if what == "elections" else ANSWERS[name]
        answer = self._call(what, name, values)
        try:
            return expected.decode(answer, *values)
        except (AttributeError, TypeError, ValueError):
            wanted = expected.wanted if isinstance(expected.wanted, str) else expected.wanted(*values)
            self._fail(what, name, values, f"returned {short(answer)}; {wanted}")

    def _call(self, what: str, name: str, values: tuple[object, ...]) -> object:
        try:
            with self.interruptible():
                return getattr(self, what)[name](*copies(values))
        except KeyboardInterrupt as stop:
            if self.interrupted is None:
                raise
            self.interrupted(stop)
            self._fail(what, name, values, "was interrupted", stop)
        except UnusableFunction as error:
            self._fail(what, name, values, str(error), error)
        except BaseException as error:  # SystemExit, too: the program is not the function's to end
            self._fail(what, name, values, raised(error), error)

    def _fail(
        self, what: str, name: str, values: Iterable[object], did: str, why: BaseException | None = None
    ) -> NoReturn:
        error = PluginFailed(f"{what}[{name!r}] {did} (called with {called(what, name, values)})")
        self.failed(error)
        raise error from why


def called(what: str, name: str, values: Iterable[object]) -> str:
    """The arguments of a call by their names."""
    words = (ELECTIONS if what == "elections" else RULES)[name].split(", ")
    return ", ".join(f"{word}={plain(value)}" for word, value in zip(words, values, strict=True))


def copies(values: Iterable[object]) -> Iterator[object]:
    """Arguments for a function that may change what it is given."""
    return (copy(value) if isinstance(value, dict | list) else value for value in values)


def plain(value: object) -> str:
    """A value as one would type it: sets in order, without their type."""
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(map(plain, sorted(value))) + "}" if value else "set()"
    return short(value)


def split(
    trips: Callable[[list[str], int], list[list[str]]], operations: Sequence[T], window: int
) -> list[Sequence[T]]:
    """The operations by the round trip that they are sent in; `trips` is given, and returns, their names."""
    ends = list(accumulate(map(len, trips(list(map(_operation, operations)), window))))
    return [operations[start:end] for start, end in pairwise((0, *ends))]


def _operation(operation: object) -> str:
    """A ZooKeeper operation in two words, `set /controller`; of a transaction its last part."""
    last = operation.ops[-1] if hasattr(operation, "ops") else operation
    return f"{type(last).__name__.lower()} {last.path}" if hasattr(last, "path") else str(last)


def _functions(what: str, given: Mapping[str, Function] | None, known: Mapping[str, str]) -> dict[str, Function]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadInput(f"{what} cannot be {short(given)}; it must be a dictionary of functions: {', '.join(known)}")
    for name, function in given.items():
        if name not in known:
            raise UnknownName(f"name in {what}", name, known)
        if not callable(function):
            raise BadInput(f"{what}[{name!r}] cannot be {short(function)}; it must be a function of ({known[name]})")
    return dict(given)


def _election(
    answer: Election | tuple[int, Iterable[int]] | None, assignment: object, isr: tuple[int, ...], *others: object
) -> Election | None:
    if answer is None:
        return None
    leader, members = answer[:2] if isinstance(answer, Election) else answer
    unclean = answer.unclean if isinstance(answer, Election) else leader not in (NO_LEADER, *isr)
    return Election(_integer(leader), _integers(members), _bool(unclean))


def _assignment(answer: Mapping[int, Iterable[int]], *values: object) -> dict[int, list[int]]:
    """Unusable assignments are refused when the topic is created."""
    return {_integer(number): [*_integers(ids)] for number, ids in answer.items()}


def _move(answer: object, *values: object) -> str:
    if answer not in MOVES:
        raise ValueError(answer)
    return str(answer)


def _bool(answer: object, *values: object) -> bool:
    if not isinstance(answer, bool):
        raise TypeError(answer)
    return answer


def _pair_of(answer: object, *given: Iterable[object]) -> tuple[list[object], ...]:
    """Two lists, the first with members of the first collection, the second with members of the second one."""
    first, second = map(list, cast("Iterable[Iterable[object]]", answer))
    if not set(first) <= set(given[0]) or not set(second) <= set(given[1]):
        raise ValueError(answer)
    return first, second


def _members(answer: Iterable[object], *given: Iterable[object]) -> list[object]:
    """Members of the collections that were given, in their order."""
    chosen, known = list(answer), list(dict.fromkeys(each for group in given for each in group))
    if not all(each in known for each in chosen):
        raise ValueError(answer)
    return [each for each in known if each in chosen]


def _order(answer: Iterable[str], steps: tuple[str, ...]) -> list[str]:
    order = list(answer)
    if isinstance(answer, set | frozenset) or sorted(order) != sorted(steps):
        raise ValueError(answer)
    return order


def _cut(answer: object, high_watermark: int, end: int, shared: int | None) -> int:
    if not 0 <= (offset := _integer(answer)) <= end:
        raise ValueError(offset)
    return offset


def _offset(answer: object, ends: Mapping[int, int], isr: object, leader: int) -> int:
    if (offset := _integer(answer)) > ends[leader]:
        raise ValueError(offset)
    return offset


def _lists(count: int, answer: Iterable[Iterable[int]], *values: object) -> tuple[tuple[int, ...], ...]:
    lists = tuple(map(_integers, answer))
    if len(lists) != count:
        raise ValueError(answer)
    return lists


def _shrunk(
    answer: Election | tuple[int, Iterable[int]], leader: int, isr: tuple[int, ...], gone: int
) -> tuple[int, tuple[int, ...]]:
    leader, staying, _ = cast("Election", _election(answer, (), isr))
    return leader, staying


def _trips(answer: Iterable[Iterable[str]], names: list[str], window: int) -> list[list[str]]:
    trips = list(map(list, answer))
    if [each for trip in trips for each in trip] != names or not all(trips):
        raise ValueError(answer)
    return trips


def _chosen(answer: Iterable[TopicPartition], partitions: list[Candidate], *others: object) -> list[TopicPartition]:
    chosen = {TopicPartition(each.topic, each.partition) for each in answer}
    return [tp for each in partitions if (tp := TopicPartition(each.topic, each.partition)) in chosen]


def _requests(answer: Iterable[tuple[str, int, Iterable[TopicPartition]]], changes: list[Change]) -> list[Request]:
    requests = [(kind, _integer(broker), tuple(partitions)) for kind, broker, partitions in answer]
    if not all(kind in KINDS and all(isinstance(tp, TopicPartition) for tp in tps) for kind, _, tps in requests):
        raise ValueError(answer)
    return requests


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _integers(values: Iterable[object]) -> tuple[int, ...]:
    return tuple(map(_integer, values))


class Answer(NamedTuple):
    """The form of an answer; `decode` gets the answer and the arguments, and raises ValueError or TypeError."""

    decode: Callable[..., object]
    wanted: str | Callable[..., str]


ELECTED = Answer(_election, "a leader and the ISR are expected, such as (2, (2, 3)), or None for no leader")
DECISION = Answer(_bool, "True or False is expected")
ANSWERS = {
    "assignment": Answer(
        _assignment, "a dictionary such as {0: [1, 2]} is expected: by partition, the ids of its brokers"
    ),
    "batch": Answer(_requests, "a list of requests such as ('LeaderAndIsr', 1, [partition, partition]) is expected"),
    "brokers": Answer(
        lambda answer, known, listed, read: _pair_of(answer, read, known),
        "two collections of broker ids are expected: new ones of `read`, and dead ones of `known`",
    ),
    "bumped": Answer(lambda answer, *epochs: _integer(answer), "a leader epoch is expected, a whole number"),
    "deletion": Answer(_move, f"one of {', '.join(MOVES)} is expected"),
    "electable": DECISION,
    "fence": DECISION,
    "high_watermark": Answer(
        _offset,
        lambda ends, isr, leader: (
            f"an offset is expected, a whole number up to {ends[leader]}, where the leader's log ends"
        ),
    ),
    "late": DECISION,
    "own_write": DECISION,
    "pipeline": Answer(
        _trips, "a list of lists is expected, none of them empty, with every operation once and in order"
    ),
    "reassignment": Answer(
        partial(_lists, 4), "four collections of broker ids are expected, such as ([1, 2, 3], [3], [1], [2, 3])"
    ),
    "rebalance": Answer(_chosen, "a list of some of the partitions that were given is expected"),
    "receivers": Answer(
        lambda answer, assignment, *others: _members(answer, assignment),
        "a list of some of the broker ids in `assignment` is expected",
    ),
    "retry": Answer(
        lambda answer, asked, refused: _members(answer, asked),
        "a list of some of the partitions in `asked` is expected",
    ),
    "session": DECISION,
    "shrink": Answer(_shrunk, "a leader (-1 for none) and the ISR are expected, such as (2, (2, 3))"),
    "startup": Answer(
        lambda answer, states: _pair_of(answer, states, states),
        "two lists of some of the replicas in `states` are expected",
    ),
    "takeover": Answer(_order, "a list of the four steps is expected, each once"),
    "target": Answer(partial(_lists, 3), "three lists of broker ids are expected, such as ([3, 4, 2, 1], [4], [1])"),
    "transition": DECISION,
    "truncate": Answer(_cut, lambda high_watermark, end, shared: f"an offset from 0 to {end} is expected"),
    "waiting": Answer(
        lambda answer, asked, queued, moving: _members(answer, asked, queued),
        "a list of some of the topics in `asked` and `queued` is expected",
    ),
}
"""The form of each rule's answer."""


def wanted(names: object, given: Plugins) -> None:
    """Raise BadInput if a story names plug-ins that were not given again."""
    if not isinstance(names, list):
        raise BadInput(f"plugins={short(names)}: a list of names such as elections.offline is expected")
    missing = [str(name) for name in names if name not in given.names]
    if missing:
        what, _, name = missing[0].partition(".")
        raise BadInput(
            f"this story was made with functions that a story cannot hold: {', '.join(missing)}; give them again, "
            f"as in Lab.replay(story, {what}={{{name!r}: mine}})"
        )
