"""On call."""

from __future__ import annotations

from functools import partial
from typing import Any

from exercise_answers import Later
from kafka_ctl import on_call
from kafka_ctl.incidents.incident import Incident
from tests.on_call import Operator, repair


def night(incident: Incident) -> tuple[str, object]:
    cause, component = Operator(incident).diagnose()
    if not incident.logs_only:
        repair(incident, cause, component)
    return cause, component


def answered(seed: int, cause: str = "", component: object = None, logs_only: bool = True) -> Later:
    return Later(partial(_answered, seed, cause, component, logs_only))


def _answered(seed: int, cause: str, component: object, logs_only: bool) -> Incident:
    incident = on_call(seed, logs_only=logs_only)
    found = Operator(incident).diagnose()
    incident.answer(cause or found[0], found[1] if component is None else component)
    return incident


RIGHT: dict[str, list[Any]] = {
    "27.1": [
        night,
        lambda incident: (incident.lab.heal(), incident.lab.run_for(60), ["cut-from-zookeeper", "104"])[-1],
        lambda incident: (incident.lab.heal(), incident.lab.run_for(60), (" Cut from ZooKeeper", "104"))[-1],
    ],
    "27.2": [
        night,
        lambda incident: ("cut-connection", 105),
        lambda incident: ("cut_connection", 105),
        lambda incident: ("Cut-Connection", "broker 102"),
        lambda incident: ("cut-connection", "broker-105"),
    ],
    "27.3": [answered(7), answered(3)],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "27.1": [
        (lambda incident: ("long-pause", 104), "It is another cause"),
        (lambda incident: ("cut-from-zookeeper", 101), "the component is not"),
        (lambda incident: ("cut-from-zookeeper", 104), "the symptom is still there"),
        (lambda incident: (incident.lab.heal(), ("cut-from-zookeeper", 104))[1], "and let time pass"),
        (lambda incident: ("gremlins", 104), "cannot be scored"),
        (lambda incident: "cut-from-zookeeper", "is not a cause and a component"),
        (lambda incident: ("cut-from-zookeeper", 3.0), "unknown component '3.0'"),
        (lambda incident: (None, 3), "unknown cause 'None'"),
        (lambda incident: (incident.answer("broker-down", 104), ("broker-down", 104))[1], "return the cause"),
        (lambda incident: incident.lab.disconnect(101, 102), "closed while the incident is open"),
    ],
    "27.2": [
        (lambda incident: ("slow-follower", 102), "You say slow-follower, 102. It is another cause"),
        (lambda incident: ("throttle", 102), "You say throttle, 102. It is another cause"),
        (lambda incident: ("cut-connection", 101), "You say cut-connection, 101. The cause is right"),
        (lambda incident: ("cut-connection", "users"), "You say cut-connection, users. The cause is right"),
        (lambda incident: (incident.lab.heal(), ("cut-connection", 102))[1], "logs and tables only"),
        (lambda incident: ("cut-connection", (102, 105)), "(102, 105) is not one component; of a connection"),
        (lambda incident: ("cut-connection", incident.lab), "unknown component 'an object of the type Console'"),
    ],
    "27.3": [
        (Later(partial(on_call, 7)), "has no answer yet"),
        (answered(7, "acks-1"), "It is another cause"),
        (answered(10, logs_only=False), "the symptom is still there"),
        (answered(3, component=105), "the component is not"),
        (answered(30, logs_only=False), "That is an incident of this lesson"),
        (answered(14), "open `on_call('today')`"),
        ("today", "is not an incident"),
        ([on_call(7)], "an object of the type list is not an incident"),
    ],
}
