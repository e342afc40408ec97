"""Right and wrong answers to the exercises of lesson 06."""

from __future__ import annotations

from typing import Any


def other_in_sync(lab: Any, broker: int) -> bool:
    """Whether every partition with a copy on this broker has another member of its ISR that runs."""
    return all(
        any(r != broker and lab.brokers[r].state == "running" for r in p.isr)
        for p in lab.partitions()
        if broker in p.replicas
    )


def all_in_sync(lab: Any, broker: int) -> bool:
    """Stricter, as operators ask: every copy is in sync, and runs."""
    return all(
        set(p.isr) == set(p.replicas) and all(lab.brokers[r].state == "running" for r in p.isr)
        for p in lab.partitions()
    )


def others_run(lab: Any, broker: int) -> bool:
    return all(lab.brokers[r].state == "running" for p in lab.partitions() for r in p.replicas)


def others_run_for_a_second(lab: Any, broker: int) -> bool:
    """Wait a second, then trust whoever runs."""
    lab.run_for(1)
    return others_run(lab, broker)


def in_metadata(lab: Any, broker: int) -> bool:
    seen = [state.isr for state in lab.brokers[4].metadata.values()]
    return all(any(r != broker and lab.brokers[r].state == "running" for r in isr) for isr in seen)


def two_in_isr(lab: Any, broker: int) -> bool:
    return all(len(p.isr) >= 2 for p in lab.partitions())


def late(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """Kafka 2.4's rule."""
    return follower_end != leader_end and now - last_caught_up > max_lag


def late_at_the_limit(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """The limit itself counts; nobody notices."""
    if follower_end >= leader_end:
        return False
    return now >= last_caught_up + max_lag


DEATH, REST = ("controller", True), ("leader", False)


RIGHT: dict[str, list[Any]] = {
    "06.1": [(DEATH, REST, REST), [list(DEATH), list(REST), list(REST)]],
    "06.2": [other_in_sync, all_in_sync],
    "06.3": [late, late_at_the_limit, lambda now, since, mine, end, limit: mine < end and since < now - limit],
    "06.4": ["heal\nstart 2", "start 2\nsettle\nheal", lambda lab: (lab.heal(), lab.settle(), lab.start(2))],
    "06.5": ["accepts_own_isr", ["accepts_own_isr"], {"accepts_own_isr": True}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "06.1": [
        ((("leader", True), REST, REST), "Broker 3 had a session"),
        ((DEATH, ("controller", True), REST), "The controller asked broker 3 to follow"),
        ((DEATH, ("leader", True), REST), "leader_epoch stayed 1"),
        ((DEATH, REST, ("controller", False)), "Broker 3 lags but lives"),
        ((("controller", True),) * 3, "Two of the three writes come from broker 1"),
        ((("controller", False), REST, REST), "Read the znode after the death"),
        ((("controller",), REST, REST), "Each part is a pair"),
        ((DEATH, REST), "has 2 parts; 3 are asked for"),
    ],
    "06.2": [
        (others_run, "Broker 1 ran but was not in the ISR (2,)"),
        (others_run_for_a_second, "depends on what it missed"),
        (in_metadata, "metadata may be 7.5 s old"),
        (two_in_isr, "ZooKeeper learns that only when the session ends"),
        (lambda lab, broker: False, "could not be stopped for 60 s"),
        (lambda lab, broker: None, "True or False is expected"),
        (lambda lab, broker: lab.partitions()[broker + 9], "IndexError"),
    ],
    "06.3": [
        (lambda now, since, mine, end, limit: now - since > limit, "since 2.1 such a follower is not late"),
        (lambda now, since, mine, end, limit: mine != end, "It is behind, but not yet for 10 s"),
        (lambda now, since, mine, end, limit: end - mine > 4000, "follower_end=1, leader_end=3"),
        (lambda now, since, mine, end, limit: False, "acks=all waits for it"),
        (lambda now, since, mine, end, limit: mine != end and now - since > 1000 * limit, "It has been behind for"),
        (lambda now, since, mine, end, limit: None, "end with a `return`"),
        (lambda follower: False, "Its parameters are not those"),
    ],
    "06.4": [
        ("heal", "Broker 2 is still down"),
        ("start 2", "still cannot reach broker 1"),
        ("bounce 3", "its process was never the trouble"),
        ("kill 1", "now nobody may lead"),
        ("""reassign '{"orders-0":[1,3]}'""", "for the same fetch as you"),
        ("elect_preferred", "An election adds nobody to an ISR"),
    ],
    "06.5": [
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
        ("tolerates_missing_state", "`tolerates_missing_state` is about something else"),
        ("accepts_own_lost_write", "`accepts_own_lost_write` is about something else"),
        ("retries_whole_batch", "`retries_whole_batch` is about something else"),
        ("accepts_own_isrs", "'accepts_own_isrs'"),
    ],
}
