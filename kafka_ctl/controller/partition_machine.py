"""The partition state machine: performs the moves of the table in `partition.py`, with their side effects.

Kafka 2.0.1: controller/PartitionStateMachine.scala, PartitionStateMachine
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_ctl import election
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.controller.failures import failure, joined
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.controller.state_machine import NONE, StateMachine, printed
from kafka_ctl.election import Election, Strategy
from kafka_ctl.errors import ControllerMoved, InvalidTransition, NoReplicaOnline, StateChangeFailed
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE, PARTITION, PartitionState
from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Columns


class PartitionStateMachine(StateMachine[TopicPartition, PartitionState, Strategy]):
    """Moves partitions between their states for one controller."""

    kind = "partition"
    half_sent, superseded = "error_moving_partitions", "partitions_not_moved"

    def __init__(self, process: ControllerProcess, batch: RequestBatch) -> None:
        super().__init__(process, batch, PARTITION[process.generation], NON_EXISTENT)
        self._failures: dict[TopicPartition, Exception] = {}

    @property
    def states(self) -> dict[TopicPartition, PartitionState]:
        return self.context.partitions

    async def startup(self) -> None:
        """Initialize every partition's state from its leader, then elect leaders where there are none."""
        self.process.log("initializing_partition_state")
        for tp in self.context.all_partitions():
            state = self.context.leadership.get(tp)
            self.begin(tp, NEW if state is None else ONLINE if self.context.online(state.leader, tp) else OFFLINE)
        self.process.log("triggering_online_partitions")
        await self.trigger_online()

    async def trigger_online(self, topic: str | None = None) -> None:
        """Try to bring every New and Offline partition (of this topic) online, except in topics to be deleted."""
        to_be_deleted = self.context.topics_to_be_deleted
        leaderless = [tp for tp, state in self.states.items() if state in (OFFLINE, NEW)]
        waiting = [tp for tp in leaderless if tp.topic not in to_be_deleted and topic in (None, tp.topic)]
        await self._together(waiting, ONLINE, Strategy.OFFLINE)

    async def handle(
        self, partitions: Iterable[TopicPartition], target: PartitionState, strategy: Strategy = Strategy.OFFLINE
    ) -> dict[TopicPartition, Exception]:
        """Move these partitions to `target`, and send the requests in one batch; returns those that failed, and why."""
        wanted = list(partitions)
        if self.process.generation.log.announces_state_changes:
            self.process.log("invoking_partitions", target=target, partitions=[str(tp) for tp in wanted])
        await self._together(wanted, target, strategy)
        return self._failures

    async def _together(self, wanted: list[TopicPartition], target: PartitionState, strategy: Strategy) -> None:
        """Move them all together, or one by one in a generation without pipelining."""
        self._failures = {}
        if wanted:
            groups = [wanted] if self.process.generation.zookeeper.pipelined else [[tp] for tp in wanted]
            if (error := await self.in_one_batch(groups, target, strategy)) is not None:
                self._failures = dict.fromkeys(wanted, error)

    def action(self, tp: TopicPartition, source: PartitionState, target: PartitionState, /) -> str:
        """The method for a move; raises InvalidTransition if the table or a plug-in forbids it.

        A move that a plug-in alone allows is performed as others to its target.
        """
        allowed: Callable[[str, str], bool] | None = self.process.plugins.rule("transition", None)
        if allowed is None:
            return super().action(tp, source, target)
        if not allowed(short(source), short(target)):
            raise InvalidTransition(tp, source, target, self.table.previous(target))
        move = self.table.moves.get((source, target))
        return next(row.action for row in self.table.rows if row.target == target) if move is None else move.action

    def led(self, tp: TopicPartition, action: str, state: LeaderAndIsr) -> None:
        """Record a move to Online with its leader and ISR, and make it."""
        leader, isr, leader_epoch, zk_version, _ = state
        led: Columns = {"leader": leader, "isr": isr, "leader_epoch": leader_epoch, "zk_version": zk_version}
        self.moved(tp, ONLINE, action, led)

    def moved(self, tp: TopicPartition, target: PartitionState, action: str, led: Columns = NONE, /) -> None:
        self._failures.pop(tp, None)
        super().moved(tp, target, action, {**led, "replicas": self.context.assigned(tp)})

    def failed(self, tp: TopicPartition, target: PartitionState, error: Exception, /) -> None:
        self._failures[tp] = error
        super().failed(tp, target, error)

    # New -> Online

    async def _initialize(self, partitions: list[TopicPartition], target: PartitionState, strategy: Strategy) -> None:
        """The first live replica leads and all live replicas are in sync, as nothing has been written yet."""
        context = self.context
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for tp in partitions:
            replicas = context.assigned(tp)
            if live := tuple(r for r in replicas if context.online(r, tp)):
                states[tp] = LeaderAndIsr(live[0], live, controller_epoch=context.epoch)
            else:
                self.failed(tp, ONLINE, no_live_replica(self.process, tp))
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
                self.led(tp, "initialize", state)

    # Offline -> Online, Online -> Online

    async def _elect(self, partitions: list[TopicPartition], target: PartitionState, strategy: Strategy) -> None:
        """Elect until every write went through or failed for good."""
        remaining, elected = partitions, []
        if strategy is Strategy.PREFERRED and not self.process.generation.election.elects_already_preferred:
            led, assigned = self.context.leadership, self.context.assigned
            elected = [tp for tp in partitions if tp in led and assigned(tp)[:1] == (led[tp].leader,)]
            remaining = partitions = [tp for tp in partitions if tp not in elected]
        whole = self.process.generation.election.retries_whole_batch
        retry = self.process.plugins.rule("retry", lambda asked, refused: asked if whole else refused)
        while remaining:
            done, refused = await self._elect_once(remaining, strategy)
            elected += done
            remaining = retry(remaining, refused) if refused else []
        for tp in elected:
            self.led(tp, "elect", self.context.leadership[tp])

    async def _elect_once(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """One round: read, decide, write; returns the partitions elected and those to try again."""
        process, context = self.process, self.context
        found = await process.zk.states(partitions, process.generation.election.needs_json_states)
        states = self.usable({tp: tp for tp in partitions}, found, ONLINE)
        allowed = await self._unclean_allowed(states, strategy)
        receivers: dict[TopicPartition, tuple[int, ...]] = {}
        updates: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, state in states.items():
            choice, receivers[tp] = self._decide(strategy, tp, state, allowed.get(tp.topic, False))
            self.record_election(strategy, tp, state, choice)
            if choice is None:
                self.failed(tp, ONLINE, no_leader(process, tp, strategy, state, allowed))
            else:
                updates[tp] = state.led_by(choice.leader, choice.isr)._replace(controller_epoch=context.epoch)
        updated = await process.zk.update_states(updates, process.generation.zookeeper.accepts_own_lost_write)
        for tp, new in updated.done.items():
            context.leadership[tp] = new
            self.batch.leader_and_isr(receivers[tp], tp, new, context.assigned(tp), is_new=False)
        for tp, error in updated.failed.items():
            self.failed(tp, ONLINE, error)
        return list(updated.done), updated.retry

    def missing(self, tp: TopicPartition) -> StateChangeFailed:
        """The error of an election where no leader was ever written."""
        row = "no_state" if self.process.generation.log.names_election_strategies else "no_state_old"
        return failure(row, partition=printed(self.process, tp), state=self.states[tp])

    def newer(self, tp: TopicPartition, state: LeaderAndIsr) -> StateChangeFailed:
        return failure("newer_controller_elected", partition=tp, id=self.process.id, other=state.controller_epoch)

    async def _unclean_allowed(self, states: dict[TopicPartition, LeaderAndIsr], strategy: Strategy) -> dict[str, bool]:
        """By topic, whether a replica out of sync may lead; asked only where no replica in sync is online."""
        online = self.context.online
        topics = dict.fromkeys(tp.topic for tp, s in states.items() if not any(online(r, tp) for r in s.isr))
        match strategy:
            case Strategy.OFFLINE:
                return await self.unclean_allowed(topics)
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
                informs = self.process.plugins.rule("receivers", lambda *_: receivers)
                informed = tuple(informs(assigned, frozenset(candidates), frozenset(shutting_down)))
                follows_isr = self.process.generation.bugs.shutdown_follows_isr
                rule = election.head_of_isr if follows_isr else election.controlled_shutdown_leader
                return elect(strategy, rule, assigned, state.isr, candidates, shutting_down), informed
            case Strategy.REASSIGN:
                target = context.reassigning[tp]
                live = tuple(r for r in target if context.online(r, tp))
                return elect(strategy, election.reassigned_leader, target, state.isr, live), target

    def record_election(
        self, strategy: Strategy, tp: TopicPartition, state: LeaderAndIsr, choice: Election | None
    ) -> None:
        live, isr = details.listed(sorted(self.context.live)), details.listed(state.isr)
        columns: Columns = {
            "controller_epoch": self.context.epoch,
            "replicas": self.context.assigned(tp),
            "detail": details.write(live=live, isr_before=isr, leader_before=state.leader),
        }
        if choice is None:
            columns["error"] = "NoReplicaOnline"
        else:
            columns["target"] = "unclean" if choice.unclean else "clean"
            columns |= {"leader": choice.leader, "isr": choice.isr, "leader_epoch": state.leader_epoch + 1}
        self.process.record("election", strategy, *tp, **columns)


# Kafka's error messages


def no_live_replica(process: ControllerProcess, tp: TopicPartition) -> StateChangeFailed:
    """The error of New -> Online without a live replica. 0.10 lists the assigned replicas, 2.0 and 2.4 do not."""
    before, assigned = f"Controller {process.id} epoch {process.context.epoch} ", ""
    if not process.generation.log.names_election_strategies:
        before, assigned = "", joined(process.context.assigned(tp), ",")
    live, pair = joined(sorted(process.context.live)), printed(process, tp)
    return failure("no_live_replica", before=before, partition=pair, assigned=assigned, live=live)


def no_leader(
    process: ControllerProcess, tp: TopicPartition, strategy: str, state: LeaderAndIsr, unclean: Mapping[str, bool]
) -> StateChangeFailed:
    """The error of an election that no replica may win. Before KAFKA-5642 each selector had a text of its own.

    Kafka 0.10.2.2: controller/PartitionLeaderSelector.scala; PartitionStateMachine.scala, electLeaderForPartition
    """
    context, isr = process.context, joined(state.isr, ",")
    if process.generation.log.names_election_strategies:
        prefixes = {"preferred": "PreferredReplica", "unclean": "Offline"}
        prefix = prefixes.get(strategy, strategy.title().replace("-", ""))
        on_request = process.generation.election.elects_on_request and prefix == "Offline"
        kind = f"({str(strategy == 'unclean').lower()})" if on_request else ""
        return failure("no_leader", tp=tp, name=f"{prefix}PartitionLeaderElectionStrategy{kind}")
    row = strategy if strategy != "offline" else "unclean" if unclean.get(tp.topic) else "clean"
    if strategy == "reassign" and not context.reassigning.get(tp):
        row = "nowhere"
    return failure(
        f"no_leader_{row}",
        NoReplicaOnline if strategy in ("offline", "reassign") else StateChangeFailed,
        pair=printed(process, tp),
        isr=isr,
        assigned=joined(context.assigned(tp)),
        preferred=joined(context.assigned(tp)[:1]),
        live=joined(sorted(context.live)),
        shutting_down=joined(sorted(context.shutting_down), ","),
        now=f'[{{"leader":{state.leader},"leader_epoch":{state.leader_epoch},"isr":[{isr}]}}]',
    )
