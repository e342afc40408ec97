"""What keeps a cluster busy and is no livelock: it ends by itself, or goes on in a real cluster as well."""

from __future__ import annotations

from kafka_ctl.controller.rebalance import FIRST_CHECK
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

WINDOW = 120.0
"""Seconds of the run in which unrest is looked for."""
CHECK = "AutoPreferredReplicaLeaderElection"
OF_ISR_CHANGES = ("IsrChangeNotification", "PartitionReassignmentIsrChange", CHECK, "LeaderAndIsrResponseReceived")
"""What the controller does while ISRs change, and by the clock: a follower that comes back may be preferred."""
ISR_CHANGES = ("shrink-isr", "expand-isr")


def is_slow_follower(lab: Lab) -> bool:
    """Whether all that goes on is that followers slower than `replica.lag.time.max.ms` leave the ISR and come back.

    A leader expels them in time, and takes them in again at their next fetch, as long as they are slow.
    Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr, maybeExpandIsr
    """
    brokers, limit = lab._world.brokers, lab.config["replica.lag.time.max.ms"] / 1000
    slow = {broker.id for broker in brokers.values() if broker.as_follower.fetch_delay > limit}
    since = (lab._world.clock.now() - WINDOW) * 1000
    recent = [r for r in lab.trace.records if r.time_ms > since]
    begun = {r.action for r in recent if r.kind == "event" and r.target == "started"}
    changed = [_changed(r) for r in recent if r.kind == "broker" and r.action in ISR_CHANGES]
    moves = (r for r in recent if r.kind in ("election", "partition", "replica") and r.error is None)
    moved = any(r.leader not in slow for r in moves)
    return bool(changed) and all(c <= slow for c in changed) and begun <= {*OF_ISR_CHANGES} and not moved


def _changed(record: Record) -> set[int]:
    """The brokers that an ISR gains or loses."""
    fields = details.named(record.detail)
    before = {int(id) for id in fields.get("isr_before", "").split(",") if id}
    return before ^ set(record.isr or ())


def is_behind_schedule(lab: Lab, window: int) -> bool:
    """Whether a controller of 0.10 has made up for checks of the balance that it missed while it waited for ZooKeeper.

    It has where the last `window` records hold more of them than came due meanwhile. They are due at fixed times, and
    all that were missed are made up for, one after the other.
    Kafka 0.10.2.2: utils/KafkaScheduler.scala, schedule (scheduleAtFixedRate)
    """
    acting = lab._world.acting()
    if acting is None or lab.generation.threads.single_threaded:
        return False
    began = next((r for r in reversed(lab.trace.records) if r.action == "starting_scheduler"), None)
    if began is None or began.actor != acting.actor:
        return False
    checks = [r for r in lab.trace.records[began.seq :] if r.action == CHECK and r.target == "started"]
    now, interval = lab._world.clock.now(), lab.config["leader.imbalance.check.interval.seconds"]
    first = lab.trace.records[-window:][0]
    lately, passed = sum(r.seq > first.seq for r in checks), now - began.time_ms / 1000 - FIRST_CHECK
    return len(checks) <= passed // interval + 1 and lately > (now - first.time_ms / 1000) // interval + 1
