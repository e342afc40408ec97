"""Right and wrong answers to the exercises of lesson 07."""

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


def in_sync(lab: Any, broker: int, partition: Any) -> bool:
    return any(r != broker and lab.brokers[r].state == "running" for r in partition.isr)


def whole_or_reduced(lab: Any, broker: int) -> bool:
    """Two members of the ISR, or the one that is left while the other is down."""
    downs = any(lab.brokers[r].state == "down" for p in lab.partitions() for r in p.replicas)
    return all(lab.brokers[r].state == "running" and (downs or len(p.isr) > 1) for p in lab.partitions() for r in p.isr)


def led(lab: Any, broker: int) -> bool:
    """Only what this broker leads is looked at."""
    return all(in_sync(lab, broker, p) for p in lab.partitions() if p.leader == broker)


def first_partition(lab: Any, broker: int) -> bool:
    return in_sync(lab, broker, lab.partitions()[0])


def some_partition(lab: Any, broker: int) -> bool:
    return any(in_sync(lab, broker, p) for p in lab.partitions())


def returns_too_early(lab: Any, broker: int) -> bool:
    for p in lab.partitions():
        return in_sync(lab, broker, p)
    return True


def repairs(lab: Any, broker: int) -> bool:
    """Repair the cluster instead of waiting for it."""
    for each in lab.brokers.values():
        if each.state != "running":
            lab.start(each.id)
    lab.settle()
    lab.catch_up(2)
    lab.settle()
    return True


RIGHT: dict[str, list[Any]] = {
    "07.2": [other_in_sync, all_in_sync],
    "07.3": [lambda lab: (lab.heal(), lab.settle(), lab.start(2))],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "07.2": [
        (others_run, "Broker 1 ran but was not in the ISR (2,)"),
        (others_run_for_a_second, "depends on what it missed"),
        (in_metadata, "metadata may be 7.5 s old"),
        (two_in_isr, "ZooKeeper learns that only when the session ends"),
        (whole_or_reduced, "Broker 2 did not run and was not in the ISR (1,)"),
        (led, 'topic, whose leader has just died": you stopped broker 1, and payments-0 went Offline. Broker 3 was'),
        (first_partition, 'follower has just died": you stopped broker 1, and payments-0 went Offline'),
        (some_partition, "payments-0 went Offline. Broker 3 was in the ISR (1, 3) but did not run"),
        (returns_too_early, "Broker 3 was in the ISR (1, 3) but did not run"),
        (repairs, "your function changed the cluster"),
        (lambda lab, broker: False, "could not be stopped for 60 s"),
        (lambda lab, broker: None, "True or False is expected"),
        (lambda lab, broker: lab.partitions()[broker + 9], "IndexError"),
    ],
}
