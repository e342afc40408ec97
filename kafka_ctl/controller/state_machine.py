"""The common part of a controller's two state machines: a table, a request batch, a record of every move.

Each call of a machine is one request batch. A subject that cannot move is recorded and left alone; the others go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import ClassVar, Final, Generic, TypeVar

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.controller.failures import failure
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.errors import BadInput, BatchNotEmpty, ControllerMoved, InvalidTransition, NoNode, StateChangeFailed
from kafka_ctl.generation import UNCLEAN
from kafka_ctl.partition import PartitionState
from kafka_ctl.replica import ReplicaState
from kafka_ctl.table import TransitionTable
from kafka_ctl.trace.record import SET, Columns

Subject = TypeVar("Subject", TopicPartition, Replica)
State = TypeVar("State", PartitionState, ReplicaState)
How = TypeVar("How")
NONE: Final[Columns] = {}


class StateMachine(ABC, Generic[Subject, State, How]):
    """Moves partitions, or replicas, between the states of their table for one controller.

    The method `_action` performs the moves of a call that have this action, all together. Without such a method, a move
    is only recorded. Every method gets `how`, an argument of the call.
    """

    kind: ClassVar[str]
    """The name of the subjects in the trace."""
    half_sent: ClassVar[str]
    superseded: ClassVar[str]
    """The controller's messages where a batch ended with an error, and where another controller has been elected."""

    def __init__(
        self, process: ControllerProcess, batch: RequestBatch, table: TransitionTable, non_existent: State
    ) -> None:
        self.process, self.context, self.batch, self.table = process, process.context, batch, table
        self.non_existent: State = non_existent

    @property
    @abstractmethod
    def states(self) -> dict[Subject, State]:
        """The states in the context; a subject that was to move is in it, even if it is NonExistent."""

    @abstractmethod
    async def startup(self) -> None:
        """Initialize the state of every subject, then make the moves that are due."""

    async def in_one_batch(self, groups: Iterable[list[Subject]], target: State, how: How) -> Exception | None:
        """Move these groups and send the requests; returns the error if this batch or the last is never sent."""
        try:
            self.batch.open()
            for group in groups:
                await self.move(group, target, how)
            self.batch.send()
        except (BatchNotEmpty, BadInput) as error:
            self.process.log(self.half_sent, target=str(target), error=str(error))
            return error
        except ControllerMoved as error:
            self.process.log(self.superseded, target=str(target), error=str(error))
            raise
        return None

    async def move(self, subjects: Iterable[Subject], target: State, how: How) -> None:
        by_action: dict[str, list[Subject]] = {}
        for subject in subjects:
            source = self.states.setdefault(subject, self.non_existent)
            try:
                by_action.setdefault(self.action(subject, source, target), []).append(subject)
            except InvalidTransition as error:
                self.failed(subject, target, error)
        # Kafka's partition machine gives New partitions their first leader before it elects.
        for action, movable in sorted(by_action.items(), key=lambda found: found[0] == "elect"):
            if (perform := self.method_of(action)) is not None:
                await perform(self, movable, target, how)
            else:
                for subject in movable:
                    self.moved(subject, target, action)

    def action(self, subject: Subject, source: State, target: State, /) -> str:
        """The action of a move; raises InvalidTransition if the table forbids it."""
        return self.table.find(subject, source, target).action

    @classmethod
    def method_of(cls, action: str) -> Callable[..., Awaitable[None]] | None:
        """The method that performs an action of the table; None if a move is only recorded."""
        return getattr(cls, f"_{action}", None)

    def moved(self, subject: Subject, target: State, action: str, led: Columns = NONE, /) -> None:
        """Record a move that was made, and make it; `led` says how a partition is led and assigned."""
        self.record(action, subject, {"source": self.states[subject], "target": target, **led})
        self.states[subject] = target

    def begin(self, subject: Subject, state: State) -> None:
        """Record a state that a subject has without a move, and that Kafka does not log, and keep it."""
        self.record(SET, subject, {"target": state})
        self.states[subject] = state

    def failed(self, subject: Subject, target: State, error: Exception, /) -> None:
        """Record a move that was not made."""
        why: Columns = {"error": type(error).__name__, "detail": str(error)}
        self.record("refuse", subject, {"source": self.states[subject], "target": target, **why})

    def record(self, action: str, subject: Subject, columns: Columns) -> None:
        columns["controller_epoch"] = self.context.epoch
        self.process.record(self.kind, action, *subject, **columns)

    @abstractmethod
    def missing(self, subject: Subject) -> Exception | None:
        """The error where no leader was ever written; None if that is expected."""

    @abstractmethod
    def newer(self, tp: TopicPartition, state: LeaderAndIsr) -> Exception:
        """The error where a newer controller has written."""

    def usable(
        self,
        subjects: Mapping[TopicPartition, Subject],
        found: Mapping[TopicPartition, LeaderAndIsr | Exception],
        target: State,
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The states that moves can start from; the others are recorded as failures, but for those without an error.

        Raises BadInput where one is malformed, and with it the whole batch ends; 0.10 moves the others all the same.
        """
        malformed = [state for state in found.values() if isinstance(state, BadInput)]
        if malformed and self.process.generation.zookeeper.pipelined:
            raise malformed[0]
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, subject in subjects.items():
            state = found[tp]
            error: Exception | None = None
            if isinstance(state, NoNode):
                error = self.missing(subject)
            elif isinstance(state, Exception):
                error = state
            elif state.controller_epoch > self.context.epoch:
                error = self.newer(tp, state)
            else:
                states[tp] = state
            if error is not None:
                self.failed(subject, target, error)
        return states

    async def unclean_allowed(self, topics: Iterable[str]) -> dict[str, bool]:
        """By topic, whether a replica out of sync may lead: by the topic's configuration, else by the broker's."""
        usual = str(self.process.config[UNCLEAN])
        configs = await self.process.zk.topic_configs(topics)
        return {topic: own.get(UNCLEAN, usual).lower() == "true" for topic, own in configs.items()}


def printed(process: ControllerProcess, tp: TopicPartition) -> str:
    """A partition as the generation prints it in an error message."""
    return str(tp) if process.generation.log.names_election_strategies else f"[{tp.topic},{tp.partition}]"


def newer_controller_wrote(process: ControllerProcess, state: LeaderAndIsr) -> StateChangeFailed:
    """The error of a write to a state that a newer controller has written."""
    return failure("newer_controller_wrote", own=process.context.epoch, other=state.controller_epoch)
