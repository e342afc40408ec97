"""Right and wrong answers to the exercises of lesson 05."""

from __future__ import annotations

from typing import Any

from kafka_ctl.election import controlled_shutdown_leader, offline_leader


def with_sets(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    """Kafka's rule, written otherwise."""
    fit = set(isr) & set(live)
    if fit:
        return min(fit, key=assignment.index), [r for r in isr if r in fit]
    others = [r for r in assignment if r in live] if unclean else []
    return (others[0], (others[0],)) if others else None


def first_live(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    alive = [r for r in assignment if r in live]
    return (alive[0], [r for r in isr if r in live] or alive[:1]) if alive else None


def first_of_isr(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    alive = [r for r in isr if r in live]
    return (alive[0], alive) if alive else offline_leader(assignment, isr, live, unclean)


def isr_not_reduced(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, found.isr if found.unclean else isr)


def isr_of_the_live(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, [r for r in assignment if r in live])


def never_unclean(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    return offline_leader(assignment, isr, live, False)


def raises_for_nobody(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    fit = [r for r in assignment if r in live and r in isr]
    return fit[0], [r for r in isr if r in live]


def with_no_leader(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    return offline_leader(assignment, isr, live, unclean) or (-1, isr)


def filtered(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    """Kafka's rule, written otherwise."""
    staying = tuple(r for r in isr if r not in shutting_down)
    leader = next((r for r in assignment if r in staying and r in live), None)
    return None if leader is None else (leader, staying)


def leaving_may_lead(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    found = controlled_shutdown_leader(assignment, isr, live, shutting_down)
    return found or offline_leader(assignment, isr, live)


def leaving_stays_in_isr(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    found = controlled_shutdown_leader(assignment, isr, live, shutting_down)
    return found and (found.leader, isr)


def dead_leave_too(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    found = controlled_shutdown_leader(assignment, isr, live, shutting_down)
    return found and (found.leader, [r for r in found.isr if r in live])


def out_of_sync(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    staying = [r for r in assignment if r in live and r not in shutting_down]
    return (staying[0], [r for r in isr if r not in shutting_down]) if staying else None


def lowest_id(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    fit = [r for r in assignment if r in isr and r in live and r not in shutting_down]
    return (min(fit), [r for r in isr if r not in shutting_down]) if fit else None


KEY = "unclean.leader.election.enable"


def configured(value: str) -> list[str]:
    """Commands that give the topic a setting, then make a new controller."""
    text = f'{{"version":1,"config":{{"{KEY}":{value}}}}}'
    return [f"write_znode /config/topics/orders '{text}'", "delete_controller"]


RIGHT: dict[str, list[Any]] = {
    "05.2": [offline_leader, with_sets],
    "05.3": [controlled_shutdown_leader, filtered],
    "05.4": [lambda lab: lab.start(1)],
    "05.5": [lambda lab: (lab.alter_config("topics", "orders", {KEY: "true"}), lab.delete_controller())],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "05.2": [
        (first_live, "not in the ISR (1,), and unclean election is not allowed"),
        (first_of_isr, "You took the ISR's order: broker 3"),
        (lambda assignment, *rest: offline_leader(assignment[::-1], *rest), "You took another order: broker 3"),
        (isr_not_reduced, "the replica machine has to write the ISR a second time"),
        (isr_of_the_live, "the right members in another order"),
        (never_unclean, "You return no leader, though a replica may"),
        (lambda assignment, isr, live, unclean: (assignment[0], isr), "Broker 1 is not alive"),
        (raises_for_nobody, "raised IndexError"),
        (offline_leader([1], [1], {1}), "is not a function"),
        (with_no_leader, "You return -1 as the leader. Where no broker may lead, the answer is None"),
        (lambda *case: 3, "returned 3; a leader and the ISR are expected"),
    ],
    "05.3": [
        (leaving_may_lead, "is leaving too"),
        (leaving_stays_in_isr, "it may be elected again"),
        (dead_leave_too, "which is not leaving"),
        (lambda assignment, isr, *rest: controlled_shutdown_leader(isr, isr, *rest), "KAFKA-3670"),
        (lowest_id, "You took another order: broker 2. The walk goes along the assignment (3, 1, 2)"),
        (out_of_sync, "a controlled shutdown is never unclean"),
        (lambda *case: (-1, case[1]), "You return -1 as the leader. Where no broker may lead, the answer is None"),
        (lambda *case: None, "though a replica may lead that is alive"),
    ],
    "05.5": [
        (configured("true")[:1], 'Kafka reads each value as text, here "true" with its quotes.'),
        (configured('"false"'), "it does not allow unclean elections"),
        (
            [each.replace("enable", "enabled") for each in configured('"true"')],
            "The topic has unclean.leader.election.enabled, and not the setting that allows unclean elections.",
        ),
        (
            lambda lab: lab.alter_config("topics", "orders", {KEY: "true"}),
            "The topic now allows unclean elections, and",
        ),
    ],
}
