"""Questions that both runs of an exhibit answer, for bugs that break no invariant but make something worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.lab.lab import Lab


class Question(NamedTuple):
    """A question, and the function by which a lab answers it."""

    text: str
    ask: Callable[[Lab], str]


def leaders(lab: Lab) -> str:
    """The leader of each partition at the end."""
    return ", ".join(f"{p.topic}-{p.partition}: {p.leader}" for p in lab.partitions())


def leader_epochs(lab: Lab) -> str:
    """The leader epochs at the end: how often a leader was chosen, beyond the first."""
    return ", ".join(f"{p.topic}-{p.partition}: {p.leader_epoch}" for p in lab.partitions())


def in_sync(lab: Lab) -> str:
    """The ISR of each partition at the end, and the replicas that it is taken from."""
    return ", ".join(f"{p.topic}-{p.partition}: {list(p.isr)} of {list(p.replicas)}" for p in lab.partitions())


def replicas(lab: Lab) -> str:
    """The brokers that hold each partition at the end."""
    return ", ".join(f"{p.topic}-{p.partition}: {list(p.replicas)}" for p in lab.partitions())


def fruitless_elections(lab: Lab) -> str:
    """The number of elections without a leader."""
    return str(sum(r.kind == "election" and r.error is not None for r in lab.trace))


def stop_replicas(lab: Lab) -> str:
    """The number of StopReplica requests from controllers, and of those that named no partition."""
    sent = [r for r in lab.trace if r.kind == "request" and r.action == "StopReplica" and r.target == "sent"]
    empty = sum("partitions=0 " in (r.detail or "") for r in sent)
    return f"{len(sent)}" + f", {empty} of them empty" * bool(empty)


def double_leadership(lab: Lab) -> str:
    """The time for which brokers acted as leaders of a partition that another broker already led."""
    leads: dict[TopicPartition, dict[int, float]] = {}
    double = 0.0
    for r in lab.trace:
        if r.kind != "broker" or r.broker is None:
            continue
        if r.action in ("become-leader", "become-follower"):
            since = leads.setdefault(r.tp, {})
            if r.action == "become-leader":
                since[r.broker] = r.time_ms
            ended = [since] if r.action == "become-follower" else []
        else:
            ended = list(leads.values()) if r.action in ("shutting-down", "stopped") else []
        for since in ended:
            if since.pop(r.broker, None) is not None and since:
                double += r.time_ms - max(since.values())
    return f"{double:.1f} ms"


ASKED = (leaders, leader_epochs, in_sync, replicas, fruitless_elections, stop_replicas, double_leadership)
QUESTIONS = {ask.__name__: ask for ask in ASKED}
"""By name, as `exhibits.txt` has it."""
