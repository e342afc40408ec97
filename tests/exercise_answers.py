"""Right and wrong answers to every exercise; with a wrong one, what is said to it."""

from __future__ import annotations

from random import Random
from typing import Any

from kafka_ctl.assignment import assign
from kafka_ctl.balance import candidates
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller.deletion import next_move
from kafka_ctl.election import controlled_shutdown_leader, offline_leader

CANCEL_FIRST = "elect_preferred\nsettle\ncancel_reassignment"
UNCLEAN = """write_znode /config/topics/orders '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'"""


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


def last_assigned(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    return offline_leader(assignment[::-1], isr, live, unclean)


def isr_not_reduced(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, found.isr if found.unclean else isr)


def isr_of_the_live(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, [r for r in assignment if r in live])


def isr_sorted(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, sorted(found.isr))


def never_unclean(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    return offline_leader(assignment, isr, live, False)


def unclean_for_all(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    found = offline_leader(assignment, isr, live, unclean)
    return found and (found.leader, [r for r in assignment if r in live] if found.unclean else found.isr)


def dead_preferred(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    return assignment[0], isr


def raises_for_nobody(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> Any:
    fit = [r for r in assignment if r in live and r in isr]
    return fit[0], [r for r in isr if r in live]


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


def head_of_isr(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    return controlled_shutdown_leader(isr, isr, live, shutting_down)


def out_of_sync(assignment: tuple, isr: tuple, live: frozenset, shutting_down: frozenset) -> Any:
    staying = [r for r in assignment if r in live and r not in shutting_down]
    return (staying[0], [r for r in isr if r not in shutting_down]) if staying else None


def burnt(lab: Any) -> None:
    lab.start(2)


LEGAL = {
    "NonExistent": ["New"],
    "New": ["Online", "Offline"],
    "Online": ["Online", "Offline"],
    "Offline": ["Online", "Offline", "NonExistent"],
}


def but(source: str, target: str) -> Any:
    """The table with one move the other way round."""
    return lambda a, b: (b in LEGAL[a]) != ((a, b) == (source, target))


def by_previous(source: str, target: str) -> bool:
    """The table, by what may come before."""
    previous = {"New": ("NonExistent",), "NonExistent": ("Offline",)}
    return source in previous.get(target, ("New", "Online", "Offline"))


def last_states(records: list) -> dict:
    return {f"{r.topic}-{r.partition}": r.target for r in records if not r.error and r.target != "NonExistentPartition"}


def states(records: list) -> dict:
    """The state of every partition, with the gone ones left out."""
    found: dict = {}
    for r in records:
        if r.error:
            continue
        found[f"{r.topic}-{r.partition}"] = r.target
        if r.target == "NonExistentPartition":
            del found[f"{r.topic}-{r.partition}"]
    return found


def states_as_text(records: list) -> dict:
    return {name: str(state) for name, state in states(records).items()}


def refused_too(records: list) -> dict:
    found = {f"{r.topic}-{r.partition}": r.target for r in records}
    return {name: state for name, state in found.items() if state != "NonExistentPartition"}


def moves_only(records: list) -> dict:
    return states([r for r in records if r.source])


def with_the_gone(records: list) -> dict:
    return {f"{r.topic}-{r.partition}": r.target for r in records if not r.error}


def by_leader(records: list) -> dict:
    found = dict.fromkeys(states(records), "OfflinePartition")
    for r in records:
        if r.leader is not None and f"{r.topic}-{r.partition}" in found:
            found[f"{r.topic}-{r.partition}"] = "OnlinePartition"
    return found


TAKEN = (("Online", 1), ("Online", 1), ("Online", 2), ("Offline", 4))
WHOLE = tuple((f"{state}Partition", leader) for state, leader in TAKEN)


def shrunk(leader: int, isr: tuple, gone: int) -> tuple:
    return (-1 if leader == gone else leader), ([r for r in isr if r != gone] or isr)


def with_index(leader: int, isr: tuple, gone: int) -> tuple:
    """The same, written otherwise."""
    members = list(isr)
    if len(members) > 1:
        members.remove(gone)
    return {gone: -1}.get(leader, leader), tuple(members)


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


DEATH, REST = ("controller", True), ("leader", False)


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


def staying(p: Any, broker: int, leaving: frozenset) -> list:
    return [r for r in p.replicas if r in p.isr and r not in leaving]


HUNDRED = "write_znode /controller_epoch 100"
AGAIN = "delete_controller\nsettle\n"

ORDERS = TopicPartition("orders", 0)
STATE = "/brokers/topics/orders/partitions/0/state"
FIRST = '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'


def up(lab: Any) -> dict[int, Any]:
    return {id: view for id, view in lab.brokers.items() if view.state != "down"}


def names(view: Any) -> Any:
    return view.metadata[ORDERS].leader if ORDERS in view.metadata else None


def stale(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if names(view) not in (None, stored)}


def stale_by_epoch(lab: Any) -> set[int]:
    """The same by leader and leader epoch."""
    stored, found = lab.partition("orders", 0), set()
    for id, view in up(lab).items():
        known = view.metadata.get(ORDERS)
        if known and (known.leader, known.leader_epoch) != (stored.leader, stored.leader_epoch):
            found.add(id)
    return found


def dead_too(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in lab.brokers.items() if names(view) not in (None, stored)}


def by_what_they_do(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if ORDERS in view.leads and id != stored}


def by_each_other(lab: Any) -> set[int]:
    said = [names(view) for view in up(lab).values()]
    return {id for id, view in up(lab).items() if names(view) not in (None, max(said, key=said.count))}


def by_who_leads(lab: Any) -> set[int]:
    leading = next((id for id, view in up(lab).items() if ORDERS in view.leads), names(lab.brokers[2]))
    return {id for id, view in up(lab).items() if names(view) not in (None, leading)}


def without_asking(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if view.metadata[ORDERS].leader != stored}


def unknown_too(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if names(view) != stored}


# Lesson 10

SUCCESSFUL = "ReplicaDeletionSuccessful"
WAITING = {1: "OfflineReplica", 2: SUCCESSFUL, 3: SUCCESSFUL}
AUDIT = {("audit", 0): [1, 2, 4]}


def by_count(states: dict, alive: frozenset, halted: bool) -> str:
    found = [state.removeprefix("ReplicaDeletion") for state in states.values()]
    if found.count("Successful") == len(found):
        return "complete"
    return "wait" if halted or found.count("Started") else "start"


def forgets_the_dead(states: dict, alive: frozenset, halted: bool) -> str:
    left = {replica: state for replica, state in states.items() if replica[1] in alive}
    return next_move(left, alive, halted)


def starts_twice(states: dict, alive: frozenset, halted: bool) -> str:
    found = next_move(states, alive, halted)
    return "start" if found == "wait" and not halted else found


def never_completes(states: dict, alive: frozenset, halted: bool) -> str:
    found = next_move(states, alive, halted)
    return "wait" if found == "complete" else found


# Lesson 09

THREE_COPIES = {("orders", 0): [1, 4], ("orders", 1): [2, 4], ("orders", 2): [4, 1]}


def kafkas_assignment(brokers: list, partitions: int, replication_factor: int) -> dict:
    return assign(brokers, partitions, replication_factor)


def round_by_round(brokers: list, partitions: int, replication_factor: int) -> dict:
    """Another one that is even."""
    n = len(brokers)
    return {
        p: [brokers[p % n], *(brokers[(p + 1 + (p // n + d) % (n - 1)) % n] for d in range(replication_factor - 1))]
        for p in range(partitions)
    }


def neighbours(brokers: list, partitions: int, replication_factor: int) -> dict:
    return {p: [brokers[(p + d) % len(brokers)] for d in range(replication_factor)] for p in range(partitions)}


def drawn(brokers: list, partitions: int, replication_factor: int) -> dict:
    rng = Random(1)
    return {p: rng.sample(brokers, replication_factor) for p in range(partitions)}


def shifted_leader(brokers: list, partitions: int, replication_factor: int) -> dict:
    n = len(brokers)
    return {p: [brokers[(p + p // n + d) % n] for d in range(replication_factor)] for p in range(partitions)}


def wrong_modulus(brokers: list, partitions: int, replication_factor: int) -> dict:
    n = len(brokers)
    return {
        p: [brokers[p % n], *(brokers[(p + 1 + (p // n + d) % n) % n] for d in range(replication_factor - 1))]
        for p in range(partitions)
    }


def from_one(brokers: list, partitions: int, replication_factor: int) -> dict:
    return {p + 1: ids for p, ids in assign(brokers, partitions, replication_factor).items()}


def one_broker_first(brokers: list, partitions: int, replication_factor: int) -> dict:
    return dict.fromkeys(range(partitions), brokers[:replication_factor])


def generated(lab: Any) -> None:
    lab.execute_reassignment(lab.generate_reassignment(["orders"], [1, 2, 3, 4]))


def by_racks(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    while len(chosen) < wanted:
        used = {rack_of[id] for id in (leader, *chosen)}
        left = [id for id in others if id not in chosen]
        chosen.append(([id for id in left if rack_of[id] not in used] or left)[0])
    return chosen


def by_racks_sorted(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    """The same, by a count of the brokers of the same rack that come before."""
    before = {id: sum(rack_of[o] == rack_of[id] for o in (leader, *others[: others.index(id)])) for id in others}
    return sorted(others, key=lambda id: before[id])[:wanted]


def never_twice(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    for id in others:
        if rack_of[id] not in {rack_of[o] for o in (leader, *chosen)}:
            chosen.append(id)
    return chosen[:wanted]


def stops(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    for id in others[:wanted]:
        if rack_of[id] in {rack_of[o] for o in (leader, *chosen)}:
            break
        chosen.append(id)
    return chosen


def not_the_leaders(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    fit = [id for id in others if rack_of[id] != rack_of[leader]]
    return (fit + [id for id in others if id not in fit])[:wanted]


def smallest_of_each(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    return by_racks(leader, sorted(others), rack_of, wanted)


def rebalanced(compare: Any = lambda ratio, limit: ratio > limit, fit: Any = None, share: Any = None) -> Any:
    """What a rebalance elects, with a comparison, a test of a partition and a share of one's own."""

    def chosen(partitions: list, live: frozenset, moving: frozenset, percentage: int) -> list:
        found = []
        for broker in {p.preferred for p in partitions}:
            mine = [p for p in partitions if p.preferred == broker and not p.deleting]
            away = [p for p in mine if p.leader != broker]
            of = partitions if share == "all" else mine
            if away and compare(len(away) / len(of), percentage / 100):
                surplus = away[: max(1, round(len(away) - len(of) * percentage / 100))]
                found += surplus if share == "surplus" else away
        return [p for p in found if (fit or elected)(p, live, moving)]

    return chosen


def elected(p: Any, live: frozenset, moving: frozenset) -> bool:
    return p.preferred in live and p.preferred in p.isr and not moving


def by_leader_only(partitions: list, live: frozenset, moving: frozenset, percentage: int) -> list:
    """Groups by who leads now."""
    found = []
    for broker in {p.leader for p in partitions}:
        mine = [p for p in partitions if p.leader == broker and not p.deleting]
        away = [p for p in mine if p.preferred != broker]
        found += away if mine and len(away) / len(mine) > percentage / 100 else []
    return [p for p in found if elected(p, live, moving)]


def slices(operations: list, window: int) -> list:
    """So many at a time, one list after the other."""
    rest, found = list(operations), []
    while rest:
        found.append(rest[:window])
        del rest[:window]
    return found


SAFE, UNAWARE = "1@0 2@0 |", "| 1@0 2@0"
MOVE_TO_3 = """reassign '{"orders-0":[1,3]}'"""
ONE_COPY = """write_znode /config/topics/orders '{"version":1,"config":{"min.insync.replicas":"1"}}'"""


def by_division(expiration: int, tick: int, n: int, now: int) -> tuple:
    """Kafka's place."""
    return expiration // tick % n, expiration // tick * tick


def by_remainder(expiration: int, tick: int, n: int, now: int) -> tuple:
    """The same, written otherwise."""
    return expiration % (tick * n) // tick, expiration - expiration % tick


RIGHT: dict[str, list[Any]] = {
    "16.1": [[(3, 1), (2, 2), (1, 17)], ((3, 1), (2, 2), (1, 17))],
    "16.2": [by_division, by_remainder, lambda e, tick, n, now: ((e - now) // tick % n, e // tick * tick)],
    "16.3": [["try", "watch", "try", "timer"], ("watch", "try", "timer"), ["try", "watch", "try", "try", "timer"]],
    "16.4": [{"purge_interval": 100}, {"partitions": 10}],
    "15.1": [(SAFE, UNAWARE, UNAWARE), [SAFE, " |  1@0 2@0", UNAWARE]],
    "15.2": [
        lambda ends, isr, leader: min(ends[broker] for broker in isr),
        lambda ends, isr, leader: sorted(ends[broker] for broker in {*isr, leader})[0],
    ],
    "15.3": ["truncates_by_epoch", {"truncates_by_epoch": True}],
    "15.4": [MOVE_TO_3, f"{MOVE_TO_3}\nsettle\nelect_preferred", """reassign '{"orders-0":[3,4]}'"""],
    "14.1": [8, 8],
    "14.2": [
        slices,
        lambda operations, window: [operations[n : n + window] for n in range(0, len(operations), window)],
    ],
    "14.3": ["fails_waiters_at_expiry", {"fails_waiters_at_expiry": True}],
    "14.4": [{"generation": "2.0"}, {"pipelined": True}, {"partitions": 30}, {"zookeeper_round_trip": 0.001}],
    "13.1": [{1: 9, 2: 3}, {1: 9, 2: 3, 3: 0}],
    "13.2": [candidates, rebalanced(), rebalanced(fit=lambda p, live, moving: p.preferred in live and not moving)],
    "13.3": ["rebalances_to_in_sync", {"rebalances_to_in_sync": True}],
    "13.4": ["cancel_reassignment", "cancel_reassignment\nsettle\nelect_preferred", CANCEL_FIRST],
    "02.1": [(3, 6), [3, 6]],
    "02.2": [stale, stale_by_epoch],
    "02.3": ["""elect_preferred '["orders-0"]'""", "bounce 1", "kill 2"],
    "02.4": ["introduces_brokers_first", {"introduces_brokers_first": True}],
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
    "08.1": [(5, 5), [5, 5]],
    "08.2": [lambda asked, newest: asked >= newest, lambda asked, newest: not asked < newest],
    "08.3": ["fences_writes", ["fences_writes", "broker_epochs"], {"fences_writes": True}],
    "08.4": [[HUNDRED, "delete_controller"], AGAIN * 3, "bounce 1\nsettle\nbounce 2\nsettle\nbounce 3\nsettle"],
    "04.1": [(2, 2, 2), [2, 2, 2]],
    "04.2": [shrunk, with_index],
    "04.3": ["start 3", "delete_controller\nsettle\nstart 3"],
    "04.4": ["resets_dead_leader", {"resets_dead_leader": True}],
    "03.1": [TAKEN, list(map(list, TAKEN)), WHOLE],
    "03.2": [lambda a, b: b in LEGAL[a], by_previous],
    "03.3": [states, states_as_text],
    "03.4": ["start 1", lambda lab: (lab.delete_controller(), lab.settle(), lab.start(1))],
    "03.5": ["reads_brokers_once", ["follows_missing_leaders"], {"reads_brokers_once": True}],
    "06.1": [(DEATH, REST, REST), [list(DEATH), list(REST), list(REST)]],
    "06.2": [other_in_sync, all_in_sync],
    "06.3": ["heal\nstart 2", "start 2\nsettle\nheal", lambda lab: (lab.heal(), lab.settle(), lab.start(2))],
    "06.4": ["accepts_own_isr", ["accepts_own_isr"], {"accepts_own_isr": True}],
    "05.1": [(1, (2, 1)), [1, [2, 1]]],
    "05.2": [offline_leader, with_sets],
    "05.3": [controlled_shutdown_leader, filtered],
    "05.4": [lambda lab: lab.start(1), "start 1\nsettle", "kill 2\nstart 1"],
    "05.5": [[UNCLEAN, "delete_controller"], f"{UNCLEAN}\nbounce 3", f"{UNCLEAN}\nkill 2\nsettle\nstart 2"],
    "10.1": [WAITING, {**WAITING}],
    "10.2": [next_move, by_count],
    "10.3": ["start 1", "delete_controller\nsettle\nstart 1"],
    "10.4": [
        lambda lab: (lab.delete_controller(), lab.settle(), lab.execute_reassignment(AUDIT)),
        lambda lab: (lab.bounce(4), lab.settle(), lab.execute_reassignment(AUDIT)),
    ],
    "09.1": [(1, 3), [1, 3]],
    "09.2": [kafkas_assignment, round_by_round],
    "09.3": [by_racks, by_racks_sorted],
    "09.4": [lambda lab: lab.execute_reassignment(THREE_COPIES), generated, lambda lab: lab.reassign(THREE_COPIES)],
}
"""By exercise: its solution and others that are right as well."""

WRONG: dict[str, list[tuple[Any, str]]] = {
    "16.1": [
        ([(3, 1), (2, 2), (1, 10)], "That is for clock 0"),
        ([(2, 2), (3, 1), (1, 17)], "yours goes up again"),
        ([(3, 1), (1, 17)], "57 ms are left"),
        ([(1, 17)], "457 is 450 ms ahead"),
        ([(3, 1)], "Where is the task when that bucket has expired"),
        ([(3, 1), (2, 3), (1, 17)], "Look again at place 2"),
        ([(3, 1, 400), (2, 2, 440)], "is no list of pairs"),
    ],
    "16.2": [
        (lambda e, tick, n, now: ((e - now) // tick % n, (e - now) // tick * tick), "neither a distance nor a number"),
        (lambda e, tick, n, now: (e // tick % n, e // tick), "expires at 1, the clock shows 1"),
        (lambda e, tick, n, now: (round(e / tick) % n, round(e / tick) * tick), "52 of 100 tasks run late"),
        (lambda e, tick, n, now: (e // tick % n, (e // tick + 1) * tick), "100 of 100 tasks run late"),
        (lambda e, tick, n, now: (0, e // tick * tick), "too many are put into one bucket"),
        (lambda e, tick, n, now: None, "it is a pair: the bucket"),
        (by_division(1, 1, 1, 1), "is no function"),
    ],
    "16.3": [
        (["try", "watch", "timer"], "between 'try' and 'watch', and nobody notices: it was not on a list yet"),
        (["try", "timer", "watch"], "between 'try' and 'timer', and nobody notices: it was not"),
        (["try", "watch", "try"], "nothing ends it"),
        (["try", "timer", "watch", "try"], "put into the timer in vain"),
        (["try", "timer"], "the request is on none"),
        (["watch", "timer"], "before the first step"),
        (["lock", "try"], "is no list of steps"),
    ],
    "16.4": [
        ({"purge_interval": 10000}, "more to collect now"),
        ({"wait": 100}, "Nothing waits"),
        ({"requests": 100}, "it only begins anew"),
        ({"purge_interval": 500}, "until the next purge"),
        ({"partitions": 100}, "it is on more lists"),
        ({"partitions": 0}, "a whole number, 1 or more"),
        ({"heap": 8}, "is no dictionary of changes"),
    ],
    "15.1": [
        ((SAFE, SAFE, SAFE), "who tells it that they are safe"),
        ((UNAWARE, UNAWARE, UNAWARE), "The producer has its answer"),
        ((SAFE, "|", "|"), "With an empty follower"),
        (("1@0 2@0 3@0 |", UNAWARE, UNAWARE), "You have a third record"),
        ((SAFE, "1@0 2@0", UNAWARE), "Each log has one bar"),
        ((SAFE, "| 1@1 2@1", UNAWARE), "were written in leader epoch 0"),
        (SAFE, "is text; leave the quotes out"),
    ],
    "15.2": [
        (lambda ends, isr, leader: min(ends.values()), "a dead replica would stop all producers"),
        (lambda ends, isr, leader: sorted(ends.values())[1], "it may be elected without the"),
        (lambda ends, isr, leader: ends[leader], "acks=1 under another name"),
        (lambda ends, isr, leader: min((ends[b] for b in isr if b != leader), default=0), "alone in it, it waits for"),
        (lambda ends, isr, leader: min(ends[b] for b in isr if b != leader), "raised ValueError"),
        (lambda ends, isr, leader: max(ends.values()) + 1, "where the leader's log ends"),
        (lambda ends, isr, leader: 0, "has more: all reach"),
        (lambda ends, isr, leader: None, "returned None; an offset is expected"),
    ],
    "15.3": [
        ("joins_from_epoch_start", "`joins_from_epoch_start` is about something else"),
        ("checks_fetched_epoch", "`checks_fetched_epoch` is about something else"),
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
        ("truncates", "'truncates'"),
    ],
    "15.4": [
        (ONE_COPY, "no second copy"),
        ("elect_preferred", "adds nobody to an ISR"),
        ("delete_controller", "the same replicas, 1 and 2"),
        ("start 2", "broker 2 is burnt"),
        ("add_broker 9", "before somebody assigns one to it"),
        ("kill 1", "the only copy that was left"),
        ("add_partitions orders 2", "Other partitions may take records"),
    ],
    "10.1": [
        ({**WAITING, 1: "ReplicaDeletionIneligible"}, "2.4 takes it back"),
        ({**WAITING, 1: "ReplicaDeletionStarted"}, "is sent no request"),
        ({**WAITING, 1: "OnlineReplica"}, "Broker 1 had left before"),
        (dict.fromkeys((1, 2, 3), "OfflineReplica"), "it does not wait until all are there"),
        ({**WAITING, 2: "NonExistentReplica"}, "only when all of the topic are deleted"),
        ({**WAITING, 3: "OnlineReplica"}, "Brokers 2 and 3 live and have answered"),
        ({1: "OfflineReplica"}, "One state for each"),
        ("OfflineReplica", "is text"),
    ],
    "10.2": [
        (lambda states, alive, halted: "complete" if SUCCESSFUL in states.values() else "start", "is not deleted, and"),
        (forgets_the_dead, "a topic that nobody knows (KAFKA-10548)"),
        (lambda states, alive, halted: next_move(states, alive, False), "asks the same once more"),
        (starts_twice, "An answer is still on its way"),
        (lambda states, alive, halted: "wait", "nobody would ever start"),
        (never_completes, "so the topic would stay for ever"),
        (lambda states, alive, halted: "retry", "one of complete, wait, start is expected"),
        (lambda states, alive: "wait", "Its parameters are not those"),
    ],
    "10.3": [
        ("delete_znode /admin/delete_topics/orders", "still on its list, in memory"),
        ("delete_znode /admin/delete_topics/orders\nsettle\nstart 1", "the topic is gone, but I16 is broken"),
        (
            "delete_znode /admin/delete_topics/orders\nsettle\ndelete_controller\nsettle\nstart 1",
            "the topic is there again, but I4 is broken",
        ),
        ("delete_controller", "waits for the same broker"),
        ("delete_topic orders", "already marked for deletion"),
        ("bounce 3", "orders-0 on 1"),
        ("delete_znode /brokers/topics/orders", "NOTEMPTY"),
    ],
    "10.4": [
        (lambda lab: lab.execute_reassignment(AUDIT), "There is an existing assignment running"),
        (
            lambda lab: (lab.delete_znode("/admin/reassign_partitions"), lab.execute_reassignment(AUDIT)),
            "its watch of this znode was used up",
        ),
        ("delete_controller", "Nobody has asked to move audit yet"),
        ("""reassign '{"audit-0":[1,2,4]}'""", "cannot be carried out: There is an existing assignment running"),
        ("""create_topic orders assignment='{"0":[1,2,4]}'""", "the old request does not move it"),
    ],
    "09.1": [
        ((1, 2), "That is partition 0"),
        ((4, 1), "numbered from 0"),
        ((1, 4), "yours has grown by two"),
        ((2, 3), "at place p of the row"),
        ((1, 3, 4), "Each partition has two"),
        ("1,3", "'1,3' is text"),
    ],
    "09.2": [
        (neighbours, "after broker 1 died, broker 2 leads 10 and broker 3 leads 5"),
        (drawn, "are the first ones taken in turn?"),
        (shifted_leader, "after broker 1 died, broker 2 leads 10"),
        (wrong_modulus, "Duplicate replica"),
        (from_one, "numbered from 0"),
        (one_broker_first, "broker 1 leads 30"),
        (lambda brokers, partitions, rf: [[1, 2]], "a dictionary such as {0: [1, 2]} is expected"),
    ],
    "09.3": [
        (lambda leader, others, rack_of, wanted: others[:wanted], "the first is partition"),
        (never_twice, "so 2 brokers. When every rack"),
        (stops, "so 1 brokers. When every rack"),
        (not_the_leaders, "have two copies in one rack while another rack has none"),
        (smallest_of_each, "take the first that fits"),
        (lambda leader, others, rack_of, wanted: others, "so 5 brokers."),
        (lambda leader, others, rack_of, wanted: None, "returned None; a list"),
    ],
    "09.4": [
        ("add_partitions orders 8", "it had six, and keys depend on that number"),
        ("""elect_preferred '["orders-0"]'""", "broker 4 holds none"),
        ("bounce 4", "that ZooKeeper names for it: none"),
        ("delete_controller", "It places nothing"),
        (lambda lab: lab.generate_reassignment(["orders"], [1, 2, 3, 4]), "nobody has executed it"),
        (lambda lab: lab.reassign({("orders", 0): [1, 2, 4]}), "partition 0 has the replicas [1, 2, 4]"),
        (lambda lab: lab.reassign({("orders", 0): [1, 4]}), "broker 4 holds 1 replica of"),
    ],
    "14.1": [
        (62, "So it is one by one, in 0.10"),
        (60, "That is a number of operations"),
        (2, "thirty writes three more"),
        (6, "find out who has gone"),
        (7, "have to be answered before anything is decided"),
        (1.6, "1.6 is no whole number"),
    ],
    "14.2": [
        (lambda operations, window: [operations], "operations are in flight together"),
        (lambda operations, window: [[each] for each in operations], "10 at a time"),
        (lambda operations, window: slices(operations, window + 1), "Kafka holds a semaphore"),
        (lambda operations, window: slices(operations[::-1], window), "every operation once and in order"),
        (lambda operations, window: operations, "rules['pipeline'] returned ["),
        (lambda operations, window: None, "rules['pipeline'] returned None"),
    ],
    "14.3": [
        ("fences_writes", "`fences_writes` is about something else"),
        ("preempts_queue", "`preempts_queue` is about something else"),
        ("pipelined", "`pipelined` is about something else"),
        ("fails_waiters", "'fails_waiters'"),
    ],
    "14.4": [
        ({"window": 50}, "Before 1.1 there is no window"),
        ({"retries": 9}, "A retry would take 5 s more"),
        ({"stop": "kill"}, "no leader before the session ends"),
        ({"session_timeout": 2000}, "Nobody waits for a session here"),
        ({"partitions": 40}, "How many fit into 300 ms?"),
        ({"generation": "2.0", "pipelined": False}, "Without pipelining a newer controller"),
        ({"kafka": "2.0"}, "is no dictionary of changes"),
        ({"generation": "0.10"}, "Nothing is changed yet"),
    ],
    "13.1": [
        ({1: 4, 2: 4, 3: 4}, "it does not spread leaders"),
        ({1: 6, 2: 3, 3: 3}, "No partition prefers broker 3"),
        ({1: 8, 2: 4}, "a threshold, not a quota"),
        ({1: 9, 2: 9}, "These are 18 partitions"),
        ("{1: 9, 2: 3}", "is text; leave the quotes out"),
        ((9, 3), "is no dictionary"),
    ],
    "13.2": [
        (rebalanced(lambda ratio, limit: ratio >= limit), "is exactly 10 %"),
        (rebalanced(share="all"), "not of all"),
        (rebalanced(share="surplus"), "not only the surplus"),
        (rebalanced(fit=lambda p, live, moving: p.preferred in live), "while any partition moves"),
        (rebalanced(fit=lambda p, live, moving: not moving), "is dead, and cannot lead"),
        (lambda *given: [], "has a ratio, too"),
        (lambda partitions, live, moving, percentage: partitions, "leads it already"),
        (by_leader_only, "1 of 10 that prefer broker 1 are led elsewhere"),
        (lambda *given: None, "a list of some of the partitions"),
    ],
    "13.3": [
        ("elects_already_preferred", "`elects_already_preferred` is about something else"),
        ("skips_needless_elections", "`skips_needless_elections` is about something else"),
        ("rebalances_in_batches", "`rebalances_in_batches` is about something else"),
        ("rebalances_in_sync", "'rebalances_in_sync'"),
    ],
    "13.4": [
        ("elect_preferred", "By hand it worked, once"),
        ("delete_controller", "takes it up again"),
        ("delete_znode /admin/reassign_partitions", "Your commands cannot be carried out"),
        ("bounce 2", "the move is still there"),
        ("kill 2", "will not come back to it"),
        ("start 4", "broker 4 is burnt"),
        ("delete_topic audit", "of the partitions of orders"),
    ],
    "02.1": [
        ((4, 6), "Four counts replicas"),
        ((2, 6), "Two counts partitions"),
        ((3, 3), "Clients may ask brokers 4 to 6"),
        ((6, 6), "hold no replica"),
        ((3, 12), "carries both partitions"),
        ((3, 7), "Look again at: UpdateMetadata"),
    ],
    "02.2": [
        (dead_too, "It is down: no client gets an answer"),
        (by_what_they_do, "which is in its metadata, not what it *does*"),
        (by_each_other, "all brokers agree with each other"),
        (by_who_leads, "who really leads is not asked"),
        (without_asking, "raised KeyError"),
        (unknown_too, "It has just started and names no leader"),
        (lambda lab: sorted(stale(lab)), "a set of broker ids is expected"),
    ],
    "02.3": [
        (f"write_znode {STATE} '{FIRST}'", "nobody has read it"),
        ("delete_controller", "leader epoch 0 once more"),
        ("bounce 2", "both lead with epoch 0"),
        ("bounce 4", "no election was necessary"),
        ("create_topic more partitions=1", "Nothing was sent about orders-0"),
        ("add_broker 9", "the same metadata as all the others"),
    ],
    "02.4": [
        ("metadata_to_all_on_broker_change", "`metadata_to_all_on_broker_change` is about something else"),
        ("checks_controller_epoch", "`checks_controller_epoch` is about something else"),
        ("groups_stop_replica", "`groups_stop_replica` is about something else"),
        ("fences_writes", "`fences_writes` is about something else"),
    ],
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
    "08.1": [
        ((5, 4), "So it is in 2.0"),
        ((4, 4), "the first controller counts, too"),
        ((1, 4), "Each election raises the epoch"),
        ((0, 0), "leaves `/controller_epoch` alone"),
        ("(5, 5)", "'(5, 5)' is text"),
        ((5, 6), "Look again at: the version"),
    ],
    "08.2": [
        (lambda asked, newest: asked > newest, "Equal is not old"),
        (lambda asked, newest: asked == newest, "This is how a broker hears of a new controller"),
        (lambda asked, newest: True, "was replaced and does not know it yet"),
        (lambda asked, newest: asked >= newest + 1 if newest else True, "your function answers False. Equal"),
        (lambda asked, newest: None, "True or False is expected"),
    ],
    "08.3": [
        ("checks_controller_epoch", "`checks_controller_epoch` is about something else"),
        ("ends_with_session", "`ends_with_session` is about something else"),
        ("broker_epochs", "`broker_epochs` is about something else"),
        ("preempts_queue", "`preempts_queue` is about something else"),
    ],
    "08.4": [
        ("delete_controller", "The brokers have seen epoch 4"),
        ("write_znode /controller_epoch 4", "keeps the epoch that it was elected with"),
        ("bounce 1", "the others have not"),
        ("create_topic more partitions=1", "refused like the last one"),
        ("""elect_preferred '["new-0"]'""", "the brokers refuse to hear of it"),
    ],
    "04.1": [
        ((2, 2, 3), "the replica's move finds nothing to write"),
        ((2, 6, 2), "Six counts all replicas"),
        ((4, 2, 2), "orders-1 is led by broker 2"),
        ((1, 2, 2), "are two moves"),
        ((2, 2, 1), "The ISR of orders-1 has to be written"),
        ((2, 1, 2), "Broker 1 holds two replicas"),
        ((2, 2), "has 2 parts; 3 are asked for"),
    ],
    "04.2": [
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], [r for r in isr if r != gone]), "An empty ISR"),
        (lambda leader, isr, gone: (leader, shrunk(leader, isr, gone)[1]), "that was KAFKA-708"),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], isr), "would wait for it"),
        (lambda leader, isr, gone: (-1, shrunk(leader, isr, gone)[1]), "no reason to take that away"),
        (
            lambda leader, isr, gone: (shrunk(leader, isr, gone)[1][0], shrunk(leader, isr, gone)[1]),
            "Nobody is elected",
        ),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], shrunk(leader, isr, gone)[1][::-1]), "another order"),
        (lambda leader, isr, gone: shrunk(leader, isr, gone)[1], "and the ISR are expected"),
    ],
    "04.3": [
        ("delete_controller", "The new controller begins anew"),
        ("bounce 1", "its replica has been deleted"),
        ("add_broker 9", "A new broker has no replica"),
        ("delete_znode /brokers/topics/bills/partitions/0/state", "a znode less does not change that"),
        ("delete_topic bills", "already marked for deletion"),
    ],
    "04.4": [
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
        ("shrinks_stored_isr", "`shrinks_stored_isr` is about something else"),
        ("accepts_own_isr", "`accepts_own_isr` is about something else"),
        ("resets_dead_leaders", "'resets_dead_leaders'"),
    ],
    "03.1": [
        ((*TAKEN[:3], ("Offline", -1)), "True in 2.4"),
        ((*TAKEN[:3], ("New", -1)), "New has never had a leader"),
        ((*TAKEN[:3], ("Online", 4)), "Online needs a leader that is alive"),
        ((("Offline", -1),) * 4, "not to be without a leader"),
        ((TAKEN[0], ("Offline", 1), *TAKEN[2:]), "What does it do with the partitions that are Offline"),
        ((TAKEN[0], ("Online", 4), *TAKEN[2:]), "Broker 4 is dead"),
        ((*TAKEN[:3], ("Gone", 4)), "'Gone' is no state"),
        (TAKEN[:3], "has 3 parts; 4 are asked for"),
    ],
    "03.2": [
        (but("New", "NonExistent"), "that state is entered from Offline only"),
        (but("Online", "Online"), "a preferred election moves the leader"),
        (but("Offline", "Offline"), "a second death marks a partition"),
        (but("New", "Offline"), "deleted before it ever had a leader"),
        (but("Offline", "New"), "New is for a partition that never had a leader"),
        (but("NonExistent", "Online"), "first the controller has to learn of its replicas"),
        (lambda a, b: None, "Is there a `return`?"),
        (lambda a, b: 1, "True or False is expected"),
    ],
    "03.3": [
        (refused_too, "a move that was refused"),
        (moves_only, "A new controller *sets* states without a move"),
        (with_the_gone, "it is gone, its last move was to NonExistent"),
        (by_leader, "the last that happened to it is"),
        (lambda records: {}, "your answer does not have alone-0"),
        (lambda records: [], "a dictionary is expected"),
        (lambda records: records["orders"], "raised TypeError"),
    ],
    "03.4": [
        ("delete_controller", "is refused for the same reason"),
        ("elect_preferred", "no `state` znode exists"),
        ("""reassign '{"alone-0":[2]}'""", "there is no ISR yet"),
        ("delete_topic alone", "The deletion waits for broker 1"),
        ("add_broker 9", "nobody moves a replica unasked"),
    ],
    "03.5": [
        ("stops_dead_replicas_at_startup", "still breaks I21"),
        ("resets_dead_leader", "`resets_dead_leader` is about something else"),
        ("tolerates_missing_state", "a replica goes offline also where no leader was ever elected"),
        ("reads_broker_once", "'reads_broker_once'"),
        (3, "3 names no field"),
    ],
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
        ("heal", "Broker 2 is still down"),
        ("start 2", "still cannot reach broker 1"),
        ("bounce 3", "its process was never the trouble"),
        ("kill 1", "now nobody may lead"),
        ("""reassign '{"orders-0":[1,3]}'""", "for the same fetch as you"),
        ("elect_preferred", "An election adds nobody to an ISR"),
    ],
    "06.4": [
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
        ("tolerates_missing_state", "`tolerates_missing_state` is about something else"),
        ("accepts_own_lost_write", "`accepts_own_lost_write` is about something else"),
        ("retries_whole_batch", "`retries_whole_batch` is about something else"),
        ("accepts_own_isrs", "'accepts_own_isrs'"),
    ],
    "05.1": [
        ((2, (2, 1)), "You took the ISR's order."),
        ((3, (3, 2, 1)), "it has just died"),
        ((1, (1, 2)), "The ISR keeps its own order"),
        ((1, (1,)), "Only an unclean election"),
        ((1, (3, 2, 1)), "The ISR becomes its live members"),
        ((4, (2, 1)), "Broker 4 holds no replica"),
        ((1, 2), "2 has one part"),
        (("1", (2, 1)), "'1' is text; leave the quotes out"),
    ],
    "05.2": [
        (first_live, "not in the ISR (1,), and unclean election is not allowed"),
        (first_of_isr, "You took the ISR's order: broker 3"),
        (last_assigned, "You took another order: broker 3"),
        (isr_not_reduced, "the replica machine has to write the ISR a second time"),
        (isr_of_the_live, "the right members in another order"),
        (never_unclean, "Nobody is to lead, though a replica may"),
        (dead_preferred, "Broker 1 is not alive"),
        (raises_for_nobody, "raised IndexError"),
        (offline_leader([1], [1], {1}), "is no function"),
        (lambda *case: 3, "returned 3; a leader and the ISR are expected"),
    ],
    "05.3": [
        (leaving_may_lead, "is leaving too"),
        (leaving_stays_in_isr, "it may be elected again"),
        (dead_leave_too, "which is not leaving"),
        (head_of_isr, "KAFKA-3670"),
        (out_of_sync, "a controlled shutdown is never unclean"),
        (lambda *case: None, "Nobody is to lead, though a replica may that is alive"),
    ],
    "05.4": [
        ("elect_preferred", "Strategy *preferred* looks at one broker only"),
        ("""reassign '{"orders-0":[2]}'""", "A reassignment waits"),
        ("delete_controller", "asks the same question"),
        ("bounce 3", "The controller looked again"),
        ([UNCLEAN, "delete_controller"], "orders-0 is led, but broker 2 leads orders-0 without"),
        ("kil 1", "unknown command 'kil'"),
    ],
    "05.5": [
        (UNCLEAN, "nothing happened: a controller looks when something has changed"),
        ("start 1", "broker 1 is burnt"),
        ("elect_preferred", "looks at one broker only"),
        ("""reassign '{"orders-0":[2]}'""", "A reassignment waits"),
        ("delete_controller", "After `delete_controller`: orders-0 has leader -1"),
    ],
}
"""By exercise: wrong answers, and a part of what is said to each."""
