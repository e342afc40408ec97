"""The lab's commands on a real cluster: what is done to processes, to ZooKeeper and with Kafka's own tools."""

from __future__ import annotations

import inspect
import json
import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.description import Description, creations
from kafka_ctl.lab.description import roles as roles_of
from kafka_ctl.lab.story import Command
from kafka_ctl.lab.validate import parse_config
from kafka_ctl.zookeeper.znodes import PERSISTENT_PATHS
from tests.conformance import normal
from tools.recorder import wire
from tools.recorder.cluster import ZOOKEEPER, Cluster, DidNotStart, wait

OPENING = ("brokers", "generation", "seed", "config", "description")
"""The options of the first line of a story."""


class OtherOrder(Exception):
    """A race ended otherwise than the story expects; the recording is worthless."""


class Unplayable(Exception):
    """The recorder cannot play this on real Kafka."""


def check(opening: Command, commands: Iterable[Command]) -> None:
    """Unplayable, naming the command, for what would be played otherwise than asked, or not at all."""
    for name in opening.kwargs:
        if name not in OPENING:
            raise Unplayable(f"{opening}: the recorder cannot play {name}=; the first line may have {_listed(OPENING)}")
    for command in commands:
        if command.name not in COMMANDS:
            raise Unplayable(f"{command}: the recorder cannot play {command.name}; it plays {_listed(COMMANDS)}")
        try:
            for known in (getattr(Lab, command.name), COMMANDS[command.name]):
                inspect.signature(known).bind(None, *command.args, **command.kwargs)
        except TypeError as error:
            raise Unplayable(f"{command}: the recorder cannot play this {command.name}: {error}") from None
        if command.name == "at_once":
            check(opening, inside := list(stories_language.parse("\n".join(command.args[0]))))
            for each in inside:
                if each.name not in AT_ONCE:
                    raise Unplayable(f"{command}: at once the recorder plays {_listed(AT_ONCE)}, not {each.name}")
        if command.name == "create_topic" and "assignment" not in command.kwargs and len(command.args) < 4:
            raise Unplayable(f"{command}: Kafka draws where an assignment begins; the recorder needs an assignment")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


class Player:
    """Carries out commands; knows who runs, who lags and who has left meanwhile."""

    def __init__(self, cluster: Cluster, generation: str) -> None:
        self.cluster, self.generation = cluster, generation
        self.lagging: tuple[int, ...] = ()
        self.leaving = False
        """True if the present command is a controlled shutdown."""
        self.disturbed: set[int] = set()
        """Brokers that the present command lets stand still or cuts off: what they answer is a matter of luck."""
        self.order: list[int] = []
        """The running brokers, longest first."""
        self.tree: dict[str, tuple[bytes, int]] = {}
        self.reported: list[str] = []
        """The result of the present command itself: a tool's or a producer's answer."""
        self.produced: dict[tuple[str, int], int] = {}
        """By partition, the last value sent."""
        self._leaders: dict[tuple[str, int], int] = {}
        self.zookeeper = ("--zookeeper", cluster.zookeeper.address)

    def open_described(self, description: Description, winner: int) -> None:
        """Fill ZooKeeper and start who is alive; nobody can be controller before all of them have started.

        Then all compete at the same moment. `winner` is the one whom the kit's seed draws.
        """
        generation = Generation(self.generation)
        roles = roles_of(description, generation, parse_config(generation, self.cluster.config))
        if roles.lagging:
            raise Unplayable(f"the recorder cannot play a description in which broker {min(roles.lagging)} lags")
        for create in creations(description, generation):
            if create.path in PERSISTENT_PATHS:
                continue  # the brokers make them, with no data at all, which is something else than an empty text
            self.cluster.zk.create(create.path, create.data, makepath=True)
        nobody = json.dumps({"version": 1, "brokerid": 0, "timestamp": "0"}).encode()
        self.cluster.zk.create("/controller", nobody, ephemeral=True)
        for id in list(self.cluster.brokers):
            if id not in roles.down:
                self.start(id)
        self.order.sort(key=lambda id: id != winner)
        self.delete_controller()

    # Processes

    def start(self, broker: int) -> None:
        try:
            self.cluster.start(broker)
        except DidNotStart as error:
            if not error.why:
                raise
            self.reported.append(f"broker {broker} stopped: {error.why}")
            return
        self.order.append(broker if broker >= 0 else self.cluster.rename(broker))

    def kill(self, broker: int, waits: bool = True) -> None:
        """Kill -9. While the session of a controller runs out, everybody but its successor stands still."""
        was_controller = normal.controller(self.tree) == broker
        self.order.remove(broker)
        if self.cluster.zookeeper_up and waits:
            self.cluster.kill(broker, self.order[1:] if was_controller else ())
        else:
            self.cluster.brokers[broker].end()

    def shutdown(self, broker: int) -> None:
        """Let no broker that leaves compete where the controller has just been killed."""
        self.order.remove(broker)
        controller = normal.controller(self.cluster.tree())
        if controller is not None and not self.cluster.brokers[controller].running:
            self.cluster.ask_to_leave(broker)
            self.cluster.outlive(controller, [*self.order[1:], broker])
        self.cluster.shutdown(broker)
        self.leaving = True

    def bounce(self, broker: int, seconds: float = 0.0) -> None:
        """The process is killed, its session closed and, so much later, the next process started."""
        was_controller = normal.controller(self.tree) == broker
        self.order.remove(broker)
        self.disturbed.add(broker)
        self.cluster.brokers[broker].end()
        with self.cluster.paused(self.order[1:] if was_controller else ()):
            self.cluster.close_session(broker)
            wait(lambda: self.cluster.read("/controller") is not None, "a controller")
        time.sleep(seconds)
        self.start(broker)

    def pause(self, broker: int, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        ends = seconds > self.cluster.session_seconds
        others = [id for id in self.order if id != broker]
        bystanders = others[1:] if normal.controller(self.tree) == broker and ends else []
        if ends:
            self.order = [*others, broker]
        self.disturbed.add(broker)
        self.cluster.pause_for(broker, seconds, bystanders)

    def expire_session(self, broker: int) -> None:
        """ZooKeeper closes the session, by its id, while its broker stands still for a moment."""
        others = [id for id in self.order if id != broker]
        self.order = [*others, broker]
        self.disturbed.add(broker)
        bystanders = others[1:] if normal.controller(self.tree) == broker else []
        self.cluster.pause(broker)
        with self.cluster.paused(bystanders):
            self.cluster.close_session(broker)
            wait(lambda: self.cluster.read("/controller") is not None, "a controller")
        self.cluster.resume(broker)

    def lag(self, broker: int, topic: str, partition: int) -> None:
        """A follower falls behind when it stands still while messages arrive: the story's own, if it has any."""
        self.cluster.pause(broker)
        self.lagging = (*self.lagging, broker)
        if self.cluster.records:
            return
        self.cluster.tool(
            "kafka.tools.ConsoleProducer", "--broker-list", self.cluster.bootstrap, "--topic", topic, stdin="a\nb\nc\n"
        )

    def catch_up(self, broker: int) -> None:
        self.cluster.resume(broker)
        self.lagging = tuple(b for b in self.lagging if b != broker)

    def fail_log_dir(self, broker: int) -> None:
        """The first directory that works is full or becomes a file; a broker that cannot live on ends by itself."""
        process = self.cluster.brokers[broker]
        process.fail_directory()
        ends = self.generation == "0.10" or process.failed == set(process.directories)
        if ends:
            wait(lambda: process.died, f"broker {broker} to halt")
            process.end()
            self.order.remove(broker)
            self.reported.append(f"broker {broker} stopped: KafkaStorage")
        else:
            wait(lambda: "in dir" in process.log("server.log"), f"broker {broker} to give its directory up")

    def add_broker(self, broker: int | None = None, rack: str | None = None) -> None:
        place = min([0, *self.cluster.brokers]) - 1 if broker is None else broker
        self.cluster.add(place, rack)
        self.start(place)

    def set_broker_id(self, broker: int, broker_id: int | None) -> None:
        properties = self.cluster.brokers[broker].properties
        properties.pop("broker.id", None)
        properties |= {} if broker_id is None else {"broker.id": broker_id}

    def set_meta(self, broker: int, directory: str, broker_id: int | None, cluster: str | None = None) -> None:
        places = {f"/{path.name}": path for path in self.cluster.brokers[broker].directories}
        file = places[directory] / "meta.properties"
        file.unlink(missing_ok=True)
        if broker_id is not None:
            named = f"cluster.id={cluster}\n" if cluster is not None else ""
            file.write_text(f"version=0\nbroker.id={broker_id}\n{named}", encoding="utf-8")

    # The network and ZooKeeper

    def disconnect(self, source: int | str, target: int | str) -> None:
        self.cluster.cut(source, target)
        self.disturbed |= {end for end in (source, target) if isinstance(end, int)}
        for one, other in ((source, target), (target, source)):
            if other == ZOOKEEPER and isinstance(one, int):
                self._cut_from_zookeeper(one)

    def _cut_from_zookeeper(self, id: int) -> None:
        """Its session runs out; of the others, the one that has run longest becomes controller."""
        others = [each for each in self.order if each != id]
        self.order = [*others, id]
        self.cluster.outlive(id, others[1:] if normal.controller(self.tree) == id else ())

    def heal(self) -> None:
        self.cluster.heal()
        for id in list(self.cluster.pauses):
            self.cluster.pauses[id] = time.monotonic()
        if not self.cluster.zookeeper_up:
            self.start_zookeeper()
        for id in self.lagging:
            self.catch_up(id)

    def stop_zookeeper(self) -> None:
        self.cluster.stop_zookeeper()

    def start_zookeeper(self) -> None:
        self.cluster.start_zookeeper()

    def delete_controller(self) -> None:
        """Everybody but the one that has run longest stands still until that is controller."""
        with self.cluster.paused(self.order[1:]):
            before = self.cluster.zk.exists("/controller").czxid
            self.cluster.zk.delete("/controller")

            def elected() -> bool:
                there = self.cluster.zk.exists("/controller")
                return there is not None and there.czxid != before

            wait(elected, "a new controller")

    def write_znode(self, path: str, data: Any) -> None:
        content = (data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))).encode()
        if self.cluster.zk.exists(path):
            self.cluster.zk.set(path, content)
        else:
            self.cluster.zk.create(path, content)

    def delete_znode(self, path: str) -> None:
        self.cluster.zk.delete(path)

    # Tools and clients

    def run_for(self, seconds: float) -> None:
        """Time itself is the story here."""
        time.sleep(seconds)

    def at_once(self, commands: list[str]) -> None:
        """The tools work side by side, while the controller stands still: it learns of everything at the same moment.

        OtherOrder when they finish in another order than that of the story.
        """
        controller, lines = normal.controller(self.tree), list(stories_language.parse("\n".join(commands)))
        done: list[Command] = []

        def work(command: Command) -> None:
            getattr(self, command.name)(*command.args, **command.kwargs)
            done.append(command)

        with (
            self.cluster.paused([controller] if controller is not None else []),
            ThreadPoolExecutor(len(lines)) as tools,
        ):
            for working in [tools.submit(work, line) for line in lines]:
                working.result()
        if done != lines:
            raise OtherOrder(f"the tools finished in the order {', '.join(map(str, done))}")

    def produce(self, topic: str, partition: int, records: int = 1, acks: int | str = "all") -> None:
        """The leader is asked for only when it is not known, or when its process or the last attempt has failed."""
        tp, first = (topic, partition), self.produced.get((topic, partition), 0) + 1
        self.produced[tp] = first + records - 1
        if self._leaders.get(tp, -1) not in self.cluster.up:
            asked = next(id for id in sorted(self.cluster.brokers) if id in self.cluster.up)
            self._leaders[tp] = wire.metadata(self.cluster.port(asked)).partitions.get(tp, (-1, ()))[0]
        leader, values = self._leaders[tp], range(first, first + records)
        offset: int | None = None
        error: str | None = "LEADER_NOT_AVAILABLE"
        if leader >= 0:
            number = -1 if acks == "all" else int(acks)
            offset, error = wire.produce(self.cluster.port(leader), topic, partition, values, number)
        if error:
            self._leaders.pop(tp)
        self.reported.append(normal.outcome(values, leader, offset, error))

    def create_topic(
        self,
        topic: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        assignment: dict[str, list[int]] | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        if assignment is None or partitions is not None or replication_factor is not None:
            raise Unplayable("create_topic needs an assignment, and nothing else that says where partitions go")
        replicas = ",".join(":".join(map(str, assignment[str(p)])) for p in range(len(assignment)))
        settings = [word for k, v in (config or {}).items() for word in ("--config", f"{k}={str(v).lower()}")]
        self._topics("--create", "--topic", topic, "--replica-assignment", replicas, *settings)

    def add_partitions(self, topic: str, total: int) -> None:
        self._topics("--alter", "--topic", topic, "--partitions", str(total))

    def delete_topic(self, topic: str) -> None:
        self._topics("--delete", "--topic", topic)

    def _topics(self, *arguments: str) -> None:
        self.cluster.tool("kafka.admin.TopicCommand", *self.zookeeper, *arguments)

    def reassign(self, targets: dict[str, list[int]], through: str | None = None) -> None:
        """The tool since 1.0 refuses brokers that are down; the controller does not: then we write what it writes."""
        if through == "controller":
            moves = [f"{name}={','.join(map(str, replicas))}" for name, replicas in targets.items()]
            self.cluster.source("AlterReassignment.java", self.cluster.bootstrap, *moves)
            return
        plan = _plan(targets)
        if {broker for replicas in targets.values() for broker in replicas} <= set(self.cluster.up):
            reported = self._mover(plan, "--execute")
            if "Successfully started" not in reported:
                raise RuntimeError(f"reassign {targets}: {reported}")
        else:
            self.cluster.zk.create("/admin/reassign_partitions", json.dumps(plan, separators=(",", ":")).encode())

    def cancel_reassignment(self, partitions: list[str]) -> None:
        """Kafka 2.4's tools cannot; its admin client can."""
        self.cluster.source("AlterReassignment.java", self.cluster.bootstrap, *(f"{name}=" for name in partitions))

    def execute_reassignment(
        self, plan: Any, throttle: int | None = None, replica_alter_log_dirs_throttle: int | None = None
    ) -> None:
        limits = ["--throttle", str(throttle)] if throttle is not None else []
        if replica_alter_log_dirs_throttle is not None:
            limits += ["--replica-alter-log-dirs-throttle", str(replica_alter_log_dirs_throttle)]
        reported = self._mover(self._read_plan(plan), "--execute", *limits)
        self.reported += [f"printed: {line}" for line in reported.splitlines() if "Successfully started" in line]

    def verify_reassignment(self, plan: Any) -> None:
        reported = self._mover(self._read_plan(plan), "--verify")
        self.reported += [f"printed: {line}" for line in reported.splitlines() if line.strip()]

    def _read_plan(self, plan: Any) -> Mapping[str, Any]:
        """A plan as the tool reads it; `/d0` becomes the broker's own directory of that name."""
        read: Mapping[str, Any] = json.loads(plan) if isinstance(plan, str) else _plan(plan)
        for each in read["partitions"]:
            if "log_dirs" in each:
                each["log_dirs"] = [
                    self._directory(*pair) for pair in zip(each["replicas"], each["log_dirs"], strict=True)
                ]
        return read

    def _directory(self, broker: int, name: str) -> str:
        places = {f"/{path.name}": str(path) for path in self.cluster.brokers[broker].directories}
        return places.get(name, name)

    def _mover(self, plan: Mapping[str, Any], *arguments: str) -> str:
        """Run the tool; in what it prints, log directories have the kit's names again."""
        file = self.cluster.write_json("moves", plan)
        ask = ("--bootstrap-server", self.cluster.bootstrap) if "log_dirs" in json.dumps(plan) else ()
        reported = self.cluster.tool(
            "kafka.admin.ReassignPartitionsCommand",
            *self.zookeeper,
            *ask,
            "--reassignment-json-file",
            file,
            *arguments,
        )
        for process in self.cluster.brokers.values():
            for path in process.directories:
                reported = reported.replace(str(path), f"/{path.name}")
        return reported

    def elect_preferred(self, partitions: list[str]) -> None:
        file = self.cluster.write_json("elect", {"partitions": [_partition(name) for name in partitions]})
        self.cluster.tool(
            "kafka.admin.PreferredReplicaLeaderElectionCommand", *self.zookeeper, "--path-to-json-file", file
        )

    def elect_leaders(self, election_type: str, partitions: list[str]) -> None:
        """Kafka 2.4's tool, which ends with an error when one of the elections does."""
        file = self.cluster.write_json("elect", {"partitions": [_partition(name) for name in partitions]})
        printed = self.cluster.tool(
            "kafka.admin.LeaderElectionCommand",
            *("--bootstrap-server", self.cluster.bootstrap),
            *("--election-type", election_type, "--path-to-json-file", file),
            may_fail=True,
        )
        self.reported += normal.elections(read_elections(printed, partitions))


COMMANDS = {
    name: method
    for name, method in vars(Player).items()
    if inspect.isfunction(method) and not name.startswith(("_", "open_"))
}
"""The commands that the recorder plays."""
AT_ONCE = (
    "create_topic",
    "add_partitions",
    "delete_topic",
    "elect_preferred",
    "reassign",
    "write_znode",
    "delete_znode",
)


def read_elections(printed: str, partitions: Iterable[str]) -> dict[str, str]:
    """The output of `LeaderElectionCommand`, by partition: `elected`, or the name of Kafka's error.

    The line about valid replicas says that there are some, and names those that were elected instead (2.4.1).
    """
    failed = r"^Error completing leader election \(\w+\) for partition: (\S+): [\w.]+\.(\w+)Exception"
    answers = dict(re.findall(failed, printed, re.MULTILINE))
    for found in re.findall(
        r"^Successfully completed leader election \(\w+\) for partitions (.*)", printed, re.MULTILINE
    ):
        answers |= dict.fromkeys(found.split(", "), "elected")
    if "Valid replica already elected" in printed:
        answers = dict.fromkeys(partitions, "ElectionNotNeeded") | answers
    if set(answers) != set(partitions):
        raise RuntimeError(f"of elections for {', '.join(partitions)} the tool said: {printed}")
    return answers


def _plan(targets: Mapping[str, list[int]]) -> dict[str, Any]:
    return {"version": 1, "partitions": [_partition(name) | {"replicas": to} for name, to in targets.items()]}


def _partition(name: str) -> dict[str, Any]:
    topic, _, number = name.rpartition("-")
    return {"topic": topic, "partition": int(number)}
