"""Right and wrong answers to the exercises of lesson 04."""

from __future__ import annotations

from typing import Any

RIGHT: dict[str, list[Any]] = {
    "04.2": [
        lambda ends, isr, leader: min(ends[broker] for broker in isr),
        lambda ends, isr, leader: sorted(ends[broker] for broker in {*isr, leader})[0],
        lambda ends, isr, leader: min(ends.pop(broker) for broker in isr),
    ]
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "04.2": [
        (lambda ends, isr, leader: min(ends.values()), "a dead replica would stop all producers"),
        (lambda ends, isr, leader: sorted(ends.values())[1], "it may be elected without the"),
        (lambda ends, isr, leader: ends[leader], "acks=1 under another name"),
        (lambda ends, isr, leader: min((ends[b] for b in isr if b != leader), default=0), "alone in it, it waits for"),
        (lambda ends, isr, leader: min(ends[b] for b in isr if b != leader), "raised ValueError"),
        (lambda ends, isr, leader: max(ends.values()) + 1, "where the leader's log ends"),
        (lambda ends, isr, leader: ends.pop(leader), "asked with ends={1: 2, 2: -1, 3: -1}, isr=(1, 2, 3)"),
        (lambda ends, isr, leader: 0, "has more: all reach"),
        (lambda ends, isr, leader: None, "returned None; an offset is expected"),
    ]
}
