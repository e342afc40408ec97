"""Right and wrong answers to the exercises of lesson 11."""

from __future__ import annotations

from typing import Any

from kafka_ctl.controller.reassignment import moves

PLAN, BACK, REVERSED = "delete the plan", "execute the plan back", "execute the plan back, in another order"


def four_sets(old: tuple, new: tuple) -> tuple:
    """Another order of AR than Kafka's."""
    create, remove = [r for r in new if r not in old], [r for r in old if r not in new]
    return [*old, *create], create, remove, set(new)


def withdrawn(lab: Any, *steps: Any) -> None:
    """Work on exercise 11.4, with time between the commands."""
    for step in steps:
        if step == PLAN:
            lab.delete_znode("/admin/reassign_partitions")
        elif step == BACK:
            lab.execute_reassignment({("orders", 0): [1, 2, 3]})
        elif step == REVERSED:
            lab.execute_reassignment({("orders", 0): [3, 2, 1]})
        else:
            step()
        lab.settle()


RIGHT: dict[str, list[Any]] = {
    "11.2": [moves, four_sets],
    "11.4": [
        lambda lab: withdrawn(lab, PLAN, lambda: lab.delete_controller(), BACK),
        lambda lab: withdrawn(lab, PLAN, lambda: lab.expire_session(3), BACK),
        lambda lab: withdrawn(lab, PLAN, BACK, lambda: lab.delete_controller()),
    ],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "11.2": [
        (lambda old, new: (*four_sets(old, new)[:3], set(new) - set(old)), "You do not wait for broker 4"),
        (lambda old, new: (*four_sets(old, new)[:2], old, new), "is to stay, and you have its copy deleted"),
        (lambda old, new: (new, *four_sets(old, new)[1:]), "Broker 1 still has a replica while the others copy"),
        (lambda old, new: (four_sets(old, new)[0], new, *four_sets(old, new)[2:]), "asked to start over"),
        (lambda old, new: (*four_sets(old, new)[:2], [], new), "not among the new ones keeps its replica"),
        (lambda old, new: (four_sets(old, new)[0], [], *four_sets(old, new)[2:]), "can never join the ISR"),
        (lambda old, new: (*four_sets(old, new)[:3], [*old, *new]), "a broker that is not among the new ones"),
        (lambda old, new: ([*old, *new], *four_sets(old, new)[1:]), "is in it twice"),
        (lambda old, new: [*old, *new], "four collections of broker ids are expected"),
        (lambda old, new: (old | new, new - old, old - new, new), "for |: 'tuple' and 'tuple'"),
        (lambda old, new: None, "four collections of broker ids are expected, such as"),
    ],
    "11.4": [
        (lambda lab: withdrawn(lab, BACK), "There is an existing assignment running"),
        (lambda lab: withdrawn(lab, PLAN, BACK), "when it wrote the znode at the beginning of the move"),
        (lambda lab: withdrawn(lab, lambda: lab.delete_controller()), "goes on with the same plan"),
        (lambda lab: withdrawn(lab, lambda: lab.start(4), BACK), "broker 4 is down for a week"),
        (lambda lab: withdrawn(lab, PLAN, lambda: lab.delete_controller(), REVERSED), "It was 1, 2, 3, in this order"),
        (lambda lab: withdrawn(lab, PLAN), "The controller has it in memory, too"),
        (lambda lab: withdrawn(lab, lambda: lab.delete_controller(), PLAN, BACK), "a week later broker 4 is up"),
        (lambda lab: withdrawn(lab, PLAN, lambda: lab.delete_controller()), "there is no request to change it back"),
    ],
}
