"""The reassignment tool: its acts in ZooKeeper, its requests to brokers, and its output in each generation's words.

The tools of 0.10 to 2.4 write `/admin/reassign_partitions` and read ZooKeeper; listing and cancelling came with
the API of Kafka 2.4 (KIP-455), and with the tool of 2.6, whose words are used here.
The tool asks a broker to place its copy in a certain log directory (KIP-113).
Kafka 2.0.1: admin/ReassignPartitionsCommand.scala, ReassignPartitionsCommand
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import NamedTuple, Protocol

from kafka_ctl.brokers.replication_quota import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
)
from kafka_ctl.cluster import Replica, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import ApiException, BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.reassign import plan as plans
from kafka_ctl.reassign.plan import COMPLETED, FAILED, IN_PROGRESS, Assignment, Plan, name
from kafka_ctl.requests import (
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    LogDirDescription,
    LogDirsRequest,
    Response,
    api_name,
)
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient, change_config, read_config
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

TIMEOUT, RETRY_BACKOFF = 10.0, 0.1
"""Seconds that the tool gives the brokers to take up a plan (`--timeout`), and between two attempts."""
NOT_YET = "REPLICA_NOT_AVAILABLE"
"""The answer of a broker that has no copy yet; it makes one in the directory that it was asked for."""

Call = Callable[[int, LogDirsRequest], Awaitable[Response]]
"""Sends a request to a broker. Raises ConnectionError if it does not answer."""


class Clock(Protocol):
    """The time by which the tool waits."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class WallClock:
    """The time of the machine."""

    now, sleep = staticmethod(time.monotonic), staticmethod(asyncio.sleep)


class Move(NamedTuple):
    """The progress of a copy to its directory, and the tool's complaint."""

    replica: Replica
    status: str
    problem: str | None


class LogDirs:
    """The tool's way to the brokers; `timeout` is in seconds.

    Kafka 2.0.1: admin/ReassignPartitionsCommand.scala, alterReplicaLogDirsIgnoreReplicaNotAvailable,
    checkIfReplicaReassignmentSucceeded
    """

    def __init__(self, call: Call, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._call, self._clock, self._timeout = call, clock, timeout

    def deadline(self) -> float:
        """The time at which the tool gives up, if it begins now."""
        return self._clock.now() + self._timeout

    async def alter(self, wanted: Mapping[Replica, str], until: float) -> set[Replica]:
        """Ask each broker once to move its copies; which of them lie there or are on their way.

        A copy that is not there yet is not an error. Raises ApiException for any other.
        """
        there: set[Replica] = set()
        for broker, replicas in _by_broker(wanted).items():
            request = AlterReplicaLogDirsRequest({r.topic_partition: wanted[r] for r in replicas})
            response = await self._ask(broker, request, until)
            for replica in replicas:
                error = response.error or response.errors[replica.topic_partition]
                if error is None:
                    there.add(replica)
                elif error != NOT_YET:
                    text = f"Failed to alter dir for {replica_name(replica)} to {wanted[replica]}: {error}"
                    raise ApiException(error, text)
        return there

    async def alter_all(self, wanted: Mapping[Replica, str], until: float) -> bool:
        """Ask again and again until every copy lies in its directory or is on its way; True if in time."""
        waiting = dict(wanted)
        while waiting and self._clock.now() < until:
            for replica in await self.alter(waiting, until):
                del waiting[replica]
            await self._clock.sleep(RETRY_BACKOFF)
        return not waiting

    async def statuses(self, wanted: Mapping[Replica, str]) -> list[Move]:
        """The progress of each copy, by topic, partition and broker."""
        found: dict[Replica, LogDirDescription] = {}
        until = self.deadline()
        for broker, replicas in _by_broker(wanted).items():
            request = DescribeLogDirsRequest(tuple(r.topic_partition for r in replicas))
            log_dirs_described = (await self._ask(broker, request, until)).log_dirs_described
            found |= {r: log_dirs_described.get(r.topic_partition, LogDirDescription(None, None)) for r in replicas}
        return [_judged(replica, found[replica], wanted[replica]) for replica in sorted(wanted)]

    async def _ask(self, broker: int, request: LogDirsRequest, until: float) -> Response:
        """The answer of a broker, also of one that is reached at a later attempt.

        Raises ApiException if the answer is too late.
        """
        while True:
            try:
                async with asyncio.timeout(until - self._clock.now()):
                    return await self._call(broker, request)
            except (ConnectionError, TimeoutError):
                if self._clock.now() >= until:
                    text = f"broker {broker} did not answer {api_name(request)} within {self._timeout:g} s"
                    raise ApiException("REQUEST_TIMED_OUT", text) from None
            await self._clock.sleep(RETRY_BACKOFF)


def replica_name(replica: Replica) -> str:
    """A copy as the tool prints it: topic, partition, broker."""
    return f"{replica.topic}-{replica.partition}-{replica.broker}"


def _by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    found: dict[int, list[Replica]] = {}
    for replica in sorted(replicas):
        found.setdefault(replica.broker, []).append(replica)
    return found


def _judged(replica: Replica, found: LogDirDescription, wanted: str) -> Move:
    tp, (current, future) = replica.topic_partition, found
    where = f"Partition {tp} on broker {replica.broker}"
    if current is None:
        problem = f"Partition {tp} is not found in any live log dir on broker {replica.broker}. "
        return Move(replica, FAILED, problem + "There is likely offline log directory on the broker.")
    if future == wanted:
        return Move(replica, IN_PROGRESS, None)
    if future is not None:
        return Move(replica, FAILED, f"{where} is being moved to log dir {future} instead of {wanted}")
    if current == wanted:
        return Move(replica, COMPLETED, None)
    return Move(replica, FAILED, f"{where} is not being moved from log dir {current} to {wanted}")


RATES = (LEADER_RATE, FOLLOWER_RATE)
"""The settings of a broker while partitions move."""
REPLICAS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""The settings of a topic meanwhile: `partition:broker,...`."""
Cancel = Callable[[Mapping[TopicPartition, None]], Awaitable[Mapping[TopicPartition, object]]]
"""Asks a controller to cancel, and brings its refusals."""
Moving = Callable[[], Awaitable[Mapping[TopicPartition, ReplicaAssignment]]]
"""Asks a controller what is moving."""


class Outcome(NamedTuple):
    """The output of the tool, and True if all is done that was asked."""

    text: str
    done: bool


class Tool:
    """The tool of one generation with a session of ZooKeeper.

    `cancel` and `moving` reach the controller's API; without them, the topics' znodes show what is moving, and a
    request in ZooKeeper for the original replicas has to do. `log_dirs` reaches the brokers; without it, no plan may
    name log directories.
    """

    def __init__(
        self,
        zk: KafkaZkClient,
        generation: Generation,
        cancel: Cancel | None = None,
        moving: Moving | None = None,
        log_dirs: LogDirs | None = None,
    ) -> None:
        self.zk, self.generation, self.ask_to_cancel, self.ask_what_moves = zk, generation, cancel, moving
        self.log_dirs = log_dirs

    async def assignment(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of every partition of these topics, those on their way included."""
        found = await self.zk.assignments(dict.fromkeys(topics))
        return {TopicPartition(t, n): a.replicas for t, numbers in found.items() for n, a in numbers.items()}

    async def generate(
        self, topics_file: str, brokers: Iterable[int], rack_aware: bool = True, rng: Random | None = None
    ) -> tuple[Assignment, Assignment]:
        """A proposal for the topics in a file on these brokers, and their present assignment.

        Brokers that are not registered are passed over. Raises BadInput in the tool's words.
        """
        wanted = list(brokers)
        if twice := plans.duplicates(wanted):
            raise BadInput(f"Broker list contains duplicate entries: {','.join(map(str, twice))}")
        topics = plans.read_topics(topics_file, self.generation)
        registered = await self.zk.brokers(await self.zk.broker_ids())
        racks = {b: registered[b].rack if rack_aware else None for b in wanted if b in registered}
        if any(racks.values()) and None in racks.values():
            raise BadInput(
                "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
                "assignment without rack information."
            )
        current = await self.assignment(topics)
        return plans.propose(current, racks, racks, rng), current

    async def execute(
        self, plan_file: str, throttle: int | None = None, log_dirs_throttle: int | None = None
    ) -> Outcome:
        """Start the reassignment in a plan; while one is running, only its throttles are changed.

        `throttle` (between brokers) and `log_dirs_throttle` (between the log directories of a broker) are in bytes a
        second; a negative one is not a throttle, and does not change those that are set. Raises BadInput in the tool's
        words. Kafka 0.10.2.2, 2.0.1, 2.4.1: admin/ReassignPartitionsCommand.scala, executeAssignment, maybeLimit
        """
        if log_dirs_throttle is not None and not self.generation.log_dirs.moves_between_log_dirs:
            raise BadInput(
                f"Kafka {self.generation.kafka} cannot move copies between log directories, so there is nothing to "
                "throttle; that came with 1.1 (KIP-113)"
            )
        throttle, log_dirs_throttle = (r if r is not None and r >= 0 else None for r in (throttle, log_dirs_throttle))
        plan = await self._checked(plan_file)
        if (await self.zk.read(ReassignPartitionsZNode.path())).error is None:
            output = ["There is an existing assignment running.", *await self._limit(plan, throttle, log_dirs_throttle)]
            return Outcome("\n".join(output), False)
        current = plans.write_plan(await self.assignment(tp.topic for tp in plan.partitions), self.generation)
        output = [
            f"Current partition replica assignment\n\n{current}\n",
            "Save this to use as the --reassignment-json-file option during rollback",
        ]
        if throttle is not None or log_dirs_throttle is not None:
            output.append(
                "Warning: You must run Verify periodically, until the reassignment completes, to ensure the throttle "
                "is removed. You can also alter the throttle by rerunning the Execute command passing a new value."
            )
            output += await self._throttle(plan, throttle, log_dirs_throttle)
        if await self._start(plan):
            return Outcome("\n".join([*output, "Successfully started reassignment of partitions."]), True)
        return Outcome("\n".join([*output, f"Failed to reassign partitions {plans.listed(plan.partitions)}"]), False)

    async def _start(self, plan: Plan) -> bool:
        """Write the request; before that and after it, ask the brokers for the log directories in the plan.

        Before, so that a new copy is made in the right one; after, until every copy is there or on its way.
        """
        if not plan.log_dirs:
            await self._write(plan.partitions)
            return True
        log_dirs = self._needs_brokers()
        until = log_dirs.deadline()
        await log_dirs.alter(plan.log_dirs, until)
        await self._write(plan.partitions)
        return await log_dirs.alter_all(plan.log_dirs, until)

    def _needs_brokers(self) -> LogDirs:
        if self.log_dirs is None:
            raise BadInput(
                "bootstrap-server needs to be provided in order to reassign replica to the specified log directory"
            )
        return self.log_dirs

    async def verify(self, plan_file: str) -> Outcome:
        """The progress of the reassignment in a plan; throttles are removed when all of it is done."""
        plan = plans.read_plan(plan_file, self.generation)
        output, statuses = ["Status of partition reassignment: "], []
        requested = await self.zk.reassignments(self.generation.zookeeper.pipelined) or {}
        current = await self.assignment(tp.topic for tp in plan.partitions)
        for tp, target in sorted(plan.partitions.items()):
            assigned = current.get(tp, ())
            status = IN_PROGRESS if tp in requested else COMPLETED if assigned == target else FAILED
            statuses.append((tp, status))
            if status is FAILED and self.generation.tool.explains_failures:
                there, asked = ",".join(map(str, assigned)), ",".join(map(str, target))
                output.append(
                    f"ERROR: Assigned replicas ({there}) don't match the list of replicas for reassignment ({asked}) "
                    f"for partition {name(tp, self.generation)}"
                )
        moves = await self._needs_brokers().statuses(plan.log_dirs) if plan.log_dirs else []
        output += [move.problem for move in moves if move.problem is not None]
        output += [f"Reassignment of partition {name(tp, self.generation)} {status}" for tp, status in statuses]
        output += [f"Reassignment of replica {replica_name(move.replica)} {move.status}" for move in moves]
        done_all = all(status is COMPLETED for _, status in statuses) and all(m.status is COMPLETED for m in moves)
        if done_all and await self._remove_throttles(tp.topic for tp in plan.partitions):
            output.append("Throttle was removed.")
        return Outcome("\n".join(output), done_all)

    async def running(self) -> Outcome:
        """The reassignments that are under way."""
        self._needs_kip455("list")
        moving = await self.moving()
        if not moving:
            return Outcome("No partition reassignments found.", True)
        lines = ["Current partition reassignments:"]
        for tp, (replicas, adding, removing) in sorted(moving.items()):
            parts = [("replicas", replicas), ("adding", adding), ("removing", removing)]
            lines.append(f"{tp}: " + " ".join(f"{word}: {','.join(map(str, ids))}." for word, ids in parts if ids))
        return Outcome("\n".join(lines), False)

    async def cancel(self, plan_file: str, preserve_throttles: bool = False) -> Outcome:
        """Cancel the moves of a plan that are under way: the partitions go back to their original replicas."""
        self._needs_kip455("cancel")
        plan = plans.read_plan(plan_file, self.generation)
        moving = {tp: a for tp, a in sorted((await self.moving()).items()) if tp in plan.partitions}
        plural = "s" if len(moving) != 1 else ""
        output = "None of the specified partition reassignments are active."
        if moving:
            refused = await self._cancel(moving)
            if refused:
                lines = "\n".join(f"{tp}: {error}" for tp, error in refused.items())
                raise BadInput(f"Error cancelling partition reassignment{'s' * (len(refused) != 1)} for:\n{lines}")
            output = f"Successfully cancelled partition reassignment{plural} for: {','.join(map(str, moving))}"
        if not preserve_throttles:
            await self._remove_throttles(tp.topic for tp in plan.partitions)
        return Outcome(f"{output}\nNone of the specified partition moves are active.", bool(moving))

    async def moving(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions that a KIP-455 reassignment is moving."""
        if self.ask_what_moves is not None:
            return dict(await self.ask_what_moves())
        topics = await self.zk.assignments(await self.zk.read_children("/brokers/topics"))
        return {
            TopicPartition(topic, number): assignment
            for topic, numbers in sorted(topics.items())
            for number, assignment in numbers.items()
            if assignment.is_being_reassigned
        }

    # The needs of the commands

    def _needs_kip455(self, what: str) -> None:
        if not self.generation.reassignment.incremental_reassignment:
            raise BadInput(f"Kafka {self.generation.kafka} cannot {what} reassignments; that came with 2.4 (KIP-455)")

    async def _checked(self, plan_file: str) -> Plan:
        plan = plans.read_plan(plan_file, self.generation, check=True)
        plans.check_exists(plan.partitions, await self.assignment(tp.topic for tp in plan.partitions), self.generation)
        if self.generation.tool.refuses_unknown_brokers:
            known = await self.zk.broker_ids()
            unknown = dict.fromkeys(b for replicas in plan.partitions.values() for b in replicas if b not in known)
            if unknown:
                listed = ",".join(map(str, unknown))
                raise BadInput(f"The proposed assignment contains non-existent brokerIDs: {listed}")
        return plan

    async def _write(self, targets: Assignment) -> None:
        request = ReassignPartitionsZNode.encode(plans.as_written(targets, self.generation))
        answer = await self.zk.create(ReassignPartitionsZNode.path(), request)
        if answer.error == "NODEEXISTS":
            running = ", ".join(
                f"{name(tp, self.generation)} -> List({', '.join(map(str, replicas))})"
                for tp, replicas in (await self.zk.reassignments(self.generation.zookeeper.pipelined) or {}).items()
            )
            raise BadInput(f"Partition reassignment currently in progress for Map({running}). Aborting operation")
        answer.checked()

    async def _cancel(self, moving: Mapping[TopicPartition, ReplicaAssignment]) -> Mapping[TopicPartition, object]:
        """Ask the controller, or request for the original replicas; the refusals."""
        if self.ask_to_cancel is not None:
            return await self.ask_to_cancel(dict.fromkeys(moving))
        await self._write({tp: assignment.origin for tp, assignment in moving.items()})
        return {}

    # Throttles

    async def _throttle(self, plan: Plan, rate: int | None, log_dirs_rate: int | None) -> list[str]:
        """Throttle the brokers and what moves; 0.10 did the brokers first.

        Kafka 2.0.1, 0.10.2.2: admin/ReassignPartitionsCommand.scala, maybeThrottle
        """
        topics = dict.fromkeys(tp.topic for tp in plan.partitions)
        existing = await self.assignment(topics)
        output = [] if self.generation.tool.limits_brokers_last else await self._limit(plan, rate)
        for topic in topics if rate is not None else ():
            values = plans.throttled(topic, existing, plan.partitions)
            await change_config(self.zk, "topics", topic, dict(zip(REPLICAS, values, strict=True)))
        if self.generation.tool.limits_brokers_last:
            await self._limit(plan, rate, log_dirs_rate)
            between = "inter-broker throttle" if self.generation.log_dirs.moves_between_log_dirs else "throttle"
            rates = ((between, rate), ("replica-alter-dir throttle", log_dirs_rate))
            output = [f"The {what} limit was set to {to} B/s" for what, to in rates if to is not None]
        return output

    async def _limit(self, plan: Plan, rate: int | None, log_dirs_rate: int | None = None) -> list[str]:
        """Set the rates of every broker that has, or is to have, a replica."""
        rates = {key: str(rate) for key in RATES if rate is not None}
        rates |= {LOG_DIRS_RATE: str(log_dirs_rate)} if log_dirs_rate is not None else {}
        if not rates:
            return []
        existing = await self.assignment(tp.topic for tp in plan.partitions)
        for broker in dict.fromkeys(b for a in (existing, plan.partitions) for ids in a.values() for b in ids):
            await change_config(self.zk, "brokers", str(broker), rates)
        return [] if self.generation.tool.limits_brokers_last else [f"The throttle limit was set to {rate} B/s"]

    async def _remove_throttles(self, topics: Iterable[str]) -> bool:
        """Remove the rates of all brokers and the throttled replicas of these topics; True if there were any."""
        changed = False
        entities: list[tuple[str, str, tuple[str, ...]]]
        entities = [("brokers", str(b), (*RATES, LOG_DIRS_RATE)) for b in await self.zk.broker_ids()]
        entities += [("topics", topic, REPLICAS) for topic in dict.fromkeys(topics)]
        for kind, entity, keys in entities:
            if set(keys) & (await read_config(self.zk, kind, entity)).keys():
                await change_config(self.zk, kind, entity, dict.fromkeys(keys))
                changed = True
        return changed
