"""Right and wrong answers to the exercises of lesson 15."""

from __future__ import annotations

from typing import Any

SAFE, UNAWARE = "1@0 2@0 |", "| 1@0 2@0"


MOVE_TO_3 = """reassign '{"orders-0":[1,3]}'"""


ONE_COPY = """write_znode /config/topics/orders '{"version":1,"config":{"min.insync.replicas":"1"}}'"""


RIGHT: dict[str, list[Any]] = {
    "15.1": [(SAFE, UNAWARE, UNAWARE), [SAFE, " |  1@0 2@0", UNAWARE]],
    "15.2": [
        lambda ends, isr, leader: min(ends[broker] for broker in isr),
        lambda ends, isr, leader: sorted(ends[broker] for broker in {*isr, leader})[0],
    ],
    "15.3": ["truncates_by_epoch", {"truncates_by_epoch": True}],
    "15.4": [MOVE_TO_3, f"{MOVE_TO_3}\nsettle\nelect_preferred", """reassign '{"orders-0":[3,4]}'"""],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
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
        ("refetches_at_each_epoch", "begins to fetch anew at every leader epoch"),
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
}
