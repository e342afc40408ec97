"""An operator who solves incidents from what a learner can see: the page, tables and logs."""

from __future__ import annotations

import re
from datetime import datetime
from random import Random

from kafka_ctl.incidents.incident import Incident, on_call
from kafka_ctl.incidents.kinds import TABLES

KINDS = {f"{kind.symptom} {kind.cause}": kind for kind in TABLES.kinds}
RECENT = 120.0
"""Seconds before the page that an operator looks at first."""


def opened(name: str, logs_only: bool = False) -> Incident:
    """The incident of the first seed that has this kind."""
    seed = next(seed for seed in range(10_000) if Random(seed).choice(TABLES.kinds) is KINDS[name])
    return on_call(seed, logs_only=logs_only)


class Operator:
    """One incident, and what was found out about it."""

    def __init__(self, incident: Incident) -> None:
        self.incident, self.lab = incident, incident.lab
        head = incident.page.splitlines()[0]
        named, broker = re.search(r"(\w+)-(\d+)", head), re.search(r"[Bb]roker (\d+)", head)
        self.at, self.head = head.split()[0], head
        self.tp = (named[1], int(named[2])) if named else None
        self.broker = int(broker[1]) if broker else None
        self.znodes = self.lab.znodes()
        self.registered = {int(path.split("/")[3]) for path in self.znodes if path.startswith("/brokers/ids/")}
        self.processes = {id: broker.state for id, broker in self.lab.brokers.items()}
        self.partitions = self.lab.partitions()
        self.failed = {(d.topic, d.broker) for d in self.lab.log_dirs() if not d.path}

    @property
    def partition(self):
        return next(p for p in self.partitions if (p.topic, p.partition) == self.tp)

    def config(self, kind: str, name: object) -> str:
        return self.znodes.get(f"/config/{kind}/{name}", (b"",))[0].decode()

    def recent(self, pattern: str, broker: int | None = None, log: str = "server") -> list[tuple[float, str]]:
        """Lines shortly before the page, with their seconds before it."""
        page, found = datetime.strptime(self.at, "%H:%M:%S"), []
        for line in self.incident.logs(log, broker, pattern).splitlines():
            moment = datetime.strptime(line[12:24], "%H:%M:%S,%f")
            before = (page - moment).total_seconds()
            if before < RECENT:
                found.append((before, line))
        return found

    def owner(self, line: str) -> int:
        return int(re.search(r"broker (\d+):", line)[1])

    def silent(self, broker: int) -> str:
        """The reason why a process that runs is not registered."""
        return "cut-from-zookeeper" if self.recent("session timed out", broker) else "long-pause"

    def diagnose(self) -> tuple[str, object]:
        for words, method in WORDS.items():
            if words in self.head:
                return method(self)
        raise AssertionError(f"an operator does not know what to do: {self.head}")

    def offline(self):
        (alone,) = self.partition.isr
        if self.processes[alone] == "down":
            return "broker-down", alone
        return ("log-dir-failed" if alone in self.registered else self.silent(alone)), alone

    def refused(self):
        p = self.partition
        out = set(p.replicas) - set(p.isr)
        if not out:
            return "min-isr", p.topic
        (follower,) = out
        if self.processes[follower] == "down":
            return "broker-down", follower
        if (p.topic, follower) in self.failed:
            return "log-dir-failed", follower
        if "throttled.rate" in self.config("brokers", follower):
            return "throttle", follower
        leaders = {q.leader for q in self.partitions if follower in set(q.replicas) - set(q.isr)}
        return ("slow-follower" if len(leaders) > 1 else "cut-connection"), follower

    def moving(self):
        p = self.partition
        if self.processes[self.broker] == "down":
            return "broker-down", self.broker
        if "throttled" in self.config("topics", p.topic):
            return "throttle", p.topic
        return "cut-connection", self.broker

    def deleting(self):
        topic = re.search(r"Topic (\w+)", self.head)[1]
        holders = {broker for p in self.partitions if p.topic == topic for broker in p.replicas}
        if down := [broker for broker in holders if self.processes[broker] == "down"]:
            return "broker-down", down[0]
        if failed := [broker for name, broker in self.failed if name == topic]:
            return "log-dir-failed", failed[0]
        return "cut-connection", self.lab.controller.id

    def lost(self):
        topic, number = self.tp
        if "unclean" in self.config("topics", topic):
            return "unclean-election", topic
        if self.recent(f"of {topic}-{number}, acks=1", log="client"):
            return "acks-1", topic
        return "empty-disk", self.owner(self.recent("starting")[-1][1])

    def stale(self):
        restarted = self.recent("starting", self.broker)
        return ("quick-restart", self.broker) if restarted else ("cut-connection", self.broker)

    def controllers(self):
        acting = [
            id
            for id, state in self.processes.items()
            if state == "running" and self.lab.metrics(id)["ActiveControllerCount"] == 1
        ]
        named = self.znodes["/controller"][0].decode()
        if not acting:
            return "controller-written", "zookeeper"
        return "cut-from-zookeeper", next(id for id in acting if f'"brokerid":{id},' not in named)

    def idle(self):
        preferred = any(p.replicas[0] == self.broker for p in self.partitions)
        return ("rebalance-off" if preferred else "preferred-order"), self.broker

    def leaderless(self):
        if stopped := self.recent("SIGTERM"):
            return "killed-in-shutdown", self.owner(stopped[-1][1])
        if started := self.recent("starting"):
            return "broker-down", self.owner(started[-1][1])
        return "long-pause", self.owner(self.recent("has expired")[-1][1])

    def moved(self):
        if started := self.recent("starting"):
            return "broker-down", self.owner(started[-1][1])
        if not (timeouts := self.recent("session timed out")):
            return "controller-deleted", "zookeeper"
        noticed = self.recent("Broker failure callback", log="controller") or self.recent(
            "onBrokerFailure", log="controller"
        )
        elected = self.recent("successfully elected", log="controller")
        before, line = timeouts[0]
        late = min(before for before, _ in [*noticed, *elected])
        return ("cut-from-zookeeper" if before > late else "long-pause"), self.owner(line)

    def absent(self):
        broker = self.broker
        if self.processes[broker] == "running":
            return self.silent(broker), broker
        refused = self.recent("doesn't match stored", broker)
        return ("wrong-identity" if refused else "broker-down"), broker


WORDS = {
    "has no leader:": Operator.offline,
    "NOT_ENOUGH_REPLICAS": Operator.refused,
    "The move of": Operator.moving,
    "was deleted": Operator.deleting,
    "are gone": Operator.lost,
    "Clients that ask": Operator.stale,
    "ActiveControllerCount": Operator.controllers,
    "leads no partition": Operator.idle,
    "had no leader": Operator.leaderless,
    "controller moved": Operator.moved,
    "is missing": Operator.absent,
}


def repair(incident: Incident, cause: str, component: object) -> None:
    """Bring the cluster back with the commands of an operator."""
    lab, operator = incident.lab, Operator(incident)
    topic = operator.tp[0] if operator.tp else ""
    match cause:
        case "broker-down":
            lab.start(component)
        case "log-dir-failed" | "quick-restart":
            lab.kill(component)
            lab.run_for(10)
            lab.start(component)
        case "min-isr":
            lab.alter_config("topics", topic, {"min.insync.replicas": None})
        case "throttle":
            set_keys = re.findall(r'"([a-z.]+throttled.replicas)"', operator.config("topics", topic))
            lab.alter_config("topics", topic, dict.fromkeys(set_keys))
        case "wrong-identity":
            lab.set_broker_id(component, component)
            lab.start(component)
        case "controller-written":
            lab.delete_controller()
        case "rebalance-off":
            lab.elect_preferred()
        case "preferred-order":
            held = [p for p in operator.partitions if component in p.replicas][:3]
            first = {(p.topic, p.partition): [component, *(id for id in p.replicas if id != component)] for p in held}
            lab.reassign(first)
            lab.run_for(30)
            lab.elect_preferred()
        case _:
            lab.heal()
    lab.run_for(90)
