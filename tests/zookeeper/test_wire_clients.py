"""Clients that nobody here wrote join a lab: kcat, kafka-python and confluent-kafka.

They list, create, produce and consume; a broker and a controller die under them, and nothing acknowledged is lost.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from labs import play, until_quiet
from wire_clients import closed_connections, eventually, kcat, listening

from kafka_ctl import Lab

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
kafka = pytest.importorskip("kafka", reason="needs kafka-python")
confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin", reason="needs confluent-kafka")


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param) as lab:
        yield lab
        assert closed_connections(lab) == []


def servers(lab: Lab) -> list[str]:
    return lab.bootstrap_servers.split(",")


def records_of(lab: Lab, topic: str, number: int, **options: Any) -> list[Any]:
    """The records that kafka-python finds in a topic, once there are so many."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers(lab), auto_offset_reset="earliest", **options)
    # Metadata first: a group whose leader hears of the topic only while it assigns may assign nothing, and keep it so.
    eventually(lambda: bool(consumer.partitions_for_topic(topic)), f"partitions of {topic}")
    consumer.subscribe([topic])
    found: list[Any] = []

    def enough() -> bool:
        for batch in consumer.poll(timeout_ms=200).values():
            found.extend(batch)
        return len(found) >= number

    try:
        eventually(enough, f"{number} records of {topic}")
        if options.get("group_id"):
            consumer.commit()
    finally:
        consumer.close()
    return found


def test_kcat_lists_produces_and_consumes(lab: Lab) -> None:
    """In every generation: record batches in 2.0 and 2.4, messages of magic 1 in 0.10."""
    until_quiet(lab.create_topic, "kcat", partitions=2, replication_factor=3)
    listed = kcat(lab, "-L", "-t", "kcat")
    assert "3 brokers:" in listed
    assert 'topic "kcat" with 2 partitions:' in listed
    for number in range(2):
        view = lab.partition("kcat", number)
        assert f"partition {number}, leader {view.leader}, replicas: {','.join(map(str, view.replicas))}" in listed
    assert f"broker {lab.controller.id} at" in listed.replace(" (controller)", "")
    kcat(lab, "-P", "-t", "kcat", "-p", "1", "-K:", "-X", "acks=all", given="a:1\nb:2\nc:3\n")
    found = kcat(lab, "-C", "-t", "kcat", "-p", "1", "-o", "beginning", "-e", "-q", "-f", "%o %k %s\n")
    assert found == "0 a 1\n1 b 2\n2 c 3\n"
    assert kcat(lab, "-C", "-t", "kcat", "-p", "1", "-o", "2", "-e", "-q", "-f", "%o %s\n") == "2 3\n"
    assert kcat(lab, "-Q", "-t", "kcat:1:-1").split()[-1] == "3"


def test_kcat_reads_what_the_lab_has_produced(lab: Lab) -> None:
    """The lab's own records are numbers; both count in one log."""
    play(lab, "create_topic mixed partitions=1 replication_factor=3; settle; produce mixed 0 records=2")
    kcat(lab, "-P", "-t", "mixed", "-p", "0", given="hello\n")
    lab.produce("mixed", 0)
    found = kcat(lab, "-C", "-t", "mixed", "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %s\n")
    assert found == "0 1\n1 2\n2 hello\n3 4\n"


def test_what_is_produced_comes_back_unchanged(lab: Lab) -> None:
    """Key, value, timestamp, and headers where the release has them; also compressed, empty and null."""
    old = lab.generation.name == "0.10"
    until_quiet(lab.create_topic, "same", partitions=1, replication_factor=3)
    headers = [] if old else [("h", b"\x00\xff"), ("", b"")]
    given = [(b"k", b"v", 1_500_000_000_000), (None, b"", 1_500_000_000_001), (b"", None, 1_500_000_000_002)]
    for codec in (None, "gzip"):
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers(lab), acks="all", compression_type=codec, enable_idempotence=not old
        )
        for key, value, time_ms in given:
            producer.send("same", key=key, value=value, timestamp_ms=time_ms, headers=headers).get(30)
        producer.close()
    found = records_of(lab, "same", 6)
    assert [(one.key, one.value, one.timestamp) for one in found] == given * 2
    assert [one.offset for one in found] == list(range(6))
    assert all(list(one.headers) == headers for one in found)


def test_clients_create_grow_and_delete_topics(lab: Lab) -> None:
    """What kafka-python's administrator asks for is what the lab then has."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=servers(lab))
    try:
        new = kafka.admin.NewTopic("made", num_partitions=2, replication_factor=2)
        admin.create_topics([new])
        assert len([view for view in lab.partitions() if view.topic == "made"]) == 2
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([new])
        with pytest.raises(kafka.errors.InvalidReplicationFactorError):
            admin.create_topics([kafka.admin.NewTopic("large", num_partitions=1, replication_factor=4)])
        if lab.generation.name != "0.10":
            admin.create_partitions({"made": kafka.admin.NewPartitions(total_count=3)})
            assert len([view for view in lab.partitions() if view.topic == "made"]) == 3
            admin.delete_topics(["made"])
            lab.settle()
            assert "made" not in {view.topic for view in lab.partitions()}
    finally:
        admin.close()


def test_a_group_divides_partitions_and_remembers_offsets(lab: Lab) -> None:
    """Two members get all of it, once; a third, later, begins where they have stopped."""
    until_quiet(lab.create_topic, "shared", partitions=4, replication_factor=3)
    for number in range(4):
        kcat(lab, "-P", "-t", "shared", "-p", str(number), given="".join(f"{number}-{n}\n" for n in range(10)))
    seen: list[list[str]] = [[], []]
    stop = threading.Event()

    def member(place: int) -> None:
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": lab.bootstrap_servers,
                "group.id": "team",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe(["shared"])
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                seen[place].append(message.value().decode())
                consumer.commit(message, asynchronous=False)
        consumer.close()

    threads = [threading.Thread(target=member, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: len(set(seen[0]) | set(seen[1])) == 40, "the group has consumed all")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    kcat(lab, "-P", "-t", "shared", "-p", "2", given="late\n")
    assert [one.value for one in records_of(lab, "shared", 1, group_id="team")] == [b"late"]


def test_a_static_member_restarts_without_a_rebalance() -> None:
    """2.4 knows `group.instance.id` (KIP-345): the group's generation stays, and the partitions are the same."""
    with listening("2.4") as lab:
        until_quiet(lab.create_topic, "static", partitions=4, replication_factor=3)

        def member(instance: str) -> Any:
            consumer = confluent.Consumer(
                {
                    "bootstrap.servers": lab.bootstrap_servers,
                    "group.id": "static",
                    "group.instance.id": instance,
                    "session.timeout.ms": 30_000,
                }
            )
            consumer.subscribe(["static"])
            return consumer

        def has(consumer: Any, number: int) -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == number

        one, two = member("one"), member("two")
        try:
            eventually(lambda: has(one, 2) & has(two, 2), "both have their part")
            kept = {(tp.topic, tp.partition) for tp in two.assignment()}
            group = lab.world.listeners.shared.groups.groups["static"]
            generation = group.generation
            two.close()  # a static member leaves its group only when its session ends
            two = member("two")
            eventually(lambda: has(one, 2) & has(two, 2), "the restarted one has its part")
            assert {(tp.topic, tp.partition) for tp in two.assignment()} == kept
            assert (group.generation, group.state) == (generation, "Stable")
        finally:
            one.close()
            two.close()


class Stream:
    """A producer that sends numbered records with acks=all, again where it must, and what was acknowledged."""

    def __init__(self, lab: Lab, topic: str, partitions: int) -> None:
        self.acknowledged: dict[int, list[int]] = {number: [] for number in range(partitions)}
        self.topic, self.stopped = topic, threading.Event()
        self._send = self._confluent(lab) if topic == "confluent" else self._kafka_python(lab)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _kafka_python(self, lab: Lab) -> Any:
        old = lab.generation.name == "0.10"
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers(lab),
            acks="all",
            retries=1000,
            enable_idempotence=not old,
            max_in_flight_requests_per_connection=1,
            request_timeout_ms=5000,
            delivery_timeout_ms=60000,
            reconnect_backoff_max_ms=200,
        )

        def send(value: int, partition: int) -> bool:
            producer.send(self.topic, str(value).encode(), partition=partition).get(60)
            return True

        self._close = producer.close
        return send

    def _confluent(self, lab: Lab) -> Any:
        producer = confluent.Producer(
            {
                "bootstrap.servers": lab.bootstrap_servers,
                "acks": "all",
                "enable.idempotence": lab.generation.name != "0.10",
                "message.timeout.ms": 60000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

        def send(value: int, partition: int) -> bool:
            outcomes: list[object] = []
            producer.produce(
                self.topic, str(value), partition=partition, on_delivery=lambda error, _: outcomes.append(error)
            )
            producer.flush(60)
            return outcomes == [None]

        self._close = lambda: producer.flush(1)
        return send

    def _run(self) -> None:
        value = 0
        while not self.stopped.is_set():
            value += 1
            partition = value % len(self.acknowledged)
            if self._send(value, partition):
                self.acknowledged[partition].append(value)

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def more(self, number: int = 20) -> None:
        """Wait until so many more records have been acknowledged."""
        wanted = self.total + number
        eventually(lambda: self.total >= wanted, f"{wanted} records acknowledged")

    def end(self) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            self._thread.join(60)
            self._close()


def create(lab: Lab, topic: str, partitions: int) -> None:
    """Create a topic of three copies with the administrator of the client that it is named after."""
    if topic == "confluent":
        clients = confluent_admin.AdminClient({"bootstrap.servers": lab.bootstrap_servers})
        clients.create_topics([confluent_admin.NewTopic(topic, partitions, 3)], operation_timeout=30)[topic].result(30)
    else:
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers(lab))
        admin.create_topics([kafka.admin.NewTopic(topic, partitions, 3)])
        admin.close()


class Reading:
    """A consumer of a group, which reads what is written while brokers come and go, and commits."""

    def __init__(self, lab: Lab, topic: str, partitions: int) -> None:
        self.found: dict[int, list[int]] = {number: [] for number in range(partitions)}
        self.topic, self.stopped = topic, threading.Event()
        self._run = self._confluent if topic == "confluent" else self._kafka_python
        self._thread = threading.Thread(target=self._run, args=(lab,))
        self._thread.start()

    def _confluent(self, lab: Lab) -> None:
        settings = {
            "bootstrap.servers": lab.bootstrap_servers,
            "group.id": "live",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "auto.commit.interval.ms": 200,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
        consumer = confluent.Consumer(settings)
        consumer.subscribe([self.topic])
        while not self.stopped.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                self.found[message.partition()].append(int(message.value()))
        consumer.close()

    def _kafka_python(self, lab: Lab) -> None:
        consumer = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=servers(lab),
            group_id="live",
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            auto_commit_interval_ms=200,
            reconnect_backoff_max_ms=200,
            metadata_max_age_ms=1000,
        )
        while not self.stopped.is_set():
            for batch in consumer.poll(timeout_ms=100).values():
                for record in batch:
                    self.found[record.partition].append(int(record.value))
        consumer.close(autocommit=False)

    def has(self, acknowledged: dict[int, list[int]]) -> bool:
        return all(set(values) <= set(self.found[number]) for number, values in acknowledged.items())

    def end(self) -> None:
        self.stopped.set()
        self._thread.join(60)


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_nothing_acknowledged_is_lost(client: str, generation: str) -> None:
    """With acks=all through the death of a leader, of the controller, and a controlled shutdown; in order, also in a
    group, both while it happens and afterwards."""
    with listening(generation, config={"min.insync.replicas": 2}) as lab:
        create(lab, client, 2)
        lab.settle()
        stream, reading = Stream(lab, client, 2), Reading(lab, client, 2)
        try:
            stream.more()
            controller = lab.controller.id
            led = lab.partition(client, 0).leader
            first = led if led != controller else next(b for b in (1, 2, 3) if b != controller)
            lab.kill(first)
            stream.more()
            lab.start(first)
            eventually(lambda: len(lab.partition(client, 0).isr) == 3, "all in sync")
            lab.kill(lab.controller.id)
            stream.more()
            lab.start(controller)
            eventually(lambda: len(lab.partition(client, 0).isr) == 3, "all in sync")
            lab.shutdown(lab.partition(client, 1).leader)
            stream.more()
            stream.end()
            eventually(lambda: reading.has(stream.acknowledged), "the group has read all")
        finally:
            stream.end()
            reading.end()
        for values in reading.found.values():
            assert list(dict.fromkeys(values)) == sorted(set(values)), "in order"
        for group in (None, "readers"):
            found = records_of(lab, client, stream.total, group_id=group)
            for number, acknowledged in stream.acknowledged.items():
                values = [int(one.value) for one in found if one.partition == number]
                assert set(acknowledged) <= set(values)
                assert list(dict.fromkeys(values)) == sorted(set(values)), "in order"


def test_a_client_sees_the_new_leader() -> None:
    """Within a second of the election, the best of three: what else the machine does can only add to it."""
    with listening() as lab:
        controller = lab.controller.id
        until_quiet(lab.create_topic, "led", assignment={0: [b for b in (1, 2, 3) if b != controller]})
        consumer = confluent.Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": "watch", "log_level": 0})

        def leader() -> int:
            return int(consumer.list_topics("led", timeout=10).topics["led"].partitions[0].leader)

        took = []
        try:
            while len(took) < 3 and min(took, default=1.0) >= 1.0:
                view = lab.partition("led", 0)
                after = next(replica for replica in view.replicas if replica != view.leader)
                assert leader() == view.leader
                start = len(lab.trace)
                lab.kill(view.leader)
                eventually(lambda after=after: leader() == after, "the new leader is known")
                seen = lab.now * 1000
                took.append((seen - lab.trace.slice(start, kind="election", topic="led")[0].time_ms) / 1000)
                lab.start(view.leader)
                eventually(lambda: len(lab.partition("led", 0).isr) == 2, "both in sync")
        finally:
            consumer.close()
        assert min(took) < 1.0


def test_an_administrator_moves_partitions_and_elects() -> None:
    """kafka-python's administrator in 2.4: reassignments, their list, elections, and settings."""
    with listening("2.4") as lab:
        until_quiet(lab.create_topic, "moved", assignment={0: [1, 2]}, config={"min.insync.replicas": 1})
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers(lab))
        try:
            tp = kafka.TopicPartition("moved", 0)
            admin.alter_partition_reassignments({tp: [2, 3]})
            eventually(lambda: lab.partition("moved", 0).replicas == (2, 3), "moved")
            lab.settle()
            assert not admin.list_partition_reassignments()
            lab.kill(2)
            eventually(lambda: lab.partition("moved", 0).leader == 3, "3 leads")
            lab.start(2)
            eventually(lambda: len(lab.partition("moved", 0).isr) == 2, "2 is in sync")
            lab.settle()
            admin.elect_leaders(0, {"moved": [0]})  # preferred
            assert lab.partition("moved", 0).leader == 2
            configs = admin.describe_configs([kafka.admin.ConfigResource("TOPIC", "moved")])
            assert "min.insync.replicas" in str(configs)
        finally:
            admin.close()


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_an_administrator_asks_for_acls(generation: str) -> None:
    """Brokers without an authorizer say so; confluent-kafka makes an empty list of the error."""
    with listening(generation) as lab:
        topics = kafka.admin.ResourcePatternFilter(
            kafka.admin.ResourceType.ANY, None, kafka.admin.ACLResourcePatternType.ANY
        )
        asked = kafka.admin.ACLFilter(
            None, None, kafka.admin.ACLOperation.ANY, kafka.admin.ACLPermissionType.ANY, topics
        )
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers(lab))
        with pytest.raises(kafka.errors.SecurityDisabledError):
            admin.describe_acls(asked)
        admin.close()


def test_clients_of_a_lab_with_a_real_zookeeper() -> None:
    """The same with ZooKeeper's own server."""
    with listening(zookeeper="embedded") as lab:
        until_quiet(lab.create_topic, "real", partitions=1, replication_factor=3)
        kcat(lab, "-P", "-t", "real", "-p", "0", "-X", "acks=all", given="one\ntwo\n")
        assert kcat(lab, "-C", "-t", "real", "-p", "0", "-e", "-q") == "one\ntwo\n"
        broker = confluent_admin.ConfigResource(confluent_admin.RESOURCE_BROKER, "1")
        admin = confluent_admin.AdminClient({"bootstrap.servers": lab.bootstrap_servers})
        (described,) = admin.describe_configs([broker]).values()
        assert described.result(60)["zookeeper.connect"].value == lab.world.address


def test_a_topic_is_made_when_somebody_writes_to_it() -> None:
    """As Kafka does by default (`auto.create.topics.enable`)."""
    with listening(config={"num.partitions": 2}) as lab:
        kcat(lab, "-P", "-t", "sudden", given="hello\n")
        assert kcat(lab, "-C", "-t", "sudden", "-e", "-q") == "hello\n"
        assert len(lab.partitions()) == 2
