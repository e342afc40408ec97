"""Crashes, disks and addresses."""

from __future__ import annotations

from typing import Any

from kafka_ctl_course.lesson_19 import PLAN, registered


def with_regex(listeners: str, advertised: str | None, name: str) -> str | None:
    host, port = (advertised or listeners).split("://")[1].split(":")
    if host == "0.0.0.0":
        return None
    return f"{host if host else name}:{port}"


def empty_host(listeners: str, advertised: str | None, name: str) -> str | None:
    return registered(listeners, advertised, "")


def any_address(listeners: str, advertised: str | None, name: str) -> str:
    host, _, port = (advertised or listeners).partition("://")[2].rpartition(":")
    return f"{host or name}:{port}"


def whole(listeners: str, advertised: str | None, name: str) -> str | None:
    found = registered(listeners, advertised, name)
    return None if found is None else f"PLAINTEXT://{found}"


def always_the_name(listeners: str, advertised: str | None, name: str) -> str | None:
    found = registered(listeners, advertised, name)
    return None if found is None else f"{name}:{found.rpartition(':')[2]}"


def throttled(lab: Any) -> None:
    lab.execute_reassignment(PLAN, replica_alter_log_dirs_throttle=10_000_000)


def throttled_and_verified(lab: Any) -> None:
    throttled(lab)
    lab.settle()
    lab.verify_reassignment(PLAN)


def beside_another_topic(lab: Any) -> None:
    lab.create_topic("audit", assignment={0: [1]})
    lab.execute_reassignment(PLAN)


RIGHT: dict[str, list[Any]] = {
    "19.2": [registered, with_regex],
    "19.3": [
        lambda lab: (lab.shutdown(1), lab.start(1)),
        lambda lab: lab.bounce(1),
        lambda lab: (lab.shutdown(1), lab.run_for(60), lab.start(1), lab.elect_preferred()),
    ],
    "19.4": [lambda lab: lab.execute_reassignment(PLAN), throttled_and_verified, beside_another_topic],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "19.2": [
        (empty_host, "takes the full name of its machine"),
        (any_address, "No client can reach 0.0.0.0"),
        (whole, "stands before `://`"),
        (always_the_name, "Which host is configured for clients?"),
        (lambda listeners, advertised, name: registered(listeners, advertised, name) and name, "as in kafka-1"),
        (
            lambda listeners, advertised, name: registered(listeners.replace("0.0.0.0", ""), None, name),
            "advertised.listeners counts",
        ),
    ],
    "19.3": [
        (lambda lab: (lab.kill(1), lab.start(1)), "no .kafka_cleanshutdown"),
        (lambda lab: lab.shutdown(1), "now it has to come back"),
        (lambda lab: lab.expire_session(1), "the process went on"),
        (lambda lab: lab.delete_controller(), "No process of a broker"),
        (lambda lab: (lab.delete_topic("orders"), lab.settle(), lab.bounce(1)), "orders is gone"),
    ],
    "19.4": [
        (throttled, "removes a limit"),
        (lambda lab: lab.execute_reassignment(PLAN.replace("/d1", "any")), "name /d1 for broker 1"),
        (
            lambda lab: lab.execute_reassignment(PLAN.replace('"/d1", "any"', '"any", "/d1"')),
            "the order of `replicas`",
        ),
        (lambda lab: lab.reassign({("orders", 0): [1, 3]}), "names brokers only"),
        (lambda lab: lab.fail_log_dir(1), "all of its copies are gone"),
    ],
}
