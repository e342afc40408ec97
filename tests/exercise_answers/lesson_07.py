"""Right and wrong answers to the exercises of lesson 07."""

from __future__ import annotations

from typing import Any

UNCLEAN = """write_znode /config/topics/orders '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'"""


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
    "07.1": [(3, 1, -1, -1, 3), [3, 1, -1, -1, 3]],
    "07.2": [planned, planned_backwards],
    "07.3": [
        "catch_up 2\nsettle\nshutdown 1",
        "catch_up 2\nshutdown 1",
        "shutdown 1 wait=false\ncatch_up 2",
        lambda lab: (lab.catch_up(2), lab.run_until(lambda lab: 2 in lab.partition("pair", 0).isr), lab.shutdown(1)),
        """reassign '{"pair-0":[1,3]}'\nsettle\nshutdown 1""",
    ],
    "07.4": ["broker_epochs", {"broker_epochs": True}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "07.1": [
        ((3, 1, -1, -1, 1), "asks again after 5 s"),
        ((3, 1, -1, -1, 4), "not of repetitions"),
        ((3, 1, 1, -1, 3), "Broker 1 holds no copy of solo"),
        ((3, 1, -1, 3, 3), "Replica 3 is not in the ISR of alone"),
        ((2, 1, -1, -1, 3), "it leads nothing"),
        ((1, 1, -1, -1, 3), "Replica 1 comes next in the assignment"),
        ((3, -1, -1, -1, 3), "Broker 2 only follows"),
        ((3, 1, -1, -1), "has 4 parts; 5 are asked for"),
    ],
    "07.2": [
        (planning(lambda p, broker: p.leader == broker, staying), "wait 15 s for it"),
        (planning(lambda p, broker: broker in p.replicas and len(p.replicas) > 1, staying), "does not lead"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.replicas if r in p.isr and r != b]), "is leaving"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.isr if r not in leaving]), "KAFKA-3670"),
        (planning(is_led, lambda p, b, leaving: [r for r in p.replicas if r not in leaving]), "outside the ISR"),
        (planning(is_led, lambda p, b, leaving: []), "though replica 2 is in the ISR"),
        (lambda broker, partitions, leaving: {}, "your plan does not name it"),
        (lambda broker, partitions, leaving: [], "a dictionary is expected"),
        (lambda broker, partitions, leaving: {"more-0": 1}, "'more-0' is no partition"),
        (lambda broker: {}, "raised TypeError"),
    ],
    "07.3": [
        ("shutdown 1", "Its answers all said remaining=pair-0"),
        ("kill 1", "nobody asks the controller"),
        ("catch_up 2\nsettle\nkill 1", "without a leader for 6.0 s"),
        ("catch_up 2", "broker 1 has not stopped"),
        (
            [UNCLEAN.replace("orders", "pair"), "shutdown 1"],
            "broker 1 has stopped, but broker 2 leads pair-0 without",
        ),
        ("lag 2 pair 0", "The further replica 2 falls behind"),
    ],
    "07.4": [
        ("shutdown_skips_deletions", "`shutdown_skips_deletions` is about something else"),
        ("groups_stop_replica", "`groups_stop_replica` is about something else"),
        ("shutdown_tells_leaving_broker", "`shutdown_tells_leaving_broker` is about something else"),
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
    ],
}
