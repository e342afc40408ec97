"""The replica state machine: performs the moves of the table in `replica.py`, with their side effects.

Every call of `handle` is one request batch; inside it the replicas go broker by broker.
Kafka 2.0.1: controller/ReplicaStateMachine.scala, ReplicaStateMachine
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller import failure_messages, unclean
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.controller.channel import Callback
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.errors import BatchNotEmpty, ControllerMoved, InvalidTransition, NoNode
from kafka_ctl.replica import INELIGIBLE, NON_EXISTENT, OFFLINE, ONLINE, REPLICA, ReplicaState
from kafka_ctl.scala_order import group_order, replica_hash, set_order_by
from kafka_ctl.trace.record import SET


def without_replica(leader: int, isr: tuple[int, ...], gone: int) -> tuple[int, tuple[int, ...]]:
    """Leader and ISR of a partition once its replica on broker `gone` is Offline.

    A leader that is gone leads no longer, -1; the last member stays in the ISR, so that it can lead when it returns.
    Kafka 2.0.1: controller/ReplicaStateMachine.scala, doRemoveReplicasFromIsr
    """
    staying = isr if len(isr) == 1 else tuple(r for r in isr if r != gone)
    return NO_LEADER if leader == gone else leader, staying


class ReplicaStateMachine:
    """Moves replicas between their states for one controller."""

    def __init__(self, process: ControllerProcess, batch: RequestBatch) -> None:
        self.process, self.context, self.batch = process, process.context, batch
        self.table = REPLICA[process.generation]

    async def startup(self) -> None:
        """Guess every replica's state from its broker, then send LeaderAndIsr to every live broker."""
        self.process.log("initializing_replica_state")
        context = self.context
        for tp in context.all_partitions():
            for broker in context.assigned(tp):
                self._set(Replica(*tp, broker), ONLINE if context.online(broker, tp) else INELIGIBLE)
        self.process.log("triggering_online_replicas")
        guessed = dict(context.replicas)
        online = context.replicas_on(sorted(context.live)) if context.in_tables else guessed
        await self.handle([r for r in online if guessed[r] is ONLINE], ONLINE)
        if self.process.generation.failover.stops_dead_replicas_at_startup:
            self.process.log("triggering_offline_replicas")
            await self.handle([r for r, state in guessed.items() if state is INELIGIBLE], OFFLINE)

    async def handle(self, replicas: Iterable[Replica], target: ReplicaState, callback: Callback | None = None) -> None:
        """Move these replicas to `target` and send what follows, in one batch.

        `callback` is called with each broker's answer to a StopReplica that deletes.
        """
        wanted = set_order_by(replicas, replica_hash) if self.context.in_tables else list(replicas)
        if not wanted:
            return
        if self.process.generation.log.announces_state_changes:
            self.process.log("invoking_replicas", target=target, replicas=[list(r) for r in wanted])
        try:
            self.batch.open()
            for broker, there in self._together(wanted):
                await self.move(broker, there, target, callback)
            self.batch.send()
        except BatchNotEmpty as error:
            self.process.log("error_moving_replicas", target=str(target), error=str(error))
        except ControllerMoved as error:
            self.process.log("replicas_not_moved", target=str(target), error=str(error))
            raise

    def _together(self, replicas: Iterable[Replica]) -> list[tuple[int, list[Replica]]]:
        """The replicas that move together: those of a broker, or each by itself while nothing is pipelined."""
        if not self.process.generation.zookeeper.pipelined:
            return [(replica.broker, [replica]) for replica in replicas]
        by_broker: dict[int, list[Replica]] = {}
        for replica in replicas:
            by_broker.setdefault(replica.broker, []).append(replica)
        return [(broker, by_broker[broker]) for broker in group_order(by_broker)]

    async def move(self, broker: int, replicas: list[Replica], target: ReplicaState, callback: Callback | None) -> None:
        states = self.context.replicas
        by_action: dict[str, list[Replica]] = {}
        for replica in replicas:
            source = states.setdefault(replica, NON_EXISTENT)
            try:
                by_action.setdefault(self.table.find(replica, source, target).action, []).append(replica)
            except InvalidTransition as error:
                self.failed(replica, target, error)
        for action, movable in by_action.items():
            if action == "stop":
                await self._stop(broker, movable)
            elif action == "create" and self.process.generation.isr.reads_state_of_new_replicas:
                for replica in movable:
                    state = await self.process.zk.state(replica.topic_partition)
                    self._start_following(replica, target, state)
            else:
                for replica in movable:
                    self.method_of(action)(self, replica, target, callback)

    @classmethod
    def method_of(cls, action: str) -> Callable[..., object]:
        """What carries out an action of the table; `move` for one without a method of its own."""
        found: Callable[..., object] = getattr(cls, f"_{action}", cls.move)
        return found

    def moved(self, replica: Replica, target: ReplicaState, action: str) -> None:
        """Record a move that was made, and make it."""
        context = self.context
        topic, partition, broker = replica
        self.process.trace.add(
            self.process.actor,
            "replica",
            action,
            topic,
            partition,
            broker,
            context.replicas[replica],
            target,
            None,
            None,
            None,
            None,
            context.epoch,
        )
        context.replicas[replica] = target

    def _set(self, replica: Replica, state: ReplicaState) -> None:
        """Record a state that a replica has without a move, and that Kafka does not log, and keep it."""
        context = self.context
        self.process.trace.add(
            self.process.actor, "replica", SET, *replica, target=state, controller_epoch=context.epoch
        )
        context.replicas[replica] = state

    def failed(self, replica: Replica, target: ReplicaState, error: Exception) -> None:
        self.process.trace.add(
            self.process.actor,
            "replica",
            "refuse",
            replica.topic,
            replica.partition,
            replica.broker,
            self.context.replicas[replica],
            target,
            controller_epoch=self.context.epoch,
            error=type(error).__name__,
            detail=str(error),
        )

    def _create(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        """NonExistent -> New: send its broker LeaderAndIsr if there is a leader."""
        self._start_following(replica, target, self.context.leadership.get(replica.topic_partition))

    def _start_following(self, replica: Replica, target: ReplicaState, state: LeaderAndIsr | None) -> None:
        tp = replica.topic_partition
        if state is not None and state.leader == replica.broker:
            self.failed(replica, target, failure_messages.would_lead(replica))
            return
        if state is not None:
            self.batch.leader_and_isr((replica.broker,), tp, state, self.context.assigned(tp), is_new=True)
        self.moved(replica, target, "create")

    def _join(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        """New -> Online: it belongs to the assigned replicas from now on."""
        tp = replica.topic_partition
        assigned = self.context.assigned(tp)
        if replica.broker not in assigned:
            self.context.assign(tp, (*assigned, replica.broker))
        self.moved(replica, target, "join")

    def _tell(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        """Online, Offline or Ineligible -> Online: send its broker LeaderAndIsr."""
        tp = replica.topic_partition
        state = self.context.leadership.get(tp)
        if state is not None:
            self.batch.leader_and_isr((replica.broker,), tp, state, self.context.assigned(tp), is_new=False)
        elif not self.process.generation.isr.tolerates_missing_state:
            self._set(replica, target)  # 0.10 logs nothing of a replica whose partition was never led
            return
        self.moved(replica, target, "tell")

    def _delete(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        """Offline -> DeletionStarted: send its broker StopReplica with delete."""
        self.moved(replica, target, "delete")
        self.batch.stop_replica(replica.broker, replica.topic_partition, True, callback)

    def _confirm(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        self.moved(replica, target, "confirm")

    def _give_up(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        self.moved(replica, target, "give_up")

    def _forget(self, replica: Replica, target: ReplicaState, callback: Callback | None) -> None:
        """DeletionSuccessful -> NonExistent: it is no longer assigned."""
        tp = replica.topic_partition
        self.context.assign(tp, (r for r in self.context.assigned(tp) if r != replica.broker))
        self.moved(replica, target, "forget")
        del self.context.replicas[replica]

    # -> Offline

    async def _stop(self, broker: int, replicas: list[Replica]) -> None:
        """Stop the copies, take them out of the ISRs, send LeaderAndIsr to the other replicas."""
        context, batch = self.context, self.batch
        for replica in replicas:
            batch.stop_replica(broker, replica.topic_partition, False, None)
        led = {r.topic_partition: r for r in replicas if r.topic_partition in context.leadership}
        for tp, state in (await self._remove_from_isr(broker, led)).items():
            if tp not in self.context.partitions_to_be_deleted:
                assigned = context.assigned(tp)
                batch.leader_and_isr((r for r in assigned if r != broker), tp, state, assigned, is_new=False)
            self.moved(led[tp], OFFLINE, "stop")
        for replica in replicas:
            if replica.topic_partition in led:
                continue
            if not self.process.generation.isr.tolerates_missing_state:
                if replica.topic_partition not in context.partitions_to_be_deleted:
                    self.failed(replica, OFFLINE, failure_messages.nothing_stored(self.process, replica))
            else:
                self.moved(replica, OFFLINE, "stop")
                if self.process.generation.requests.announces_leaderless_replicas:
                    batch.update_metadata(context.live_or_shutting_down, (replica.topic_partition,))

    async def _remove_from_isr(
        self, broker: int, replicas: dict[TopicPartition, Replica]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Write ISRs without this broker until every write went through; returns the states that hold now."""
        results: dict[TopicPartition, LeaderAndIsr] = {}
        remaining = list(replicas)
        while remaining:
            states = self._shrinkable(replicas, remaining, await self.process.zk.states(remaining))
            shrunk = {tp: state for tp, state in states.items() if broker in self._isr(tp, state)}
            emptied = await self._emptied(shrunk)
            updates = {tp: self._without(state, broker, tp in emptied) for tp, state in shrunk.items()}
            updated = await self.process.zk.update_states(
                updates, self.process.generation.zookeeper.accepts_own_lost_write
            )
            for tp, state in states.items():
                if tp not in updates or tp in updated.done:
                    state = updated.done.get(tp, state)._replace(controller_epoch=self.context.epoch)
                    self.context.leadership[tp] = results[tp] = state
            for tp, error in updated.failed.items():
                self.failed(replicas[tp], OFFLINE, error)
            remaining = updated.retry
        return results

    def _isr(self, tp: TopicPartition, stored: LeaderAndIsr) -> tuple[int, ...]:
        """The ISR that counts: as ZooKeeper has it, or in old releases as the controller had cached it."""
        return (self.context.leadership[tp] if self.process.generation.bugs.shrinks_cached_isr else stored).isr

    async def _emptied(self, states: dict[TopicPartition, LeaderAndIsr]) -> set[TopicPartition]:
        """The partitions whose ISR may become empty: once, those where a replica out of sync may lead anyway."""
        if self.process.generation.isr.keeps_last_isr_member:
            return set()
        last = [tp for tp, state in states.items() if len(state.isr) == 1]
        allowed = await unclean.allowed(self.process, dict.fromkeys(tp.topic for tp in last))
        for tp in last:
            if not allowed[tp.topic]:
                self.process.log("retaining_last_isr", partition=str(tp), replica=states[tp].isr[0])
        return {tp for tp in last if allowed[tp.topic]}

    def _without(self, state: LeaderAndIsr, broker: int, emptied: bool) -> LeaderAndIsr:
        """The state without this broker; the last member stays, so that it can lead again when it returns."""
        if self.process.generation.bugs.keeps_dead_leader:
            return state.led_by(state.leader, (r for r in state.isr if r != broker))._replace(
                controller_epoch=self.context.epoch
            )
        plugins = self.process.plugins
        rule = plugins.shrink if "shrink" in plugins.rules else without_replica
        leader, isr = rule(state.leader, state.isr, broker)
        if emptied:
            isr = ()
        return state.led_by(leader, isr)._replace(controller_epoch=self.context.epoch)

    def _shrinkable(
        self,
        replicas: dict[TopicPartition, Replica],
        partitions: Iterable[TopicPartition],
        found: dict[TopicPartition, LeaderAndIsr | Exception],
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The states an ISR can be shrunk in; the others are recorded as failures."""
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            state = found[tp]
            if isinstance(state, NoNode):
                if tp not in self.context.partitions_to_be_deleted:
                    self.failed(replicas[tp], OFFLINE, failure_messages.nothing_stored(self.process, replicas[tp]))
            elif isinstance(state, Exception):
                self.failed(replicas[tp], OFFLINE, state)
            elif state.controller_epoch > self.context.epoch:
                self.failed(replicas[tp], OFFLINE, failure_messages.newer_controller_wrote(self.process, state))
            else:
                states[tp] = state
        return states
