"""The partition state machine: performs the moves of the table in `partition.py`, with their side effects.

Every call of `handle` is one request batch. What cannot move is recorded and left alone; the others go on.
Kafka 2.0.1: controller/PartitionStateMachine.scala, PartitionStateMachine
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from kafka_ctl import election
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller import failure_messages, unclean
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.election import Election
from kafka_ctl.errors import BatchNotEmpty, ControllerMoved, InvalidTransition, NoNode
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE, PARTITION, PartitionState
from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.record import SET


class Strategy(StrEnum):
    """Why a leader is needed; it decides who may lead and who gets the request."""

    OFFLINE = "offline"
    REASSIGN = "reassign"
    UNCLEAN = "unclean"
    """Offline, and asked for by an administrator: a replica out of sync may lead whatever the configuration says."""
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"


class PartitionStateMachine:
    """Moves partitions between their states for one controller."""

    def __init__(self, process: ControllerProcess, batch: RequestBatch) -> None:
        self.process, self.context, self.batch = process, process.context, batch
        self.table = PARTITION[process.generation]
        self._failures: dict[TopicPartition, Exception] = {}

    async def startup(self) -> None:
        """Guess every partition's state from its leader, then look for leaders where there are none."""
        self.process.log("initializing_partition_state")
        for tp in self.context.all_partitions():
            state = self.context.leadership.get(tp)
            if state is None:
                self._set(tp, NEW)
            else:
                self._set(tp, ONLINE if self.context.online(state.leader, tp) else OFFLINE)
        self.process.log("triggering_online_partitions")
        await self.trigger_online()

    async def trigger_online(self, topic: str | None = None) -> None:
        """Try to bring every New and Offline partition (of this topic) online, except in topics to be deleted."""
        to_be_deleted = self.context.topics_to_be_deleted
        waiting = [
            tp
            for tp, state in self.context.partitions.items()
            if state in (OFFLINE, NEW) and tp.topic not in to_be_deleted and topic in (None, tp.topic)
        ]
        await self._together(waiting, ONLINE, Strategy.OFFLINE)

    async def handle(
        self, partitions: Iterable[TopicPartition], target: PartitionState, strategy: Strategy = Strategy.OFFLINE
    ) -> dict[TopicPartition, Exception]:
        """Move these partitions to `target` and send what follows from it, in one batch; those that failed, and why."""
        wanted = list(partitions)
        if self.process.generation.log.announces_state_changes:
            self.process.log("invoking_partitions", target=target, partitions=[str(tp) for tp in wanted])
        await self._together(wanted, target, strategy)
        return self._failures

    async def _together(self, wanted: list[TopicPartition], target: PartitionState, strategy: Strategy) -> None:
        self._failures = {}
        if not wanted:
            return
        try:
            self.batch.open()
            for together in [wanted] if self.process.generation.zookeeper.pipelined else [[tp] for tp in wanted]:
                await self.move(together, target, strategy)
            self.batch.send()
        except BatchNotEmpty as error:
            self.process.log("error_moving_partitions", target=str(target), error=str(error))
            self._failures = dict.fromkeys(wanted, error)
        except ControllerMoved as error:
            self.process.log("partitions_not_moved", target=str(target), error=str(error))
            raise

    async def move(self, partitions: list[TopicPartition], target: PartitionState, strategy: Strategy) -> None:
        states = self.context.partitions
        by_action: dict[str, list[TopicPartition]] = {}
        for tp in partitions:
            source = states.setdefault(tp, NON_EXISTENT)
            try:
                by_action.setdefault(self._action(tp, source, target), []).append(tp)
            except InvalidTransition as error:
                self.failed(tp, target, error)
        for action, movable in by_action.items():
            if action == "elect":
                await self._elect(movable, strategy)
            elif action == "initialize":
                await self.initialize(movable)
            else:
                for tp in movable:
                    self.moved(tp, target, action)

    def _action(self, tp: TopicPartition, source: PartitionState, target: PartitionState) -> str:
        """What performs a move; InvalidTransition where the table, or a learner's rule, forbids it.

        A move that a rule alone allows is performed as others to its target.
        """
        plugins = self.process.plugins
        if "transition" not in plugins.rules:
            return self.table.find(tp, source, target).action
        if not plugins.may_move(short(source), short(target)):
            raise InvalidTransition(tp, source, target, self.table.previous(target))
        move = self.table.moves.get((source, target))
        return next(row.action for row in self.table.rows if row.target == target) if move is None else move.action

    def _set(self, tp: TopicPartition, state: PartitionState) -> None:
        """Record a state that a partition has without a move, and keep it."""
        context = self.context
        self.process.trace.add(self.process.actor, "partition", SET, *tp, target=state, controller_epoch=context.epoch)
        context.partitions[tp] = state

    def moved(self, tp: TopicPartition, target: PartitionState, action: str, state: LeaderAndIsr | None = None) -> None:
        """Record a move that was made, and make it."""
        self._failures.pop(tp, None)
        context = self.context
        self.process.trace.about(
            self.process.actor,
            "partition",
            action,
            tp,
            None,
            state,
            source=context.partitions[tp],
            target=target,
            controller_epoch=context.epoch,
            replicas=context.assigned(tp),
        )
        context.partitions[tp] = target

    def failed(self, tp: TopicPartition, target: PartitionState, error: Exception) -> None:
        self._failures[tp] = error
        self.process.trace.add(
            self.process.actor,
            "partition",
            "refuse",
            tp.topic,
            tp.partition,
            source=self.context.partitions[tp],
            target=target,
            controller_epoch=self.context.epoch,
            error=type(error).__name__,
            detail=str(error),
        )

    # New -> Online

    async def initialize(self, partitions: list[TopicPartition]) -> None:
        """The first live replica leads and all live replicas are in sync, as nothing has been written yet."""
        context = self.context
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            replicas = context.assigned(tp)
            live = tuple(r for r in replicas if context.online(r, tp))
            if live:
                states[tp] = LeaderAndIsr(live[0], live, controller_epoch=context.epoch)
            else:
                self.failed(tp, ONLINE, failure_messages.no_live_replica(self.process, tp))
        try:
            errors = await self.process.zk.create_states(states)
        except ControllerMoved as error:
            self.process.log("states_not_created", error=str(error))
            raise
        for tp, state in states.items():
            if tp in errors:
                self.failed(tp, ONLINE, errors[tp])
            else:
                context.leadership[tp] = state
                self.batch.leader_and_isr(state.isr, tp, state, context.assigned(tp), is_new=True)
                self.moved(tp, ONLINE, "initialize", state)

    # Offline -> Online, Online -> Online

    async def _elect(self, partitions: list[TopicPartition], strategy: Strategy) -> None:
        """Elect until every write went through or failed for good."""
        remaining, elected = partitions, []
        if strategy is Strategy.PREFERRED and not self.process.generation.election.elects_already_preferred:
            elected = [tp for tp in partitions if self._led_by_preferred(tp)]
            remaining = partitions = [tp for tp in partitions if tp not in elected]
        while remaining:
            again = partitions if self.process.generation.election.retries_whole_batch else remaining
            done, remaining = await self._elect_once(again, strategy)
            elected += done
        for tp in elected:
            self.moved(tp, ONLINE, "elect", self.context.leadership[tp])

    def _led_by_preferred(self, tp: TopicPartition) -> bool:
        state = self.context.leadership.get(tp)
        return state is not None and state.leader == self.context.assigned(tp)[0]

    async def _elect_once(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """One round: read, decide, write; returns the partitions elected and those to try again."""
        context = self.context
        states = self._electable(partitions, await self.process.zk.states(partitions))
        allowed = await self._unclean_allowed(states, strategy)
        receivers: dict[TopicPartition, tuple[int, ...]] = {}
        updates: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in states.items():
            choice, receivers[tp] = self._decide(strategy, tp, state, allowed.get(tp.topic, False))
            self.record_election(strategy, tp, state, choice)
            if choice is None:
                self.failed(tp, ONLINE, failure_messages.no_leader(self.process, tp, strategy, state, allowed))
            else:
                updates[tp] = state.led_by(choice.leader, choice.isr)._replace(controller_epoch=context.epoch)
        updated = await self.process.zk.update_states(updates, self.process.generation.zookeeper.accepts_own_lost_write)
        for tp, new in updated.done.items():
            context.leadership[tp] = new
            self.batch.leader_and_isr(receivers[tp], tp, new, context.assigned(tp), is_new=False)
        for tp, error in updated.failed.items():
            self.failed(tp, ONLINE, error)
        return list(updated.done), updated.retry

    def _electable(
        self, partitions: Iterable[TopicPartition], found: dict[TopicPartition, LeaderAndIsr | Exception]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The states an election can start from; the others are recorded as failures."""
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            state = found[tp]
            if isinstance(state, NoNode):
                self.failed(tp, ONLINE, failure_messages.no_state(self.process, tp))
            elif isinstance(state, Exception):
                self.failed(tp, ONLINE, state)
            elif state.controller_epoch > self.context.epoch:
                self.failed(tp, ONLINE, failure_messages.newer_controller_elected(self.process, tp, state))
            else:
                states[tp] = state
        return states

    async def _unclean_allowed(self, states: dict[TopicPartition, LeaderAndIsr], strategy: Strategy) -> dict[str, bool]:
        """By topic, whether a replica out of sync may lead; asked only where no replica in sync is online."""
        online = self.context.online
        topics = dict.fromkeys(tp.topic for tp, s in states.items() if not any(online(r, tp) for r in s.isr))
        match strategy:
            case Strategy.OFFLINE:
                return await unclean.allowed(self.process, topics)
            case Strategy.UNCLEAN:
                return dict.fromkeys(topics, True)
        return {}

    def _decide(
        self, strategy: Strategy, tp: TopicPartition, state: LeaderAndIsr, unclean: bool
    ) -> tuple[Election | None, tuple[int, ...]]:
        """The election's result, and the receivers of its LeaderAndIsr request."""
        context, elect = self.context, self.process.plugins.elect
        assigned = context.assigned(tp)
        live = tuple(r for r in assigned if context.online(r, tp))
        match strategy:
            case Strategy.OFFLINE | Strategy.UNCLEAN:
                return elect(strategy, election.offline_leader, assigned, state.isr, live, unclean), live
            case Strategy.PREFERRED:
                return elect(strategy, election.preferred_leader, assigned, state.isr, live), assigned
            case Strategy.CONTROLLED_SHUTDOWN:
                shutting_down = context.shutting_down
                candidates = tuple(r for r in assigned if context.online(r, tp, shutting_down_too=True))
                receivers = candidates if self.process.generation.shutdown.shutdown_tells_leaving_broker else live
                if self.process.generation.bugs.shutdown_follows_isr:  # KAFKA-3670: the head of the ISR
                    assigned = candidates = state.isr
                rule = election.controlled_shutdown_leader
                return elect(strategy, rule, assigned, state.isr, candidates, shutting_down), receivers
            case Strategy.REASSIGN:
                target = context.reassigning[tp]
                live = tuple(r for r in target if context.online(r, tp))
                return elect(strategy, election.reassigned_leader, target, state.isr, live), target

    def record_election(
        self, strategy: Strategy, tp: TopicPartition, state: LeaderAndIsr, choice: Election | None
    ) -> None:
        live, isr = details.listed(sorted(self.context.live)), details.listed(state.isr)
        detail = details.write(live=live, isr_before=isr, leader_before=state.leader)
        self.process.trace.add(
            self.process.actor,
            "election",
            strategy,
            tp.topic,
            tp.partition,
            target=("unclean" if choice.unclean else "clean") if choice else None,
            leader=choice.leader if choice else None,
            isr=choice.isr if choice else None,
            leader_epoch=state.leader_epoch + 1 if choice else None,
            controller_epoch=self.context.epoch,
            error=None if choice else "NoReplicaOnline",
            replicas=self.context.assigned(tp),
            detail=detail,
        )
