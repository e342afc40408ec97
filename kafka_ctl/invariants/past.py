"""The records of a run by subject, to find out why an invariant is broken.

Nothing is indexed before the first question; each then costs no more than the records since the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.trace import details
from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import Record

START = -1
"""Before the first record."""


class Past:
    """The records so far, newest first."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self._indexed = 0
        self._by: dict[tuple[object, ...], list[Record]] = {}

    def _index(self) -> None:
        for record in self.records[self._indexed :]:
            key: tuple[object, ...] = (record.kind, record.action)
            if record.kind == "zk":
                key = (*key, record.path)
            elif record.topic is not None:
                key = (*key, TopicPartition(record.topic, record.partition or 0))
            elif record.kind in ("broker", "fault", "response"):
                key = (*key, record.broker)
            self._by.setdefault(key, []).append(record)
        self._indexed = len(self.records)

    def of(
        self,
        kind: str,
        action: str,
        about: object = None,
        after: int = START,
        *,
        broker: int | None = None,
        actor: str | None = None,
    ) -> Iterator[Record]:
        """Records of a kind and action after the record `after`, the newest first.

        `about` is the path of an operation, the partition, or else the broker of a process's record.
        """
        if self._indexed < len(self.records):
            self._index()
        for record in reversed(self._by.get((kind, action) if about is None else (kind, action, about), ())):
            if record.seq <= after:
                return
            if broker in (None, record.broker) and actor in (None, record.actor):
                yield record

    def wrote(self, action: str, path: str) -> int:
        """The `seq` of the last operation on a path that succeeded; START if there is none."""
        return next((record.seq for record in self.of("zk", action, path) if record.error is None), START)

    def last(self, kind: str, action: str, about: object = None) -> int:
        """The `seq` of the last such record; START if there is none."""
        return next((record.seq for record in self.of(kind, action, about)), START)

    def logged(self, message: str, after: int = START, actor: str | None = None) -> Iterator[tuple[Record, dict]]:
        """The messages of controllers with their fields, the newest first."""
        return ((record, details.fields(record)) for record in self.of("controller", message, after=after, actor=actor))

    def began(self, record: Record) -> int:
        """The record at which the processing of a record's event began; the record itself if it belongs to none."""
        cause = self.records[record.cause] if record.cause is not None else None
        return cause.seq if cause is not None and cause.kind == "event" else record.seq

    def request(self, record: Record) -> Record | None:
        """The request that a record follows from."""
        asked: Record | None = record
        while asked is not None and asked.kind != "request":
            asked = self.records[asked.cause] if asked.cause is not None else None
        return asked

    def asked(self, record: Record) -> int:
        """The `seq` of the request that a record follows from; START if from none."""
        asked = self.request(record)
        return asked.seq if asked else START

    # Brokers and controllers

    def ended(self, actor: str, after: int) -> bool:
        """True if a controller has resigned or its process has ended since a record."""
        broker = number_of(actor)
        resigned = any(True for _ in self.logged("resigned", after, actor))
        ends = (("broker", "start"), ("fault", "kill"), ("broker", "stopped"))
        return resigned or any(self.last(kind, action, broker) > after for kind, action in ends)

    def life(self, broker: int) -> int:
        """The first registration of the present process of a broker; START if there is none."""
        started = self.last("broker", "start", broker)
        path = f"/brokers/ids/{broker}"
        made = (r for r in self.of("zk", "create", path, started) if r.error is None and r.actor.startswith("broker"))
        return min((r.seq for r in made), default=START)

    def term(self, actor: str) -> int:
        """The record at which the acting controller began to read the cluster; START if it never did."""
        return next((record.seq for record, _ in self.logged("initializing_context", actor=actor)), START)

    def noticed(self, broker: int, actor: str) -> bool:
        """True if the acting controller knows that the present process of a broker is another than the one before."""
        life = self.life(broker)
        if self.term(actor) > life:
            return True
        greeted = (r for r, fields in self.logged("broker_startup", life, actor) if broker in fields["brokers"])
        return any(self.began(record) > life for record in greeted)

    def sent(self, tp: TopicPartition, broker: int, after: int) -> Iterator[Record]:
        """LeaderAndIsr requests about a partition that went to a broker, the newest first."""
        made = self.of("request", "LeaderAndIsr", tp, after, broker=broker)
        return (r for r in made if not self._unsent(r))

    def _unsent(self, request: Record) -> bool:
        """True if the controller knew nothing of the broker that a request was addressed to."""
        for logged, fields in self.logged("not_sending", request.seq, request.actor):
            if (logged.cause, fields["broker"], fields["request"]) == (request.cause, request.broker, request.action):
                return f"{request.topic}-{request.partition}" in fields["partitions"]
        return False

    def ignored_leader(self, tp: TopicPartition, broker: int, state: LeaderAndIsr, after: int = START) -> bool:
        """True if a broker did not become follower in this leader epoch because it took the leader for dead."""
        became = self.of("broker", "become-follower", tp, after, broker=broker)
        return next((r.error for r in became if r.leader_epoch == state.leader_epoch), None) == "LEADER_NOT_AVAILABLE"

    def announced(self, tp: TopicPartition, broker: int, after: int = START) -> Iterator[Record]:
        """UpdateMetadata requests about a partition that were made out for a broker, the newest first."""
        made = self.of("request", "UpdateMetadata", tp, after)
        return (r for r in made if broker in details.numbers(details.named(r.detail).get("brokers")))


def isr_before(record: Record) -> tuple[int, ...]:
    """The ISR that a leader has changed."""
    return details.numbers(details.named(record.detail).get("isr_before"))
