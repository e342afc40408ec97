"""Mutants of the controller: elections, state machines, requests, its queue and its writes."""

from __future__ import annotations

from typing import Any

from kafka_ctl import election
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.controller import failover, listeners, rebalance, topics
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.controller.events import EventQueue
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.partition import NEW, OFFLINE
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode
from tests.mutants.seeded import Function, seeded


@seeded("I2", election, "offline_leader")
def leader_out_of_sync(original: Function) -> Function:
    """An election takes the first live replica, in sync or not."""

    def offline_leader(assignment: Any, isr: Any, live: Any, unclean: bool = False) -> Any:
        choice = original(assignment, isr, live, unclean)
        return choice and choice._replace(leader=next(replica for replica in assignment if replica in live))

    return offline_leader


@seeded("I7", failover, "increment_epoch", generation="2.0")
def epoch_inherited(original: Function) -> Function:
    """A new controller acts under the epoch of the last one."""

    async def increment_epoch(c: Any) -> None:
        if c.context.epoch == 0:
            await original(c)
        else:
            c.log("epoch_incremented", epoch=c.context.epoch)

    return increment_epoch


@seeded("I8", KafkaZkClient, "write_all")
def fence_dropped(original: Function) -> Function:
    """A controller's writes do not check that it still is the controller."""

    async def write_all(self: KafkaZkClient, ops: Any) -> Any:
        return await self.client.send(ops)

    return write_all


@seeded("I11", LeaderAndIsr, "led_by")
def epoch_of_one_bit(original: Function) -> Function:
    """A leader epoch has one bit: the one after 1 is 0."""

    def led_by(self: LeaderAndIsr, leader: int, isr: Any) -> LeaderAndIsr:
        return original(self, leader, isr)._replace(leader_epoch=1 - self.leader_epoch % 2)

    return led_by


@seeded("I12", ReplicaStateMachine, "_without")
def empty_isr(original: Function) -> Function:
    """The last member leaves an ISR as well when its broker dies."""

    def _without(self: ReplicaStateMachine, state: LeaderAndIsr, broker: int, emptied: bool) -> LeaderAndIsr:
        return original(self, state, broker, True)

    return _without


@seeded("I13", PartitionStateMachine, "moved")
def move_forgotten(original: Function) -> Function:
    """The partition state machine does not remember that a partition came online again."""

    def moved(self: PartitionStateMachine, tp: Any, target: Any, *rest: Any) -> None:
        source = self.context.partitions[tp]
        original(self, tp, target, *rest)
        if source == OFFLINE:
            self.context.partitions[tp] = source

    return moved


@seeded("I14", RequestBatch, "leader_and_isr")
def followers_untold(original: Function) -> Function:
    """Only the leader gets LeaderAndIsr."""

    def leader_and_isr(
        self: RequestBatch, brokers: Any, tp: Any, state: LeaderAndIsr, *rest: Any, **named: Any
    ) -> None:
        original(self, [b for b in brokers if b == state.leader], tp, state, *rest, **named)

    return leader_and_isr


@seeded("I16", RequestBatch, "stop_replica")
def stop_is_delete(original: Function) -> Function:
    """A broker that is only to stop a copy is asked to delete it."""

    def stop_replica(self: RequestBatch, broker: int, tp: Any, delete: bool, callback: Any) -> None:
        original(self, broker, tp, True, callback)

    return stop_replica


@seeded("I17", EventQueue, "put")
def newest_first(original: Function) -> Function:
    """The controller's queue is a stack: what came last is done first."""

    def put(self: EventQueue, event: Any) -> None:
        original(self, event)
        self._items.rotate(1)

    return put


@seeded("I18", ReplicaStateMachine, "_remove_from_isr")
def conflict_is_final(original: Function) -> Function:
    """A controller that takes a broker out of ISRs does not try again where it meets a version conflict."""

    async def _remove_from_isr(self: ReplicaStateMachine, broker: int, replicas: Any) -> Any:
        zk = self.process.zk
        write = zk.update_states

        async def write_once(states: Any, accepts_own: bool = False) -> Any:
            return (await write(states, accepts_own))._replace(retry=[])

        zk.update_states = write_once  # type: ignore[method-assign]
        try:
            return await original(self, broker, replicas)
        finally:
            del zk.update_states

    return _remove_from_isr


@seeded("I19", listeners, "watch_request", generation="2.0")
def deaf_to_requests(original: Function) -> Function:
    """No controller listens for reassignments."""

    async def watch_request(c: Any, znode: Any) -> bool:
        return znode is not ReassignPartitionsZNode and await original(c, znode)

    return watch_request


@seeded("I20", rebalance, "_rebalance")
def only_looks(original: Function) -> Function:
    """The automatic rebalance measures the imbalance and leaves it at that."""

    async def _rebalance(c: Any, broker: int, not_preferred: Any) -> None:
        return None

    return _rebalance


@seeded("I21", ReplicaStateMachine, "_without")
def dead_leader_stays(original: Function) -> Function:
    """A leader whose broker dies is taken out of nothing: ZooKeeper goes on naming it."""

    def _without(self: ReplicaStateMachine, state: LeaderAndIsr, broker: int, emptied: bool) -> LeaderAndIsr:
        return original(self, state, broker, emptied)._replace(leader=state.leader)

    return _without


@seeded("I23", topics, "on_new_partitions")
def stays_new(original: Function) -> Function:
    """A new topic's partitions become New, and no controller elects their first leaders."""

    async def on_new_partitions(env: Any, partitions: Any) -> None:
        await env.partition_machine.handle(partitions, NEW)

    return on_new_partitions
