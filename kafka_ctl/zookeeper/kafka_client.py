"""Reads and writes of a controller in ZooKeeper, in Kafka's terms.

Since 2.1 every write of a controller carries a fence: a transaction that first checks that `/controller_epoch` still
has the version this controller left there. One that was deposed without noticing can then change nothing (KAFKA-6082).
Kafka 2.0.1: zk/KafkaZkClient.scala, KafkaZkClient
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from kafka_ctl.cluster import Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, ControllerMoved, NoNode, ZooKeeperError
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.store import Check, Children, Create, Delete, Multi, Result, Set, Write

T = TypeVar("T")
FIRST_EPOCH = 1
FIRST_EPOCH_ZK_VERSION = 1
"""The version that the first controller assumes of the znode it has just created (it is 0: Kafka's quirk)."""
MOVED = "Controller moved to another broker. Aborting controller startup procedure"
WENT_AWAY = (
    "The ephemeral node at /controller went away while checking whether the controller election succeeds. "
    "Aborting controller startup procedure"
)


class Updated(NamedTuple):
    """The outcome of a pipelined update of `state` znodes."""

    done: dict[TopicPartition, LeaderAndIsr]
    """Written, with their new zk_version."""
    retry: list[TopicPartition]
    """Another client wrote meanwhile (BADVERSION)."""
    failed: dict[TopicPartition, Exception]


class KafkaZkClient:
    """A controller's view of its broker's ZooKeeper client.

    `fence` is the version of `/controller_epoch` that every write checks, None for writes without a check.
    """

    def __init__(self, client: ZooKeeperClient) -> None:
        self.client = client
        self.fence: int | None = None
        self.handle_node, self.handle_children = client.handle_node, client.handle_children
        self.forget_node, self.forget_children = client.forget_node, client.forget_children
        self.handle_node_and_check, self.create_ephemeral = client.handle_node_and_check, client.create_ephemeral
        self.read, self.read_children, self.read_all = client.read, client.read_children, client.read_all
        self.controller_id, self.send, self.exists = client.controller_id, client.send, client.exists

    async def write_all(self, ops: Sequence[Write]) -> list[Result]:
        """Write behind the fence; ControllerMoved when another controller has been elected since.

        Raises NoNode where there is no `/controller_epoch` any more.
        Kafka 2.4.1: zk/KafkaZkClient.scala, unwrapResponseWithControllerEpochCheck
        """
        if self.fence is None:
            return await self.client.send(ops)
        check = Check(znodes.ControllerEpochZNode.path(), self.fence)
        answers = await self.client.send([Multi((check, op)) for op in ops])
        return [self._behind_fence(op, answer) for op, answer in zip(ops, answers, strict=True)]

    def _behind_fence(self, op: Write, answer: Result) -> Result:
        parts = answer.value if isinstance(answer.value, tuple) else ()
        if answer.error is None:
            return parts[1]._replace(op=op)
        if parts and parts[0].error == "BADVERSION":
            raise ControllerMoved(
                f"Controller epoch zkVersion check fails. Expected zkVersion = {self.fence}, "
                f"path = {op.path}, error = {parts[0].error}"
            )
        if parts and parts[0].error != "ROLLEDBACK":
            parts[0].checked()
        return Result(op, parts[1].error if len(parts) > 1 else answer.error)

    async def write(self, op: Write) -> Result:
        return (await self.write_all([op]))[0]

    async def controller_epoch(self) -> tuple[int, int] | None:
        """The last controller's epoch and the version of its znode; None if there is none."""
        answer = await self.read(znodes.ControllerEpochZNode.path())
        data = answer.data_if_any
        return None if data is None else (znodes.ControllerEpochZNode.decode(data), answer.found.version)

    async def register_controller(self, broker: int, data: bytes) -> tuple[int, int]:
        """Create `/controller` and raise the epoch in one transaction; the new epoch and its zk_version.

        Raises ControllerMoved when another broker did one of the two first.
        Kafka 2.4.1: zk/KafkaZkClient.scala, registerControllerAndIncrementControllerEpoch
        """
        path, encode = znodes.ControllerEpochZNode.path(), znodes.ControllerEpochZNode.encode
        epoch, version = await self.controller_epoch() or await self._create_controller_epoch()
        create = Create(znodes.ControllerZNode.path(), data, ephemeral=True)
        done = (await self.send([Multi((create, Set(path, encode(epoch + 1), version)))]))[0]
        if done.error in ("NODEEXISTS", "BADVERSION"):
            elected = await self.controller_id()
            if elected == -1:
                raise ControllerMoved(WENT_AWAY)
            if elected == broker and (now := await self._existing_controller_epoch())[0] == epoch + 1:
                return now  # our own transaction was done, and its answer lost
            raise ControllerMoved(MOVED)
        done.checked()
        return epoch + 1, version + 1

    async def _create_controller_epoch(self) -> tuple[int, int]:
        """Create `/controller_epoch` with 0; what it has now if another broker created it first."""
        path = znodes.ControllerEpochZNode.path()
        created = (await self.send([Create(path, znodes.ControllerEpochZNode.encode(0))]))[0]
        if created.error == "NODEEXISTS":
            return await self._existing_controller_epoch()
        created.checked()
        return 0, 0

    async def _existing_controller_epoch(self) -> tuple[int, int]:
        if (found := await self.controller_epoch()) is None:
            path = znodes.ControllerEpochZNode.path()
            raise NoNode(path, f"{path} existed before but goes away while trying to read it")
        return found

    async def raise_controller_epoch(self, epoch: int, zk_version: int) -> tuple[int, int]:
        """Write an epoch on condition of the zk_version; the epoch written and the zk_version to go on with.

        Where there is none yet, the first one is written. Raises BadVersion when another broker has raised it since,
        ControllerMoved when another broker wrote the first one.
        Kafka 2.0.1: controller/KafkaController.scala, incrementControllerEpoch
        """
        path, encode = znodes.ControllerEpochZNode.path(), znodes.ControllerEpochZNode.encode
        answer = await self.write(Set(path, encode(epoch), zk_version))
        if answer.error is None:
            return epoch, answer.found.version
        if answer.error == "NONODE":
            created = await self.write(Create(path, encode(FIRST_EPOCH)))
            if created.error != "NODEEXISTS":
                created.checked()
                return FIRST_EPOCH, FIRST_EPOCH_ZK_VERSION
        if answer.error == "BADVERSION":
            raise answer.exception
        raise ControllerMoved(MOVED)

    async def broker_ids(self) -> list[int]:
        """The ids of the registered brokers, ascending."""
        return znodes.BrokerIdsZNode.ids(await self.read_children(znodes.BrokerIdsZNode.path()))

    async def brokers(self, ids: Sequence[int]) -> dict[int, Broker]:
        """The registrations of these brokers; a broker that has vanished is left out."""
        answers = await self.read_all(znodes.BrokerIdZNode.path(b) for b in ids)
        return {
            broker: znodes.BrokerIdZNode.decode(data, broker, answer.found.czxid)
            for broker, answer in zip(ids, answers, strict=True)
            if (data := answer.data_if_any) is not None
        }

    async def assignments(
        self, topics: Iterable[str], ascending: bool = True
    ) -> dict[str, dict[int, ReplicaAssignment]]:
        """The replica assignment of each topic that exists; what is no JSON assigns nothing.

        Partitions come by their numbers, or else in the order of the znode.
        """
        names = list(topics)
        answers = await self.read_all(znodes.TopicZNode.path(t) for t in names)
        found: dict[str, dict[int, ReplicaAssignment]] = {}
        for topic, answer in zip(names, answers, strict=True):
            if (data := answer.data_if_any) is not None:
                found[topic] = {}
                with suppress(NotJson):
                    found[topic] = znodes.TopicZNode.decode(data, topic, ascending)
        return found

    async def set_assignment(
        self, topic: str, assignment: Mapping[int, ReplicaAssignment], version: int, creates: bool = False
    ) -> Result:
        """Write the replica assignment of a topic; `version` is that of the znode's JSON.

        With `creates` it also makes the znode if it is missing.
        Kafka 2.0.1: zk/KafkaZkClient.scala, setTopicAssignmentRaw; 0.10.2.2: utils/ZkUtils.scala, updatePersistentPath
        """
        path, data = znodes.TopicZNode.path(topic), znodes.TopicZNode.encode(assignment, version)
        return await (self.set_or_create(path, data) if creates else self.write(Set(path, data)))

    async def states(
        self, partitions: Iterable[TopicPartition], needs_json: bool = False
    ) -> dict[TopicPartition, LeaderAndIsr | Exception]:
        """Leader and ISR of each partition as ZooKeeper has them; a NoNode or another error where it has none.

        Data that is not JSON counts as missing, or with `needs_json` as malformed: the error has Scala's words then.
        """
        wanted = list(partitions)
        answers = await self.read_all(map(znodes.TopicPartitionStateZNode.path, wanted))
        found: dict[TopicPartition, LeaderAndIsr | Exception] = {}
        for tp, answer in zip(wanted, answers, strict=True):
            try:
                answer.checked()
                found[tp] = znodes.TopicPartitionStateZNode.decode(answer.data, answer.found.version, tp)
            except NotJson:
                path = answer.op.path
                found[tp] = BadInput(f"None.get, path = {path}") if needs_json else NoNode(path)
            except (ZooKeeperError, BadInput) as error:
                found[tp] = error
        return found

    async def update_states(self, states: Mapping[TopicPartition, LeaderAndIsr], accepts_own: bool = False) -> Updated:
        """Write each state on condition of the zk_version it carries.

        With `accepts_own`, a conflict with the very content that was to be written is not a conflict: an earlier
        attempt succeeded and only its answer was lost.
        """
        path, encode = znodes.TopicPartitionStateZNode.path, znodes.TopicPartitionStateZNode.encode
        try:
            answers = await self.write_all([Set(path(tp), encode(s), s.zk_version) for tp, s in states.items()])
        except ZooKeeperError as error:
            return Updated({}, [], dict.fromkeys(states, error))
        updated = Updated({}, [], {})
        for (tp, state), answer in zip(states.items(), answers, strict=True):
            if answer.error is None:
                updated.done[tp] = state._replace(zk_version=answer.found.version)
            elif answer.error == "BADVERSION":
                there = await self.state(tp) if accepts_own else None
                if there is not None and there._replace(zk_version=state.zk_version) == state:
                    updated.done[tp] = there
                else:
                    updated.retry.append(tp)
            else:
                updated.failed[tp] = answer.exception
        return updated

    async def create_states(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> dict[TopicPartition, Exception]:
        """Create the `state` znodes and the znodes above them; returns the errors of those that failed."""
        parents = [znodes.TopicPartitionsZNode.path(t) for t in dict.fromkeys(tp.topic for tp in states)]
        path, encode = znodes.TopicPartitionStateZNode.path, znodes.TopicPartitionStateZNode.encode
        try:
            await self.write_all([Create(p) for p in parents])
            await self.write_all([Create(znodes.TopicPartitionZNode.path(tp)) for tp in states])
            answers = await self.write_all([Create(path(tp), encode(state)) for tp, state in states.items()])
        except ZooKeeperError as error:
            return dict.fromkeys(states, error)
        return {tp: a.exception for tp, a in zip(states, answers, strict=True) if a.error is not None}

    async def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        """Leader and ISR of one partition, None if it has none yet. Raises every error but NoNode."""
        found = (await self.states((partition,)))[partition]
        if isinstance(found, Exception) and not isinstance(found, NoNode):
            raise found
        return found if isinstance(found, LeaderAndIsr) else None

    async def delete_tree(self, path: str) -> None:
        """Delete a znode and everything below it, deepest first."""
        answer = (await self.client.send([Children(path)]))[0]
        for name in answer.value if isinstance(answer.value, list) else ():
            await self.delete_tree(f"{path}/{name}")
        await self.write(Delete(path))

    async def create(self, path: str, data: bytes = b"") -> Result:
        """Make a znode, first those above it that are missing.

        Kafka 2.0.1: zk/KafkaZkClient.scala, createRecursive; 0.10.2.2: utils/ZkUtils.scala, createPersistentPath
        """
        answer = await self.write(Create(path, data))
        if answer.error == "NONODE" and (parent := path.rpartition("/")[0]):
            await self.create(parent)
            answer = await self.write(Create(path, data))
        return answer

    async def set_or_create(self, path: str, data: bytes) -> Result:
        """Write a znode, making it first if it is missing."""
        answer = await self.write(Set(path, data))
        return await self.write(Create(path, data)) if answer.error == "NONODE" else answer

    async def set_or_create_config(self, kind: str, name: str, data: bytes) -> None:
        """Write the settings of a topic or broker, also where another client makes the znode meanwhile.

        Kafka 2.0.1: zk/KafkaZkClient.scala, setOrCreateEntityConfigs
        """
        path = znodes.ConfigEntityZNode.path(kind, name)
        answer = await self.write(Set(path, data))
        if answer.error == "NONODE" and (answer := await self.create(path, data)).error == "NODEEXISTS":
            answer = await self.write(Set(path, data))
        answer.checked()

    async def delete_children(self, path: str, names: Iterable[str]) -> None:
        await self.write_all([Delete(f"{path}/{name}") for name in names])

    async def delete_all_children(self, path: str) -> None:
        await self.delete_children(path, await self.read_children(path))

    async def notifications(self, parent: str, names: Sequence[str], decode: Callable[[bytes, str], T]) -> list[T]:
        """The notifications with these names that are there and can be read."""
        found = []
        for name, answer in zip(names, await self.read_all(f"{parent}/{n}" for n in names), strict=True):
            if (data := answer.data_if_any) is not None:
                with suppress(NotJson):
                    found.append(decode(data, znodes.sequence_number(name)))
        return found

    # Requests of administrators

    async def reassignments(self, by_class: bool) -> dict[TopicPartition, tuple[int, ...]] | None:
        """The contents of `/admin/reassign_partitions`, read as `ReassignPartitionsZNode.decode` says; None if missing.

        Raises BadInput if it is malformed.

        Kafka 2.0.1: zk/KafkaZkClient.scala, getPartitionReassignment
        """
        data = (await self.read(znodes.ReassignPartitionsZNode.path())).data_if_any
        return None if data is None else znodes.ReassignPartitionsZNode.decode(data, by_class)

    async def preferred_elections(self) -> list[TopicPartition]:
        """The contents of `/admin/preferred_replica_election`; empty if it is missing, since 1.1 also if it is no JSON.

        Kafka 2.0.1: zk/KafkaZkClient.scala, getPreferredReplicaElection
        Kafka 0.10.2.2: admin/PreferredReplicaLeaderElectionCommand.scala, parsePreferredReplicaElectionData
        """
        znode = znodes.PreferredReplicaElectionZNode
        return await self.client.read_json(znode.path(), znode.decode, [])

    async def topic_configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of each topic; none where none was ever set, or where they are no JSON.

        Kafka 2.0.1: zk/KafkaZkClient.scala, getLogConfigs
        """
        names = list(topics)
        answers = await self.read_all(znodes.ConfigEntityZNode.path("topics", name) for name in names)
        return {name: config_of(answer, "topics", name) for name, answer in zip(names, answers, strict=True)}


async def read_config(zk: KafkaZkClient, kind: str, name: str) -> dict[str, str]:
    """The settings of `topics/orders` or `brokers/1`, as `config_of` finds them. Raises every error but NoNode."""
    answer = await zk.read(znodes.ConfigEntityZNode.path(kind, name))
    return {} if answer.data_if_any is None else config_of(answer, kind, name)


def config_of(answer: Result, kind: str, name: str) -> dict[str, str]:
    """The settings that a read has found; none where there is no znode or no JSON. Raises BadInput for other JSON."""
    with suppress(NotJson):
        return znodes.ConfigEntityZNode.decode(answer.value, kind, name) if isinstance(answer.value, bytes) else {}
    return {}


async def change_config(zk: KafkaZkClient, kind: str, name: str, changes: Mapping[str, str | None]) -> None:
    """Set these settings, or remove those that are None, and notify every broker.

    Kafka 2.0.1: zk/AdminZkClient.scala, changeEntityConfig
    """
    merged = await read_config(zk, kind, name) | dict(changes)
    kept = {key: value for key, value in merged.items() if value is not None}
    await zk.set_or_create_config(kind, name, znodes.ConfigEntityZNode.encode(kept))
    znode = znodes.ConfigChangeNotificationSequenceZNode
    notice = Create(znode.path(), znode.encode(f"{kind}/{name}"), sequence=True)
    if (answer := await zk.write(notice)).error == "NONODE":
        await zk.create(znode.PARENT)
        answer = await zk.write(notice)
    answer.checked()
