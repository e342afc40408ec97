"""The replica state machine: performs the moves of the table in `replica.py`, with their side effects.

Every call of `handle` is one request batch; inside it the replicas go broker by broker, or each by itself without
pipelining.
Kafka 2.0.1: controller/ReplicaStateMachine.scala, ReplicaStateMachine
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller.batch import Callback, RequestBatch
from kafka_ctl.controller.failures import failure
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.controller.state_machine import StateMachine, newer_controller_wrote, printed
from kafka_ctl.errors import StateChangeFailed
from kafka_ctl.replica import (
    INELIGIBLE,
    NON_EXISTENT,
    OFFLINE,
    ONLINE,
    REPLICA,
    ReplicaState,
    without_isr_member,
    without_replica,
)
from kafka_ctl.scala_order import grouped


class ReplicaStateMachine(StateMachine[Replica, ReplicaState, Callback | None]):
    """Moves replicas between their states for one controller."""

    kind = "replica"
    half_sent, superseded = "error_moving_replicas", "replicas_not_moved"

    def __init__(self, process: ControllerProcess, batch: RequestBatch) -> None:
        super().__init__(process, batch, REPLICA[process.generation], NON_EXISTENT)

    @property
    def states(self) -> dict[Replica, ReplicaState]:
        return self.context.replicas

    async def startup(self) -> None:
        """Initialize every replica's state from its broker, then send LeaderAndIsr to every live broker."""
        self.process.log("initializing_replica_state")
        context = self.context
        for tp in context.all_partitions():
            for broker in context.assigned(tp):
                self.begin(Replica(*tp, broker), ONLINE if context.online(broker, tp) else INELIGIBLE)
        self.process.log("triggering_online_replicas")
        guessed = dict(context.replicas)
        found = self.process.plugins.rule("startup", self._begun)({r: str(s) for r, s in guessed.items()})
        online, offline = map(set, found)
        await self.handle([r for r in context.replicas_at_startup() if r in online], ONLINE)
        if offline or self.process.generation.failover.stops_dead_replicas_at_startup:
            self.process.log("triggering_offline_replicas")
            await self.handle([r for r in guessed if r in offline], OFFLINE)

    def _begun(self, states: dict[Replica, str]) -> tuple[list[Replica], list[Replica]]:
        """The replicas that go Online when a controller begins, and those that go Offline."""
        stops = self.process.generation.failover.stops_dead_replicas_at_startup
        online, offline = ([r for r, s in states.items() if s == state] for state in (ONLINE, INELIGIBLE))
        return online, offline if stops else []

    async def handle(self, replicas: Iterable[Replica], target: ReplicaState, callback: Callback | None = None) -> None:
        """Move these replicas to `target` and send what follows, in one batch.

        `callback` is called with each broker's answer to a StopReplica that deletes.
        """
        if wanted := self.context.orders.replica_set(replicas):
            if self.process.generation.log.announces_state_changes:
                self.process.log("invoking_replicas", target=target, replicas=[list(r) for r in wanted])
            pipelined = self.process.generation.zookeeper.pipelined
            groups = grouped(wanted, lambda r: r.broker).values() if pipelined else [[replica] for replica in wanted]
            await self.in_one_batch(groups, target, callback)

    async def _create(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """NonExistent -> New: send its broker LeaderAndIsr if there is a leader; 0.10 reads who it is."""
        reads = self.process.generation.isr.reads_state_of_new_replicas
        for replica in replicas:
            tp = replica.topic_partition
            state = await self.process.zk.state(tp) if reads else self.context.leadership.get(tp)
            if state is not None and state.leader == replica.broker:  # it is to be a follower, but it leads already
                self.failed(replica, target, failure("would_lead", broker=replica.broker, partition=tp))
                continue
            if state is not None:
                self.batch.leader_and_isr((replica.broker,), tp, state, self.context.assigned(tp), is_new=True)
            self.moved(replica, target, "create")

    async def _join(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """New -> Online: it belongs to the assigned replicas from now on."""
        for replica in replicas:
            tp = replica.topic_partition
            assigned = self.context.assigned(tp)
            if replica.broker not in assigned:
                self.context.assign(tp, (*assigned, replica.broker))
            self.moved(replica, target, "join")

    async def _tell(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """Online, Offline or Ineligible -> Online: send its broker LeaderAndIsr."""
        for replica in replicas:
            tp = replica.topic_partition
            if (state := self.context.leadership.get(tp)) is not None:
                self.batch.leader_and_isr((replica.broker,), tp, state, self.context.assigned(tp), is_new=False)
            elif not self.process.generation.isr.tolerates_missing_state:
                self.begin(replica, target)  # 0.10 logs nothing of a replica whose partition was never led
                continue
            self.moved(replica, target, "tell")

    async def _delete(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """Offline -> DeletionStarted: send its broker StopReplica with delete."""
        for replica in replicas:
            self.moved(replica, target, "delete")
            self.batch.stop_replica(replica.broker, replica.topic_partition, True, callback)

    async def _forget(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """DeletionSuccessful -> NonExistent: it is no longer assigned."""
        for replica in replicas:
            tp = replica.topic_partition
            self.context.assign(tp, (r for r in self.context.assigned(tp) if r != replica.broker))
            self.moved(replica, target, "forget")
            del self.states[replica]

    # -> Offline

    async def _stop(self, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        """Stop the copies of one broker, take them out of the ISRs, send LeaderAndIsr to the other replicas."""
        context, batch, broker = self.context, self.batch, replicas[0].broker
        for replica in replicas:
            batch.stop_replica(broker, replica.topic_partition, False, None)
        led = {r.topic_partition: r for r in replicas if r.topic_partition in context.leadership}
        for tp, state in (await self._remove_from_isr(broker, led)).items():
            if tp not in context.partitions_to_be_deleted:
                assigned = context.assigned(tp)
                batch.leader_and_isr((r for r in assigned if r != broker), tp, state, assigned, is_new=False)
            self.moved(led[tp], OFFLINE, "stop")
        for replica in replicas:
            if replica.topic_partition in led:
                continue
            if self.process.generation.isr.tolerates_missing_state:
                self.moved(replica, OFFLINE, "stop")
                if self.process.generation.requests.announces_leaderless_replicas:
                    batch.update_metadata(context.live_or_shutting_down, (replica.topic_partition,))
            elif error := self.missing(replica):
                self.failed(replica, OFFLINE, error)

    async def _remove_from_isr(
        self, broker: int, replicas: dict[TopicPartition, Replica]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Write ISRs without this broker until every write went through; returns the states that hold now."""
        zk, results, remaining = self.process.zk, dict[TopicPartition, LeaderAndIsr](), list(replicas)
        while remaining:
            found = await zk.states(remaining)
            states = self.usable({tp: replicas[tp] for tp in remaining}, found, OFFLINE)
            shrunk = {tp: state for tp, state in states.items() if broker in self._isr(tp, state)}
            emptied = await self._emptied(shrunk)
            updates = {tp: self._without(state, broker, tp in emptied) for tp, state in shrunk.items()}
            updated = await zk.update_states(updates, self.process.generation.zookeeper.accepts_own_lost_write)
            for tp, state in states.items():
                if tp not in updates or tp in updated.done:
                    state = updated.done.get(tp, state)._replace(controller_epoch=self.context.epoch)
                    self.context.leadership[tp] = results[tp] = state
            for tp, error in updated.failed.items():
                self.failed(replicas[tp], OFFLINE, error)
            remaining = updated.retry
        return results

    def missing(self, replica: Replica) -> StateChangeFailed | None:
        """The error where no leader was ever written; none while the topic is being deleted."""
        if (tp := replica.topic_partition) in self.context.partitions_to_be_deleted:
            return None
        return failure("nothing_stored", broker=replica.broker, partition=printed(self.process, tp))

    def newer(self, tp: TopicPartition, state: LeaderAndIsr) -> StateChangeFailed:
        return newer_controller_wrote(self.process, state)

    def _isr(self, tp: TopicPartition, stored: LeaderAndIsr) -> tuple[int, ...]:
        """The ISR that counts: as ZooKeeper has it, or in old releases as the controller had cached it."""
        return (self.context.leadership[tp] if self.process.generation.bugs.shrinks_cached_isr else stored).isr

    async def _emptied(self, states: dict[TopicPartition, LeaderAndIsr]) -> set[TopicPartition]:
        """The partitions whose ISR may become empty: since KAFKA-5083 none, else those that allow unclean elections."""
        if self.process.generation.isr.keeps_last_isr_member:
            return set()
        last = [tp for tp, state in states.items() if len(state.isr) == 1]
        allowed = await self.unclean_allowed(dict.fromkeys(tp.topic for tp in last))
        for tp in last:
            if not allowed[tp.topic]:
                self.process.log("retaining_last_isr", partition=str(tp), replica=states[tp].isr[0])
        return {tp for tp in last if allowed[tp.topic]}

    def _without(self, state: LeaderAndIsr, broker: int, emptied: bool) -> LeaderAndIsr:
        """The state without this broker. The last member of the ISR stays, unless `emptied` is true."""
        usual = without_isr_member if self.process.generation.bugs.keeps_dead_leader else without_replica
        leader, isr = self.process.plugins.rule("shrink", usual)(state.leader, state.isr, broker)
        return state.led_by(leader, () if emptied else isr)._replace(controller_epoch=self.context.epoch)
