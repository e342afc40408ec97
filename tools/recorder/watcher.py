"""The lines that a real cluster has written since the last look, and a test for quiet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.kafka_log.read import LogLine, parse_lines
from kafka_ctl.zookeeper.znodes import ControllerZNode, ReassignPartitionsZNode, TopicPartitionStateZNode, TopicZNode
from tools.recorder.cluster import FETCH_WAIT, LIMIT, Cluster, wait

STILL = 2.0
"""Seconds without a new line in any log that count as quiet."""

STUCK = 30.0
"""Seconds after which what has not moved stays as it is: longer than each of Kafka's timers that a story meets."""

ANNOUNCED = 8.0
"""Seconds after which a leader has notified the controller of a changed ISR: it looks every 2.5 s, and waits 5 s."""

CONTROL = {
    "4": "LeaderAndIsr",
    "5": "StopReplica",
    "6": "UpdateMetadata",
    "LEADER_AND_ISR": "LeaderAndIsr",
    "STOP_REPLICA": "StopReplica",
    "UPDATE_METADATA": "UpdateMetadata",
}
"""The controller's requests, as Kafka 0.10 and later ones name them in a request header."""

SENDER = "kafka.controller.RequestSendThread"

ADDED = re.compile(r"([\w.-]+-\d+), initOffset -?\d+ to broker BrokerEndPoint\((?:id=)?(\d+)")
ADDED_24 = re.compile(r"Added fetcher to broker BrokerEndPoint\(id=(\d+),.*? for partitions \w+\((.*)\)")
REMOVED = re.compile(r"Removed fetcher for partitions (.*) \(kafka")
PARTITION = re.compile(r"([\w.-]+)-(\d+)")

COMPLETED = re.compile(r"Completed request:(?:RequestHeader\(apiKey=(\w+)|\{api_key=(\d+))")


class Watcher:
    """Reads the logs of a cluster piece by piece."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._read: dict[tuple[Path, str], int] = {}
        self.announced: dict[tuple[str, int], tuple[int, tuple[int, ...]]] = {}
        """The leader and ISR of each partition in the controllers' last requests."""
        self.isr_changed = self._isr_changed_before = -ANNOUNCED
        self._seen: list[LogLine] = []
        self.following: dict[int, dict[tuple[str, int], int]] = {}
        """By broker and partition, whom it fetches from."""
        self.held: Callable[[], object] = lambda: None
        """Further values that must not change any more before all is quiet."""

    def lines(self) -> list[LogLine]:
        """The controllers' lines since the last call, each controller's in order, controllers by their first line."""
        self.look()
        lines, self._seen = self._seen, []
        by_controller: dict[str | None, list[LogLine]] = {}
        for line in lines:
            by_controller.setdefault(line.actor, []).append(line)
        runs = sorted(by_controller.values(), key=lambda run: run[0].time)
        return [line for run in runs for line in run]

    def answered(self) -> dict[int, list[str]]:
        """By broker, the controller's requests it has answered since the last call."""
        found = {}
        for id in self.cluster.brokers:
            names = []
            for text in self._new_text(id, "wire.log"):
                header = COMPLETED.match(text)
                if header and (name := CONTROL.get(header[1] or header[2])):
                    names.append(name)
            found[id] = names
        return found

    def _new_text(self, id: int, name: str) -> list[str]:
        """The complete lines a log has got since the last call."""
        folder = self.cluster.brokers[id].folder
        if not (folder / name).exists():
            return []
        with (folder / name).open("rb") as file:
            file.seek(self._read.get((folder, name), 0))
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read[folder, name] = self._read.get((folder, name), 0) + len(new)
        return new.decode("utf-8", "replace").splitlines()

    def look(self) -> bool:
        """Take in what is new; whether anything was."""
        news = False
        for id in self.cluster.brokers:
            for line in parse_lines(self._new_text(id, "control.log")):
                news |= not (self.cluster.apart and line.logger == SENDER)  # in vain, again and again, while cut off
                if line.kind == "broker" or line.actor not in (None, f"controller-{id}"):
                    continue
                self._seen.append(line._replace(actor=f"controller-{id}"))
                if line.leader is not None and line.kind == "request":
                    self.announced[line.topic or "", line.partition or 0] = (line.leader, line.isr or ())
            for text in self._new_text(id, "server.log"):
                if "skip updating ISR" in text:  # in vain: the leader will try again and again
                    self.isr_changed = self._isr_changed_before
                elif "ing ISR" in text:
                    self._isr_changed_before, self.isr_changed = self.isr_changed, time.monotonic()
                self._fetchers(id, text)
        return news

    def _fetchers(self, id: int, text: str) -> None:
        """Follow in a broker's log whom it fetches from."""
        following = self.following.setdefault(id, {})
        if text.endswith("INFO starting (kafka.server.KafkaServer)"):
            following.clear()
        elif removed := REMOVED.search(text):
            for topic, number in PARTITION.findall(removed[1]):
                following.pop((topic, int(number)), None)
        elif "Added fetcher" in text:
            added = ADDED.findall(text)
            if several := ADDED_24.search(text):
                added = [(word, several[1]) for word in re.findall(r"([\w.-]+-\d+) ->", several[2])]
            for word, leader in added:
                topic, _, number = word.rpartition("-")
                following[topic, int(number)] = int(leader)

    # Quiet

    def settle(self, lagging: tuple[int, ...] = ()) -> None:
        """Return when nothing is under way any more: no new lines, and ZooKeeper as it must become.

        A state that is not so, and has not changed for longer than any of Kafka's timers, stays as it is.
        """
        last = moved = time.monotonic()
        problem, held = "", self.held()

        def quiet() -> bool:
            nonlocal last, moved, problem, held
            before, held = held, self.held()
            is_new, is_due = self.look() or held != before, self.cluster.resume_due()
            if is_new or is_due:
                last = moved = time.monotonic()
            now = time.monotonic()
            still = STILL + FETCH_WAIT / 1000 if self.cluster.cut_off else STILL  # who is cut off may go on fetching
            if now - last < still or now - self.isr_changed < ANNOUNCED or self.cluster.pauses:
                return False
            if not self.cluster.zookeeper_up:
                return now - last > ANNOUNCED
            before_problem, problem = problem, self.problem(set(self.cluster.up) - set(lagging))
            if problem != before_problem:
                moved = now
            if problem and now - moved > STUCK:
                print(f"  stays: {problem}", flush=True)
                return True
            return not problem

        try:
            wait(quiet, "quiet", LIMIT + STUCK)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {problem}") from None

    def problem(self, up: set[int]) -> str:
        """The differences from the expected state; empty when there are none."""
        cluster = self.cluster
        for broker in cluster.brokers.values():
            if broker.died:
                raise RuntimeError(f"broker {broker.id} has died: {broker.log('server.log')[-2000:]}")
        tree = cluster.tree()
        running = {id for id, broker in cluster.brokers.items() if broker.running}
        if (there := cluster.registered()) != sorted(running - cluster.cut_off):
            return f"/brokers/ids has {there}"
        controller = tree.get("/controller")
        if controller is None or ControllerZNode.decode(controller[0]) not in up:
            return f"/controller has {controller}"
        if any(path.startswith("/isr_change_notification/") for path in tree):
            return "an ISR change is being announced"
        if "/admin/preferred_replica_election" in tree:
            return "a preferred election is under way"
        return self._unfinished_deletion(tree, up) or self._unfinished_move(tree, up) or self._unsettled(tree, up)

    def _assignments(self, tree: Mapping[str, tuple[bytes, int]]) -> dict[tuple[str, int], Any]:
        found: dict[tuple[str, int], Any] = {}
        for path, (data, _) in tree.items():
            topic = path.removeprefix("/brokers/topics/")
            if path != topic and "/" not in topic and f"/admin/delete_topics/{topic}" not in tree:
                found |= {(topic, p): a for p, a in _assignment(data, topic).items()}
        return found

    def _unfinished_deletion(self, tree: Mapping[str, tuple[bytes, int]], up: set[int]) -> str:
        for path in tree:
            topic = path.removeprefix("/admin/delete_topics/")
            if path != topic:
                data = tree.get(f"/brokers/topics/{topic}")
                replicas = _assignment(data[0], topic).values() if data else []
                if all(r in up for a in replicas for r in a.replicas):
                    return f"{topic} is being deleted"
        return ""

    def _unfinished_move(self, tree: Mapping[str, tuple[bytes, int]], up: set[int]) -> str:
        moves = tree.get("/admin/reassign_partitions")
        for tp, target in _moves(moves[0]).items() if moves else ():
            if set(target) <= up and f"/brokers/topics/{tp.topic}" in tree:
                return f"{tp} is being moved to {target}"
        for moving, a in self._assignments(tree).items():
            if a.is_being_reassigned and set(a.target) <= up:
                return f"{moving} is being moved to {a.target}"
        return ""

    def _unsettled(self, tree: Mapping[str, tuple[bytes, int]], up: set[int]) -> str:
        for tp, assignment in self._assignments(tree).items():
            stored = tree.get(TopicPartitionStateZNode.path(tp))
            if stored is None:
                if set(assignment.replicas) & up:
                    return f"{tp} has no state yet"
                continue
            state = TopicPartitionStateZNode.decode(*stored, tp)
            if state.leader >= 0 and state.leader not in up and not set(state.isr) & up:
                continue  # a dead leader is kept where nobody in sync is alive
            reported = self.announced.get(tp)
            if reported != (state.leader, state.isr):
                return f"{tp} is {state}, but the controller sent {reported}"
            wanted, free = set(assignment.replicas) & up - self.cluster.failed(*tp), self.cluster.cut_off
            wanted -= {follower for leader, follower in self.cluster.apart if leader == state.leader}
            if state.leader >= 0 and (state.leader not in up - free or set(state.isr) - free != wanted - free):
                return f"{tp} is {state}; its ISR should become {sorted(wanted)}"
        return ""


def _assignment(data: bytes, topic: str) -> Mapping[int, Any]:
    """The assignment of a topic; without any JSON none, as Kafka reads it."""
    with suppress(BadInput):
        return TopicZNode.decode(data, topic)
    return {}


def _moves(data: bytes) -> Mapping[TopicPartition, tuple[int, ...]]:
    """The moves that are asked for; without any JSON none."""
    with suppress(BadInput):
        return ReassignPartitionsZNode.decode(data)
    return {}
