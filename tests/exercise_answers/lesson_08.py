"""Right and wrong answers to the exercises of lesson 08."""

from __future__ import annotations

from typing import Any


def staying(p: Any, broker: int, leaving: frozenset) -> list:
    return [r for r in p.replicas if r in p.isr and r not in leaving]


def planned(broker: int, partitions: tuple, leaving: frozenset) -> dict:
    """The controller's plan for a controlled shutdown."""
    return {
        f"{p.topic}-{p.partition}": next((r for r in p.replicas if r in p.isr and r not in leaving), None)
        for p in partitions
        if p.leader == broker and len(p.replicas) > 1
    }


def planned_backwards(broker: int, partitions: tuple, leaving: frozenset) -> dict:
    """The same, the partitions in another order, the ISR reduced first."""
    found = {}
    for p in reversed(partitions):
        staying = set(p.isr) - leaving
        if p.leader == broker and len(p.replicas) != 1:
            found[f"{p.topic}-{p.partition}"] = min(staying, key=p.replicas.index) if staying else None
    return found


def planning(include: Any, choose: Any) -> Any:
    """A plan with a choice of partitions and of leaders of one's own."""
    return lambda broker, partitions, leaving: {
        f"{p.topic}-{p.partition}": next(iter(choose(p, broker, leaving)), None)
        for p in partitions
        if include(p, broker)
    }


def is_led(p: Any, broker: int) -> bool:
    return p.leader == broker and len(p.replicas) > 1


RIGHT: dict[str, list[Any]] = {
    "08.2": [planned, planned_backwards],
    "08.3": [
        lambda lab: (lab.catch_up(2), lab.run_until(lambda lab: 2 in lab.partition("pair", 0).isr), lab.shutdown(1))
    ],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "08.2": [
        (planning(lambda p, broker: p.leader == broker, staying), "wait 15 s for it"),
        (planning(lambda p, broker: broker in p.replicas and len(p.replicas) > 1, staying), "does not lead"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.replicas if r in p.isr and r != b]), "is leaving"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.isr if r not in leaving]), "KAFKA-3670"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.replicas if r not in leaving]), "outside the ISR"),
        (planning(is_led, lambda *given: sorted(staying(*given))), "orders-1 to broker 1. The walk goes"),
        (planning(is_led, lambda p, b, leaving: []), "though replica 2 is in the ISR"),
        (planning(is_led, lambda p, b, leaving: [*staying(p, b, leaving), -1]), "A plan names no leader with None"),
        (lambda broker, partitions, leaving: {}, "your plan does not name it"),
        (lambda broker, partitions, leaving: [], "Your function returned a sequence; a dictionary is expected"),
        (
            lambda *given: {name: [leader] for name, leader in planned(*given).items()},
            "to a sequence; the id of a broker is a whole number",
        ),
        (lambda broker, partitions, leaving: {"more-0": 1}, "'more-0' is not a partition"),
        (lambda *given: {name: str(leader) for name, leader in planned(*given).items()}, "is a whole number"),
        (lambda *given: {tuple(name.split("-")): 1 for name in planned(*given)}, "name the partition as text"),
        (lambda broker: {}, "raised TypeError"),
    ]
}
