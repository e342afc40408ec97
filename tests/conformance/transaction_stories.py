"""Stories with transactions: what brokers answer to the requests, one after another, and what their log files hold.

The requests are made by hand, so that each answer can be seen. `record_transactions.py` plays the stories on real Kafka
and writes what came of it into `transactions/`; the tests play them on a lab that listens. Broker 1 is the controller
and the coordinator of all producers, brokers 2 and 3 have the two partitions of a topic.
Kafka 2.0.1: coordinator/transaction/TransactionCoordinator.scala; log/ProducerStateManager.scala (KIP-98)
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.batches import CONTROL, TRANSACTIONAL, Batch, Record, read_batch, read_records, split, write_batch
from kafka_ctl.wire.contents import COMMIT, coordinator_epoch
from kafka_ctl.wire.schema import name_of
from tests.wire_clients import COMMITTED, Asking, eventually, fetch_of, listening
from tools.recorder.release import RECORDINGS

TOPIC, ASSIGNMENT = "orders", {0: (2, 3), 1: (3, 2)}
GENERATIONS = ("2.0", "2.4")
"""0.10 has no transactions."""
CONFIG = {"auto.leader.rebalance.enable": False}
NOT_YET = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION")
"""The errors of a broker that does not know yet that it leads."""
LOADING = ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE")
"""The errors of a coordinator that has not read its partition yet."""
CONCURRENT = "CONCURRENT_TRANSACTIONS"
ERROR = ("error_code",)
COMMIT_ERROR = ("topics", 0, "partitions", 0, "error_code")
MARK_ERROR = ("markers", 0, "topics", 0, "partitions", 0, "error_code")
"""Where the error stands in an answer: of most requests, of a commit of offsets, of markers."""


class Brokers(Protocol):
    """Brokers that a story is played on: those of real Kafka, or a lab's."""

    brokers: Sequence[int]
    bootstrap_servers: str

    def kill(self, broker: int) -> None:
        """Kill the process; its session is not over yet."""

    def start(self, broker: int) -> None: ...

    def state(self, partition: int) -> tuple[int, int]:
        """The leader, and how many replicas are in sync."""

    def files(self, broker: int, partition: int) -> bytes:
        """The log of a replica."""


# Producers


class Producer:
    """A transactional producer whose requests are sent one by one; `answers` has each with its answer."""

    def __init__(self, broker: Asking, answers: list[str] | None = None) -> None:
        self.broker = broker
        self.answers: list[str] = [] if answers is None else answers
        self.id = self.epoch = -1

    def note(self, what: str, outcome: object) -> None:
        self.answers.append(f"{what}: {outcome}")

    def _ended(self, ask: Callable[[], str | None], *awaited: str) -> str | None:
        """The answer once it is none of those that a client waits out."""
        found: list[str | None] = []

        def done() -> bool:
            found.append(ask())
            return found[-1] not in awaited

        eventually(done)
        return found[-1]

    def _error(self, name: str, version: int, path: Sequence[Any], *awaited: str, **fields: Any) -> str | None:
        """The error of an answer, where it stands in it, once it is none that a client waits out."""
        ask = functools.partial(self.broker.ask, name, version, **fields)
        return self._ended(lambda: name_of(functools.reduce(operator.getitem, path, ask())), *awaited)

    def coordinator(self, kind: int = 1) -> None:
        error = self._error("FindCoordinator", 1, ERROR, "COORDINATOR_NOT_AVAILABLE", key="t", key_type=kind)
        self.note(f"FindCoordinator type {kind}", error)

    def init(self, id: str | None = "t", timeout: int = 60_000, waits: bool = False) -> None:
        """Ask for a producer id; with `waits` until no transaction is under way any more."""

        def asked() -> str | None:
            reported = self.broker.ask("InitProducerId", 1, transactional_id=id, transaction_timeout=timeout)
            error = name_of(reported["error_code"])
            if error is None and id is not None:
                self.id, self.epoch = reported["producer_id"], reported["producer_epoch"]
            return error

        error = self._ended(asked, *LOADING, *([CONCURRENT] if waits else []))
        self.note(f"InitProducerId {id!r} {timeout}", error or f"epoch {self.epoch}")

    def _who(self, id: int | None = None, epoch: int | None = None) -> dict[str, Any]:
        return {
            "producer_id": self.id if id is None else id,
            "producer_epoch": self.epoch if epoch is None else epoch,
        }

    def _added(self, name: str, parts: Mapping[str, tuple[str, int]], who: Mapping[str, Any]) -> str | None:
        """Add partitions, each with what it is called in the answer, to a transaction."""
        listed: dict[str, list[int]] = {}
        for topic, number in parts.values():
            listed.setdefault(topic, []).append(number)
        fields = {f"v3_and_below_{key}": value for key, value in {"transactional_id": name, **who}.items()}
        topics = [{"name": topic, "partitions": numbers} for topic, numbers in listed.items()]

        def asked() -> str:
            reported = self.broker.ask("AddPartitionsToTxn", 1, v3_and_below_topics=topics, **fields)
            found = {
                (topic["name"], one["partition_index"]): name_of(one["partition_error_code"])
                for topic in reported["results_by_topic_v3_and_below"]
                for one in topic["results_by_partition"]
            }
            return " ".join(f"{called}={found[part]}" for called, part in parts.items())

        return self._ended(asked, " ".join(f"{called}={CONCURRENT}" for called in parts))

    def add(self, *topics: str, id: int | None = None, epoch: int | None = None, name: str = "t") -> None:
        added = self._added(name, {topic: (topic, 0) for topic in topics}, self._who(id, epoch))
        self.note(f"AddPartitionsToTxn {name!r}", added)

    def write(self, sequence: int, epoch: int | None = None) -> None:
        written = self._written(self.broker, "t", 0, sequence, b"x", 5000, self._who(None, epoch)["producer_epoch"])
        self.note(f"Produce sequence {sequence}", written)

    def _written(
        self, leader: Asking, name: str, partition: int, sequence: int, value: bytes, timeout: int, epoch: int
    ) -> str:
        """Write one record: the error, or its offset."""
        record = Record(0, round(time.time() * 1000), None, value)
        batch = write_batch(
            [record], producer=self.id, producer_epoch=epoch, sequence=sequence, attributes=TRANSACTIONAL
        )
        data = [{"name": TOPIC, "partition_data": [{"index": partition, "records": batch}]}]
        reported = leader.ask("Produce", 6, transactional_id=name, acks=-1, timeout=timeout, topic_data=data)
        part = reported["responses"][0]["partition_responses"][0]
        return name_of(part["error_code"]) or f"offset {part['base_offset']}"

    def end(self, commits: bool, id: int | None = None, epoch: int | None = None, name: str = "t") -> None:
        fields = {"transactional_id": name, "committed": commits} | self._who(id, epoch)
        error = self._error("EndTxn", 1, ERROR, CONCURRENT, **fields)
        self.note(f"EndTxn {name!r} {'commit' if commits else 'abort'}", error)

    def add_offsets(self, group: str, epoch: int | None = None) -> None:
        fields = {"transactional_id": "t", "group_id": group} | self._who(None, epoch)
        self.note(f"AddOffsetsToTxn {group!r}", self._error("AddOffsetsToTxn", 1, ERROR, CONCURRENT, **fields))

    def commit_offset(self, group: str, offset: int, epoch: int | None = None, topic: str = "orders") -> None:
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        fields = {"transactional_id": "t", "group_id": group} | self._who(None, epoch)
        topics = [{"name": topic, "partitions": [part]}]
        error = self._error("TxnOffsetCommit", 1, COMMIT_ERROR, *LOADING, topics=topics, **fields)
        self.note(f"TxnOffsetCommit {group!r} {topic} {offset}", error)

    def commit_alone(self, group: str, offset: int) -> None:
        """A commit outside of a transaction."""
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        fields = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        topics = [{"name": "orders", "partitions": [part]}]
        error = self._error("OffsetCommit", 2, COMMIT_ERROR, topics=topics, **fields)
        self.note(f"OffsetCommit {group!r} {offset}", error)

    def offset(self, group: str) -> int:
        topics, found = [{"name": "orders", "partition_indexes": [0]}], {}

        def asked() -> str | None:
            found.update(self.broker.ask("OffsetFetch", 2, group_id=group, topics=topics))
            return name_of(found["error_code"])

        assert self._ended(asked, *LOADING) is None, found
        return int(found["topics"][0]["partitions"][0]["committed_offset"])

    def offsets(self, group: str, expected: int | None = None) -> None:
        """What the group has committed; with a number, once it is that."""
        if expected is not None:
            eventually(lambda: self.offset(group) == expected)
        self.note(f"OffsetFetch {group!r}", self.offset(group))

    def mark(self, topic: str, epoch: int | None = None, coordinator: int = 1000) -> None:
        """A marker that no coordinator has sent."""
        marker = self._who(None, epoch) | {
            "transaction_result": False,
            "coordinator_epoch": coordinator,
            "topics": [{"name": topic, "partition_indexes": [0]}],
        }
        self.note(f"WriteTxnMarkers {topic}", self._error("WriteTxnMarkers", 0, MARK_ERROR, markers=[marker]))

    def fetched(self, *, stable: bool) -> None:
        """What a reader of committed records is told; with `stable`, once nothing is undecided."""
        if stable:
            eventually(lambda: (part := fetched(self.broker))["last_stable_offset"] == part["high_watermark"])
        part = fetched(self.broker)
        aborted = [(one["producer_id"] - self.id, one["first_offset"]) for one in part["aborted_transactions"] or ()]
        self.note("Fetch", f"stable {part['last_stable_offset']} of {part['high_watermark']}, aborted {aborted}")


def fetched(leader: Asking, partition: int = 0) -> dict[str, Any]:
    """What a reader of committed records gets of a partition."""
    reported = leader.ask("Fetch", 4, **COMMITTED, topics=fetch_of((TOPIC, partition, 0)))
    return dict(reported["responses"][0]["partitions"][0])


class NotedProducer(Producer):
    """A producer of a story: its requests go to the leaders, and its answers have its name before them."""

    def __init__(self, play: Play, name: str, transactional_id: str) -> None:
        super().__init__(play.connection(1), play.lines)
        self.play, self.name, self.transactional_id = play, name, transactional_id

    def note(self, what: str, outcome: object) -> None:
        """Append the outcome of a request, with the producer's name before it."""
        super().note(f"{self.name}: {what}", outcome)

    def begin(self) -> None:
        """Ask for a producer id, until no transaction is under way any more."""
        self.init(self.transactional_id, waits=True)
        self.play.producers.setdefault(self.id, f"p{len(self.play.producers)}")

    def enlist(self, *partitions: int) -> None:
        """Add partitions to the transaction."""
        parts = {f"{TOPIC}-{number}": (TOPIC, number) for number in partitions}
        self.note("AddPartitionsToTxn", self._added(self.transactional_id, parts, self._who()))

    def send(self, partition: int, sequence: int, value: str) -> None:
        """Write one record; asked again until the leader knows that it leads."""
        record = self.transactional_id, partition, sequence, value.encode(), 30_000, self.epoch

        def asked() -> str:
            return self._written(self.play.to_leader(partition), *record)

        self.note(f"Produce {value} to {TOPIC}-{partition}, sequence {sequence}", self._ended(asked, *NOT_YET))

    def commit(self) -> None:
        self.end(True, name=self.transactional_id)

    def abort(self) -> None:
        self.end(False, name=self.transactional_id)


# Stories


class Play:
    """A story while it is played: the brokers, connections to them, and what came of each step."""

    def __init__(self, on: Brokers) -> None:
        self.on = on
        self.lines: list[str] = []
        self.producers: dict[int, str] = {}
        """Producer ids, which differ from cluster to cluster, by their names in the text."""
        self._connections: dict[int, Asking] = {}

    def connection(self, broker: int) -> Asking:
        if broker not in self._connections:
            self._connections[broker] = Asking(self.on, broker)
        return self._connections[broker]

    def to_leader(self, partition: int) -> Asking:
        return self.connection(self.on.state(partition)[0])

    def coordinator(self) -> None:
        asked = {"key": "t", "key_type": 1}

        def found() -> bool:
            return self.connection(1).ask("FindCoordinator", 1, **asked)["error_code"] == 0

        eventually(found, "a coordinator")
        self.lines.append(f"coordinator: {self.connection(1).ask('FindCoordinator', 1, **asked)['node_id']}")

    def kill(self, broker: int) -> None:
        self.lines.append(f"kill {broker}")
        self.on.kill(broker)
        self._connections.pop(broker).connection.close()

    def close(self) -> None:
        for asking in self._connections.values():
            asking.connection.close()

    def leads(self, broker: int, partition: int) -> None:
        """Wait until a broker leads."""
        eventually(lambda: self.on.state(partition)[0] == broker, f"{broker} leads {TOPIC}-{partition}")
        self.lines.append(f"{TOPIC}-{partition} is led by {broker}")

    def read(self, partition: int, end: int, open: bool = False) -> None:
        """Fetch as a reader of committed records, once the log ends there and, unless `open`, all is decided."""

        def holds() -> bool:
            part = fetched(self.to_leader(partition), partition)
            stable = open or part["last_stable_offset"] == end
            return part["error_code"] == 0 and part["high_watermark"] == end and stable

        eventually(holds, f"{TOPIC}-{partition} ends at {end}")
        part = fetched(self.to_leader(partition), partition)
        aborted = [f"{self.producers[a['producer_id']]} from {a['first_offset']}" for a in part["aborted_transactions"]]
        self.lines.append(
            f"read {TOPIC}-{partition}: stable {part['last_stable_offset']} of {part['high_watermark']}, aborted: "
            + (", ".join(aborted) or "nothing")
        )
        self.lines += [f"  {line}" for line in self.batches(part["records"] or b"")]

    def batches(self, data: bytes) -> Iterator[str]:
        """A log in words, a line a batch."""
        for batch in (read_batch(part) for _, part in split(data)):
            who = f"{self.producers[batch.producer]}, epoch {batch.producer_epoch}"
            yield f"{batch.base_offset}: {_content(batch)}, {who}, leader epoch {batch.leader_epoch}"

    def start(self, broker: int) -> None:
        """Start a broker, and wait until it is in sync."""
        self.lines.append(f"start {broker}")
        self.on.start(broker)
        eventually(lambda: all(self.on.state(partition)[1] == 2 for partition in ASSIGNMENT), f"{broker} is in sync")

    def logs(self) -> None:
        """The log of each replica, once it has all that its leader has."""
        for partition, replicas in ASSIGNMENT.items():
            leader = self.on.state(partition)[0]
            for broker in sorted(replicas):
                eventually(
                    lambda b=broker, p=partition, of=leader: self.on.files(b, p) == self.on.files(of, p),
                    f"{broker} has all of {TOPIC}-{partition}",
                )
                self.lines.append(f"log of {TOPIC}-{partition} on {broker}")
                self.lines += [f"  {line}" for line in self.batches(self.on.files(broker, partition))]


def _content(batch: Batch) -> str:
    records = read_records(batch)
    if batch.attributes & CONTROL:
        kind = "commit" if int.from_bytes((records[0].key or b"")[2:4], "big") == COMMIT else "abort"
        return f"{kind} by coordinator epoch {coordinator_epoch(batch)}"
    return f"{' '.join((record.value or b'').decode() for record in records)}, sequence {batch.sequence}"


def leader_dies(play: Play) -> None:
    """The leader dies before it has the marker; the next one gets it. Then a transaction is given up."""
    play.coordinator()
    producer = NotedProducer(play, "producer", "t")
    producer.begin()
    producer.enlist(0, 1)
    producer.send(0, 0, "a")
    producer.send(1, 0, "b")
    play.read(0, 1, open=True)
    play.kill(2)
    producer.commit()
    play.leads(3, 0)
    play.read(0, 2)
    play.read(1, 2)
    producer.enlist(0)
    producer.send(0, 1, "c")
    producer.abort()
    play.read(0, 4)
    play.start(2)
    play.logs()


def second_producer(play: Play) -> None:
    """Another producer with the same transactional id fences the first; the leader dies within its transaction."""
    play.coordinator()
    first, second, other = (NotedProducer(play, *names) for names in (("first", "t"), ("second", "t"), ("other", "u")))
    first.begin()
    first.enlist(0)
    first.send(0, 0, "a")
    other.begin()
    other.enlist(0)
    other.send(0, 0, "x")
    other.commit()
    play.read(0, 3, open=True)
    second.begin()
    play.read(0, 4)
    first.send(0, 1, "late")
    first.commit()
    second.enlist(0)
    second.send(0, 0, "b")
    play.kill(2)
    play.leads(3, 0)
    second.send(0, 1, "c")
    first.send(0, 1, "late")
    second.commit()
    play.read(0, 7)
    play.start(2)
    play.logs()


STORIES: Mapping[str, Callable[[Play], None]] = {"leader_dies": leader_dies, "second_producer": second_producer}


def played(story: str, on: Brokers) -> list[str]:
    """What came of each step of a story."""
    play = Play(on)
    try:
        STORIES[story](play)
    finally:
        play.close()
    return play.lines


# The recordings


def path(generation: str, story: str) -> Path:
    return RECORDINGS / "transactions" / generation / f"{story}.txt"


def text(kafka: str, story: str, lines: Sequence[str]) -> str:
    """What is kept of a story."""
    title = f"# {(STORIES[story].__doc__ or '').strip()}"
    head = [title, f"# Kafka {kafka}, recorded by tools.recorder.record_transactions.py."]
    return "".join(f"{line}\n" for line in [*head, *lines])


def recorded(generation: str, story: str) -> list[str]:
    lines = path(generation, story).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


# The kit


class Kit:
    """The brokers of a lab that listens."""

    def __init__(self, lab: Any) -> None:
        self.lab, self.brokers, self.bootstrap_servers = lab, sorted(lab.brokers), lab.bootstrap_servers

    def kill(self, broker: int) -> None:
        self.lab.kill(broker)

    def start(self, broker: int) -> None:
        self.lab.start(broker)

    def state(self, partition: int) -> tuple[int, int]:
        found = self.lab.partition(TOPIC, partition)
        return found.leader, len(found.isr)

    def files(self, broker: int, partition: int) -> bytes:
        world, tp = self.lab.world, TopicPartition(TOPIC, partition)

        def read() -> bytes:
            log = world.brokers[broker].disk.log(tp)
            contents = world.listeners.shared.contents
            return b"".join(data for _, data in contents.read(tp, log, log.start, log.end, 1 << 20))

        return bytes(world.clock.call(read))


@contextmanager
def on_the_kit(generation: str) -> Iterator[Kit]:
    """A lab with the topic, whose brokers listen."""
    with listening(generation, config=CONFIG) as lab:
        lab.create_topic(TOPIC, assignment=ASSIGNMENT)
        lab.settle()
        yield Kit(lab)
