"""Playing a walk, and what it broke."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kafka_ctl.errors import BadInput, NotReached, Unavailable
from kafka_ctl.explore.unrest import is_behind_schedule, is_slow_follower
from kafka_ctl.explore.walk import Walk
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.simulation.clock import Halted, VirtualClock

CRASH, DOES_NOT_QUIESCE = "no-actor-crashes", "quiesces"
"""What must hold beside the invariants: no actor fails with an error, and a healthy cluster quiesces."""
BUDGET = 10_000
"""What leaves more records than this after one command is not expected to quiesce."""
REFUSED = "refused"
REQUEST = "KafkaController.removePartitionsFromPreferredReplicaElection"
"""Where Kafka fails over a request for the preferred leader of a partition that never had one, in every generation."""
RESUMED = "KafkaController.maybeResumeReassignments"
"""Where Kafka 2.4.1 fails over the move of a partition that never had a leader; `elect` gives `/controller` back."""
FAILURES = {"key not found": REQUEST, "Cannot update leader epoch": RESUMED}
"""By what a new controller says of its failure."""


class Failure(NamedTuple):
    """Something that a walk broke: an invariant by its name, what happened, the ticket if it is known."""

    name: str
    text: str
    known: str | None = None

    @property
    def kind(self) -> tuple[str, str, str | None]:
        """Equal for what is probably the same trouble: names and numbers do not count."""
        return self.name, re.sub(r"\d+(, \d+)*|\b[abc]\b", "N", self.text), self.known


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
    """Give one command; REFUSED when it cannot be done, what is wrong when an actor dies or nothing comes to rest.

    Where `stop()` becomes true, the command ends half-way.
    """
    clock, records = lab._world.clock, lab.trace.records
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
    except NotReached as error:
        quiesces_not = line.name == "settle" and lab._world.is_healthy and not is_slow_follower(lab)
        return Failure(DOES_NOT_QUIESCE, str(error), _known(lab)) if quiesces_not else None
    except Unavailable:
        return None
    except Exception as error:
        return Failure(CRASH, f"{type(error).__name__}: {error}")
    finally:
        clock.halt = None
    return None


def _known(lab: Lab) -> str | None:
    """Why a controller may be elected again and again: whoever is finds a request that it cannot fulfil."""
    failed = [r.detail or "" for r in lab.trace.records[-400:] if r.action == "election_failed"]
    return next((known for said, known in FAILURES.items() if any(said in text for text in failed)), None)


def violated(lab: Lab) -> list[Failure]:
    """The invariants that a lab has broken so far."""
    return [Failure(f"{v.invariant} {v.name}", v.text, v.known) for v in lab.violations]
