"""Right and wrong answers to the exercises of lesson 03."""

from __future__ import annotations

from typing import Any


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


RIGHT: dict[str, list[Any]] = {
    "03.1": [TAKEN, list(map(list, TAKEN)), WHOLE],
    "03.2": [lambda a, b: b in LEGAL[a], by_previous],
    "03.3": [states, states_as_text],
    "03.4": ["start 1", lambda lab: (lab.delete_controller(), lab.settle(), lab.start(1))],
    "03.5": ["reads_brokers_once", ["follows_missing_leaders"], {"reads_brokers_once": True}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
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
        (lambda a, b: None, "end with a `return`"),
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
        ("keeps_last_isr_member", "the last member stays in the ISR"),
        ("stops_dead_replicas_at_startup", "still breaks I21"),
        ("resets_dead_leader", "`resets_dead_leader` is about something else"),
        ("tolerates_missing_state", "a replica goes offline also where no leader was ever elected"),
        ("reads_broker_once", "'reads_broker_once'"),
        (3, "3 names no field"),
    ],
}
