"""The coordinator of transactions: the producer of each transactional id, and the state of its transaction.

Separate from `service.py` because that serves every client, and this only producers with a transactional id.
A transaction is empty, goes on, is being ended (its markers are on their way to the leaders of its partitions), or is
complete. When a producer asks for an id again, or a transaction takes too long, the id gets the next epoch, which
fences the producer that has the old one.

Kafka keeps the transactions in `__transaction_state`, the kit in a `TransactionLog`. It outlives brokers, as if that
topic had lost nothing. The coordinator of all ids is the live broker with the lowest id. A broker that takes over gets
the next coordinator epoch and goes on where the last one stopped; the log and the leaders refuse older epochs.

Kafka 2.0.1, 2.4.1: coordinator/transaction/TransactionCoordinator.scala, TransactionMetadata.scala,
TransactionStateManager.scala, TransactionMarkerChannelManager.scala, ProducerIdManager.scala (KIP-98)
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import OFFSETS_TOPIC, TopicPartition
from kafka_ctl.requests import WriteTxnMarkersRequest
from kafka_ctl.table import Move, TransitionTable
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.groups import coordinator_id
from kafka_ctl.wire.schema import Refusal

LONGEST = 900.0
"""Seconds that a transaction may take at most: Kafka's `transaction.max.timeout.ms`."""
CHECK_INTERVAL = 1.0
"""Seconds between two looks for transactions that take too long; Kafka's
`transaction.abort.timed.out.transaction.cleanup.interval.ms` is 60000."""
EXPIRY = 604800.0
"""Seconds after which an id without a transaction is forgotten: Kafka's `transactional.id.expiration.ms`."""
RETRY = 0.05
"""Seconds until a marker is sent again that a leader has not written."""
LAST_EPOCH = 0x7FFF - 1
"""A producer's epoch after which it gets another id, so that there is always one left to fence it."""


class TransactionState(StrEnum):
    """The states of a transaction; the names are Kafka's."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"


(EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, PREPARE_EPOCH_FENCE, DEAD) = (
    TransactionState
)

TRANSACTION = TransitionTable(
    "transaction",
    EMPTY,
    "2.0.1: coordinator/transaction/TransactionMetadata.scala",
    (
        #    source               target               action        effect
        Move(EMPTY, EMPTY, "initialize", "the producer gets its id and the next epoch"),
        Move(COMPLETE_COMMIT, EMPTY, "initialize", "the producer gets the next epoch"),
        Move(COMPLETE_ABORT, EMPTY, "initialize", "the producer gets the next epoch"),
        Move(EMPTY, ONGOING, "add", "the first partitions are known"),
        Move(ONGOING, ONGOING, "add", "more partitions are known"),
        Move(COMPLETE_COMMIT, ONGOING, "add", "the first partitions of the next one are known"),
        Move(COMPLETE_ABORT, ONGOING, "add", "the first partitions of the next one are known"),
        Move(ONGOING, PREPARE_COMMIT, "end", "it is decided: the markers are to be written"),
        Move(ONGOING, PREPARE_ABORT, "end", "it is given up: the markers are to be written"),
        Move(ONGOING, PREPARE_EPOCH_FENCE, "fence", "the next epoch fences its producer"),
        Move(PREPARE_EPOCH_FENCE, PREPARE_ABORT, "end", "it is given up: the markers are to be written"),
        Move(PREPARE_COMMIT, COMPLETE_COMMIT, "complete", "every partition has its marker"),
        Move(PREPARE_ABORT, COMPLETE_ABORT, "complete", "every partition has its marker"),
        Move(EMPTY, DEAD, "expire", "the id was not used for a week"),
        Move(COMPLETE_COMMIT, DEAD, "expire", "the id was not used for a week"),
        Move(COMPLETE_ABORT, DEAD, "expire", "the id was not used for a week"),
    ),
)
"""The moves of a transaction, the same in every generation that has transactions."""

COMPLETED = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
"""The state that follows each once the markers are written."""
RETRIABLE = (
    "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_FOR_PARTITION NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND "
    "REQUEST_TIMED_OUT"
).split()
"""The errors after which a marker is sent again.

Kafka 2.0.1: coordinator/transaction/TransactionMarkerRequestCompletionHandler.scala, onComplete
"""


@dataclass
class Transaction:
    """One transactional id: its producer, and its transaction."""

    id: str
    producer: int
    epoch: int = -1
    """The producer's, -1 before the first InitProducerId."""
    timeout: float = 0.0
    """Seconds, the producer's `transaction.timeout.ms`."""
    state: TransactionState = EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    """The partitions that it has written to; while it is being ended, those without a marker."""
    started: float = -1.0
    updated: float = 0.0


class TransactionLog:
    """The transactions of a lab, as its coordinators write them down: Kafka's `__transaction_state`."""

    def __init__(self) -> None:
        self.ids: dict[str, Transaction] = {}
        self.coordinator_epoch = -1
        """The epoch of the coordinator that took over last, -1 before the first: the log takes nothing from older ones.

        Kafka's is the leader epoch of the partition of `__transaction_state`, which begins at 0.
        """
        self.resigned = True
        """True if that coordinator knows that another broker is to take over."""
        self._producers = 0

    def next_producer(self) -> int:
        """A producer id that no producer has had."""
        self._producers += 1
        return self._producers


class TransactionCoordinator:
    """A broker process as the coordinator of transactions, if it is.

    Each method raises Refusal with what the producer is to be answered.
    """

    def __init__(self, broker: BrokerProcess, log: TransactionLog) -> None:
        self.broker, self.log = broker, log
        self._elected = False
        """True if this broker's metadata says that it coordinates."""
        self._epoch = -1
        self._watch: asyncio.Task[None] | None = None

    # Election

    @property
    def is_current(self) -> bool:
        """True if no other broker has taken over since this one did."""
        return self._epoch == self.log.coordinator_epoch >= 0

    def metadata_changed(self) -> None:
        """Take over, or resign, when the live brokers are others.

        Kafka 2.0.1: coordinator/transaction/TransactionCoordinator.scala, handleTxnImmigration, handleTxnEmigration
        """
        elected = coordinator_id(self.broker.live_brokers) == self.broker.id
        if elected and not self._elected:
            self._take_over()
        elif self._elected and not elected and self.is_current:
            self.log.resigned = True
        self._elected = elected

    def _take_over(self) -> None:
        self.log.coordinator_epoch += 1
        self._epoch, self.log.resigned = self.log.coordinator_epoch, False
        for transaction in self.log.ids.values():
            self._watch_times()
            if transaction.state in COMPLETED:
                self.broker.spawn(self._written(transaction))

    def _check_current(self) -> None:
        """A broker whose metadata is old goes on only if the one that took over has resigned."""
        if self._elected and not self.is_current and self.log.resigned:
            self._take_over()
        if not self._elected or not self.is_current:
            raise Refusal("NOT_COORDINATOR")

    # Requests

    def init_producer_id(self, id: str, timeout: float) -> tuple[int, int]:
        """The producer's id and its next epoch, which fences the one before; `timeout` in seconds."""
        if not id:
            raise Refusal("INVALID_REQUEST")
        if not 0 < timeout <= LONGEST:
            raise Refusal("INVALID_TRANSACTION_TIMEOUT")
        self._check_current()
        if id not in self.log.ids:
            self.log.ids[id] = Transaction(id, self.log.next_producer())
            self._watch_times()
        transaction = self.log.ids[id]
        if transaction.state == ONGOING:
            self._fence(transaction)
        if transaction.state in COMPLETED:
            raise Refusal("CONCURRENT_TRANSACTIONS")
        self._initialize(transaction, timeout)
        return transaction.producer, transaction.epoch

    def move(self, transaction: Transaction, state: TransactionState) -> None:
        """Let it go to a state; InvalidTransition where the table has no such move."""
        TRANSACTION.find(f"transaction {transaction.id}", transaction.state, state)
        transaction.state, transaction.updated = state, self.broker.clock.now()

    def _initialize(self, transaction: Transaction, timeout: float) -> None:
        self.move(transaction, EMPTY)
        transaction.timeout, transaction.started = timeout, -1.0
        if transaction.epoch >= LAST_EPOCH:
            transaction.producer, transaction.epoch = self.log.next_producer(), -1
        transaction.epoch += 1

    def add_partitions(self, id: str, producer: int, epoch: int, partitions: Collection[TopicPartition]) -> None:
        """Add partitions that a producer is about to write to; its transaction begins if none is under way."""
        transaction = self._transaction(id, producer, epoch)
        if transaction.state != ONGOING or not transaction.partitions.issuperset(partitions):
            self._add(transaction, partitions)

    def _add(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> None:
        if transaction.state != ONGOING:
            transaction.started = self.broker.clock.now()
        self.move(transaction, ONGOING)
        transaction.partitions.update(partitions)

    def end(self, id: str, producer: int, epoch: int, commits: bool) -> None:
        """Commit or abort. It is decided now; the markers are written afterwards.

        Kafka lets an epoch that is too new decide, and refuses it then; here nothing is decided by it.
        """
        transaction = self._transaction(id, producer, epoch)
        if transaction.state == ONGOING:
            self._end(transaction, commits)
        elif transaction.state != (COMPLETE_COMMIT if commits else COMPLETE_ABORT):
            raise Refusal("INVALID_TXN_STATE")

    def _transaction(self, id: str, producer: int, epoch: int) -> Transaction:
        if not id:
            raise Refusal("INVALID_REQUEST")
        self._check_current()
        transaction = self.log.ids.get(id)
        if transaction is None or transaction.producer != producer:
            raise Refusal("INVALID_PRODUCER_ID_MAPPING")
        if epoch != transaction.epoch:
            raise Refusal("INVALID_PRODUCER_EPOCH")
        if transaction.state in COMPLETED:
            raise Refusal("CONCURRENT_TRANSACTIONS")
        return transaction

    # Ending

    def _fence(self, transaction: Transaction) -> None:
        """Abort with the next epoch, which no producer gets: the old one cannot write any more."""
        self.move(transaction, PREPARE_EPOCH_FENCE)
        transaction.epoch += 1
        self._end(transaction, commits=False)

    def _end(self, transaction: Transaction, commits: bool) -> None:
        self.move(transaction, PREPARE_COMMIT if commits else PREPARE_ABORT)
        self.broker.spawn(self._written(transaction))

    def _complete(self, transaction: Transaction) -> None:
        self.move(transaction, COMPLETED[transaction.state])

    def _expire(self, transaction: Transaction) -> None:
        self.move(transaction, DEAD)
        del self.log.ids[transaction.id]

    async def _written(self, transaction: Transaction) -> None:
        """Send the markers until every partition has its own, or another broker has taken over."""
        epoch = self._epoch
        while transaction.partitions and transaction.state in COMPLETED:
            # A partition that is not known any more has been deleted.
            led = {tp: self._leader(tp) for tp in sorted(transaction.partitions)}
            transaction.partitions.difference_update(tp for tp, leader in led.items() if leader is None)
            live = {leader for leader in led.values() if leader in self.broker.live_brokers}
            sent = await asyncio.gather(
                *(self._sent(transaction, broker, [tp for tp in led if led[tp] == broker]) for broker in sorted(live))
            )
            if not all(sent) or self.log.coordinator_epoch != epoch:
                return
            if transaction.partitions:
                await self.broker.clock.sleep(RETRY, background=True)
        if self.log.coordinator_epoch == epoch:
            self._complete(transaction)

    def _leader(self, tp: TopicPartition) -> int | None:
        """The broker that leads a partition, alive or not; None where there is no such partition."""
        if tp.topic == OFFSETS_TOPIC:
            return coordinator_id(self.broker.live_brokers)
        state = self.broker.metadata.get(tp)
        return None if state is None else state.leader

    async def _sent(self, transaction: Transaction, broker: int, partitions: list[TopicPartition]) -> bool:
        """Send markers to one broker, and note which it has written; False where no more are to be sent."""
        commits, epoch = transaction.state == PREPARE_COMMIT, self._epoch
        request = WriteTxnMarkersRequest(transaction.producer, transaction.epoch, commits, epoch, tuple(partitions))
        CAUSE.set(None)
        try:
            response, _ = await self.broker.network.call(self.broker.id, broker, request)
        except ConnectionError:
            return True
        if self.log.coordinator_epoch != epoch:
            return False
        errors = {tp: response.errors.get(tp) for tp in partitions}
        transaction.partitions.difference_update(tp for tp, error in errors.items() if error is None)
        return {*errors.values()} <= {None, *RETRIABLE}

    # Time

    def _watch_times(self) -> None:
        if self._watch is None or self._watch.done():
            self._watch = self.broker.spawn(self._checked())

    async def _checked(self) -> None:
        """Abort transactions that take too long, and forget ids that are not used, every `CHECK_INTERVAL`.

        Kafka 2.0.1: coordinator/transaction/TransactionStateManager.scala, timedOutTransactions,
        enableTransactionalIdExpiration
        """
        while self.is_current:
            now = self.broker.clock.now()
            for one in list(self.log.ids.values()):
                if one.state == ONGOING and one.started + one.timeout < now:
                    self._fence(one)
                elif one.state in (EMPTY, *COMPLETED.values()) and one.updated + EXPIRY <= now:
                    self._expire(one)
            await self.broker.clock.sleep(CHECK_INTERVAL, background=True)
