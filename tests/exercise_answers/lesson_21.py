"""Crashes and disks."""

from __future__ import annotations

import json
from typing import Any

PLAN = json.dumps(
    {
        "version": 1,
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["/d1", "any"]}],
    }
)
"""A plan that moves a copy to another directory of its broker."""


def throttled(lab: Any) -> None:
    lab.execute_reassignment(PLAN, replica_alter_log_dirs_throttle=10_000_000)


def throttled_and_verified(lab: Any) -> None:
    throttled(lab)
    lab.settle()
    lab.verify_reassignment(PLAN)


def beside_another_topic(lab: Any) -> None:
    lab.create_topic("audit", assignment={0: [1]})
    lab.execute_reassignment(PLAN)


def without_its_records(lab: Any) -> None:
    lab.alter_config("topics", "audit", {"unclean.leader.election.enable": True})
    lab.reassign({("audit", 0): [2]})
    lab.settle()
    lab.delete_controller()
    lab.settle()
    lab.bounce(1)


def all_again(lab: Any, empty: bool = False) -> None:
    """Each broker is killed and started again; broker 1 leads at once."""
    for broker in (1, 2, 3):
        lab.kill(broker)
    lab.run_for(30)
    for broker in (1, 2, 3):
        lab.start(broker, empty=empty)


RIGHT: dict[str, list[Any]] = {
    "21.1": [
        lambda lab: (lab.shutdown(1), lab.start(1)),
        lambda lab: lab.bounce(1),
        lambda lab: (lab.shutdown(1), lab.run_for(60), lab.start(1), lab.elect_preferred()),
    ],
    "21.2": [
        lambda lab: lab.bounce(1),
        lambda lab: (lab.shutdown(1), lab.start(1)),
        lambda lab: (lab.kill(1), lab.run_for(10), lab.start(1)),
    ],
    "21.3": [lambda lab: lab.execute_reassignment(PLAN), throttled_and_verified, beside_another_topic],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "21.1": [
        (lambda lab: (lab.kill(1), lab.start(1)), "no .kafka_cleanshutdown"),
        (lambda lab: lab.shutdown(1), "now it has to come back"),
        (lambda lab: lab.expire_session(1), "the process went on"),
        (lambda lab: (lab.kill(1), lab.start(1, empty=True)), "the broker fetches everything"),
        (lambda lab: (lab.shutdown(1, grace=0.1), lab.start(1)), "SIGKILL came after `grace`"),
        (lambda lab: lab.delete_controller(), "No process of a broker"),
        (lambda lab: (lab.delete_topic("orders"), lab.settle(), lab.bounce(1)), "orders is gone"),
        (all_again, "broker 1 needed 10.7 s from its start"),
        (lambda lab: all_again(lab, empty=True), "records of orders-0 are gone"),
    ],
    "21.2": [
        (lambda lab: lab.delete_controller(), "gets KAFKA_STORAGE_ERROR again"),
        (lambda lab: lab.elect_preferred(), "there is none"),
        (lambda lab: lab.expire_session(1), "it knows that the directory has failed"),
        (lambda lab: lab.reassign({("audit", 0): [2]}), "the move waits"),
        (without_its_records, "audit-0 is empty"),
        (
            lambda lab: (lab.reassign({("orders", 0): [2, 3]}), lab.bounce(1)),
            "when all is quiet again: orders-0 has 2 of 3 copies. A story",
        ),
        (
            lambda lab: (lab.bounce(1), lab.settle(), lab.reassign({("orders", 0): [2], ("orders", 1): [3]})),
            "orders-0 has 1 of 3 copies",
        ),
        (lambda lab: lab.heal(), "faults of the network"),
        (lambda lab: lab.shutdown(1), "now it has to come back"),
        (lambda lab: lab.kill(1), "Now it has to come back"),
        (lambda lab: (lab.delete_topic("audit"), lab.settle(), lab.bounce(1)), "audit is gone"),
    ],
    "21.3": [
        (throttled, "removes a limit"),
        (lambda lab: lab.execute_reassignment(PLAN, throttle=10**6), "and the limit is still set"),
        (lambda lab: lab.execute_reassignment(json.loads(PLAN)), "give json.dumps(plan)"),
        (lambda lab: lab.execute_reassignment(PLAN.replace("/d1", "any")), "name /d1 for broker 1"),
        (
            lambda lab: lab.execute_reassignment(PLAN.replace('"/d1", "any"', '"any", "/d1"')),
            "the order of `replicas`",
        ),
        (lambda lab: lab.reassign({("orders", 0): [1, 3]}), "names brokers only"),
        (lambda lab: lab.fail_log_dir(1), "all of its copies are gone"),
    ],
}
