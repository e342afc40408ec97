"""Before there was a controller."""

from __future__ import annotations

from typing import Any

from kafka_ctl_course.before_the_controller import can_become_leader


def in_steps(broker: int, assigned: list[int], isr: list[int], live: list[int]) -> bool:
    if broker in isr:
        return True
    if any(member in live for member in isr):
        return False
    return broker in assigned


RIGHT: dict[str, list[Any]] = {
    "23.2": [can_become_leader, in_steps],
    "23.3": [
        lambda lab: (lab.disconnect(1, 2), lab.expire_session(1)),
        lambda lab: (lab.delay(2, 1, 30), lab.expire_session(1)),
        lambda lab: (lab.disconnect(1, 2), lab.reassign({("orders", 0): [2, 3, 1]}), lab.elect_preferred()),
    ],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "23.2": [
        (lambda broker, assigned, isr, live: broker in isr, "so any assigned replica may try"),
        (lambda broker, assigned, isr, live: broker in assigned, "has to leave the partition to it"),
        (lambda broker, assigned, isr, live: not isr or broker == isr[0], "the first of it does not matter"),
        (lambda broker, assigned, isr, live: broker in isr or not set(isr) & set(live), "It has no replica"),
        (lambda broker, assigned, isr, live: {broker} & set(isr), "you return {1}. True or False is asked for"),
        (lambda *case: None, "returned None here; it was asked with 1, (1, 2, 3), (1, 2, 3), (1, 2, 3). Which way"),
    ],
    "23.3": [
        (lambda lab: lab.kill(1), "A dead broker leads nothing"),
        (lambda lab: lab.disconnect(1, 2), "still reaches ZooKeeper"),
        (lambda lab: lab.disconnect(1, "zookeeper"), "/brokers/ids/1 does not exist. Without ZooKeeper"),
        (lambda lab: (lab.disconnect(1, 2), lab.delete_znode("/brokers/ids/1")), "not create its znode again"),
        (lambda lab: (lab.disconnect(1, "zookeeper"), lab.run_for(10), lab.heal()), "After `heal` every request"),
        (lambda lab: lab.expire_session(1), "Broker 1 registers again"),
        (lambda lab: (lab.expire_session(1), lab.disconnect(1, 3)), "the controller sends it the new leader"),
        (lambda lab: lab.bounce(1), "leads only what the controller sends it"),
        (
            lambda lab: lab.write_znode(
                "/brokers/topics/orders/partitions/0/state",
                '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[2,3]}',
            ),
            "by a request of the controller",
        ),
        (lambda lab: lab.elect_preferred(), "leads already: nothing is elected"),
        (
            lambda lab: (lab.reassign({("orders", 0): [2, 1, 3]}), lab.elect_preferred()),
            "sends the result of an election",
        ),
        (lambda lab: lab.shutdown(1), "hands the leader over"),
        (lambda lab: lab.pause(1, 20), "learns what it missed"),
    ],
}
