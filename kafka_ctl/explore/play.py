"""Playing a walk, and what it broke."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kafka_ctl.controller.rebalance import FIRST_CHECK
from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable
from kafka_ctl.explore.walk import Walk
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import REFUSED, Command
from kafka_ctl.ports import Halted
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

WINDOW = 120.0
"""Seconds of the run in which unrest is looked for."""
CHECK = "AutoPreferredReplicaLeaderElection"
OF_ISR_CHANGES = ("IsrChangeNotification", "PartitionReassignmentIsrChange", CHECK, "LeaderAndIsrResponseReceived")
"""The controller's work while ISRs change and by the clock: a follower that comes back may be preferred."""
ISR_CHANGES = ("shrink-isr", "expand-isr")


def is_slow_follower(lab: Lab) -> bool:
    """True if only followers slower than `replica.lag.time.max.ms` leave the ISR and come back.

    A leader expels them in time, and takes them in again at their next fetch, as long as they are slow.
    Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr, maybeExpandIsr
    """
    brokers, limit = lab.world.brokers, lab.config["replica.lag.time.max.ms"] / 1000
    slow = {broker.id for broker in brokers.values() if broker.as_follower.fetch_delay > limit}
    since = (lab.world.clock.now() - WINDOW) * 1000
    recent = [r for r in lab.trace.records if r.time_ms > since]
    begun = {r.action for r in recent if r.kind == "event" and r.target == "started"}
    changed = [replicas_of_change(r) for r in recent if r.kind == "broker" and r.action in ISR_CHANGES]
    moves = (r for r in recent if r.kind in ("election", "partition", "replica") and r.error is None)
    moved = any(r.leader not in slow for r in moves)
    return bool(changed) and all(c <= slow for c in changed) and begun <= {*OF_ISR_CHANGES} and not moved


def replicas_of_change(record: Record) -> set[int]:
    """The brokers that an ISR gains or loses."""
    fields = details.named(record.detail)
    before = {int(id) for id in fields.get("isr_before", "").split(",") if id}
    return before ^ set(record.isr or ())


def is_behind_schedule(lab: Lab, window: int) -> bool:
    """True if a controller of 0.10 has made up for checks of the balance that it missed while it waited for ZooKeeper.

    It has where the last `window` records hold more of them than came due meanwhile. They are due at fixed times, and
    all that were missed are made up for, one after the other.
    Kafka 0.10.2.2: utils/KafkaScheduler.scala, schedule (scheduleAtFixedRate)
    """
    acting = lab.world.acting()
    if acting is None or not lab.generation.election.rebalances_at_fixed_times:
        return False
    began = next((r for r in reversed(lab.trace.records) if r.action == "starting_scheduler"), None)
    if began is None or began.actor != acting.actor:
        return False
    checks = [r for r in lab.trace.records[began.seq :] if r.action == CHECK and r.target == "started"]
    now, interval = lab.world.clock.now(), lab.config["leader.imbalance.check.interval.seconds"]
    first = lab.trace.records[-window:][0]
    lately, passed = sum(r.seq > first.seq for r in checks), now - began.time_ms / 1000 - FIRST_CHECK
    return len(checks) <= passed // interval + 1 and lately > (now - first.time_ms / 1000) // interval + 1


CRASH, DOES_NOT_QUIESCE = "no-actor-crashes", "quiesces"
"""The checks beside the invariants: no actor fails with an error, and a healthy cluster quiesces."""
BUDGET = 10_000
"""The number of records after one command above which a cluster is not expected to quiesce."""
FAILS_IN_PREFERRED_ELECTION = "KafkaController.removePartitionsFromPreferredReplicaElection"
"""The place where Kafka fails over a preferred election of a partition that never had a leader, in every generation."""
FAILS_IN_REASSIGNMENT = "KafkaController.maybeResumeReassignments"
"""The place where Kafka 2.4.1 fails over the move of a partition that never had a leader."""
FAILS_IN_CHANNELS = "ControllerChannelManager.addNewBroker"
"""The place where Kafka 0.10.2.2 fails in every later term: the metrics of its own old channels forbid new ones."""
FAILURES = {
    "key not found": FAILS_IN_PREFERRED_ELECTION,
    "Cannot update leader epoch": FAILS_IN_REASSIGNMENT,
    "already exists, can't register another one": FAILS_IN_CHANNELS,
}
"""By what a new controller says of its failure."""


class Failure(NamedTuple):
    """Something that a walk broke: an invariant by its name, what happened, the ticket if it is known."""

    name: str
    text: str
    known: str | None = None

    @property
    def kind(self) -> tuple[str, str, str | None]:
        """Equal for what is probably the same trouble: of one ticket, or alike but for names and numbers."""
        return self.name, self.known or re.sub(r"\d+(, \d+)*|\b[abc]\b", "N", self.text), self.known


First = TypeVar("First")


class FirstFailure(NamedTuple, Generic[First]):
    """The number of times that one kind of failure was found, the case in which it was first, and its text there."""

    times: int
    first: First
    failure: Failure


class Outcome(NamedTuple):
    """A walk that was played: what it broke, in order, the commands that were not refused, the records it left."""

    broken: tuple[Failure, ...]
    commands: tuple[Command, ...]
    records: int


def play(walk: Walk, wanted: object = None) -> Outcome:
    """Play a walk to its end, or until an actor crashes, or until what is `wanted` (a kind) has been broken.

    Commands that cannot be done just then are left out; one that failed after it had done something is kept as refused.
    """
    with Lab(**story.opening(walk.opening)) as lab:
        done: list[Command] = []
        more: list[Failure] = []
        for line in walk.commands:
            before = len(lab.commands)
            trouble = apply(lab, line)
            if trouble is REFUSED and len(lab.commands) == before:
                continue
            done.append(lab.commands[-1] if trouble is REFUSED else line)
            if isinstance(trouble, Failure):
                more.append(trouble)
                break
            if wanted is not None and wanted in [b.kind for b in (*violated(lab), *more)]:
                break
        return Outcome((*violated(lab), *more), tuple(done), len(lab.trace))


def apply(lab: Lab, line: Command, stop: Callable[[], bool] = lambda: False) -> Failure | str | None:
    """Give one command. Returns None if it is done, and REFUSED if it cannot be done.

    Returns a Failure if an actor dies or the lab does not come to rest.

    Where `stop()` becomes true, the command ends half-way.
    """
    clock, records = lab.world.clock, lab.trace.records
    assert isinstance(clock, VirtualClock)
    most = len(records) + BUDGET

    def halt() -> bool:
        nonlocal most
        if len(records) > most and is_behind_schedule(lab, BUDGET):
            most += BUDGET
        return len(records) > most or stop()

    clock.halt = halt
    try:
        lab.do(line)
    except BadInput:
        return REFUSED
    except Halted:
        if stop():
            return None
        return Failure(DOES_NOT_QUIESCE, f"one command has left {BUDGET} records, and more are to come", _known(lab))
    except ConditionNotMet as error:
        quiesces_not = line.name == "settle" and lab.world.is_healthy and not is_slow_follower(lab)
        return Failure(DOES_NOT_QUIESCE, str(error), _known(lab)) if quiesces_not else None
    except Unavailable:
        return None
    except Exception as error:
        clock.loop.failures.clear()  # those of other actors: closing the lab would raise them
        return Failure(CRASH, f"{type(error).__name__}: {error}")
    finally:
        clock.halt = None
    return None


def _known(lab: Lab) -> str | None:
    """The place in Kafka's code where each new controller fails, so that elections do not end; None if none does."""
    failed = [r.detail or "" for r in lab.trace.records[-400:] if r.action == "election_failed"]
    return next((known for message, known in FAILURES.items() if any(message in text for text in failed)), None)


def violated(lab: Lab) -> list[Failure]:
    """The invariants that a lab has broken so far."""
    return [Failure(f"{v.invariant} {v.name}", v.text, v.known) for v in lab.violations]
