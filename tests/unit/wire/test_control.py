"""What controllers and brokers send each other, as bytes: nothing is lost on the way, and sizes are those of Kafka."""

import socket
import time

import pytest
from labs import play, until_quiet
from prose import Prose, refuses
from wire_clients import Asking, eventually, fetch_of, listening

from kafka_ctl import Lab
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.requests import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    api_name,
)
from kafka_ctl.wire.codec import decode, decode_message, encode, encode_message
from kafka_ctl.wire.control import Sent, read_request, read_response, write_request, write_response
from kafka_ctl.wire.schema import RESPONSE, api_key, message_type, name_of, versions

ENDPOINTS = dict.fromkeys(range(1, 10), ("127.0.0.1", 9092, None))
ORDERS = [TopicPartition("orders", number) for number in range(3)]
STATE = PartitionState(LeaderAndIsr(3, (3, 1), 1, 2, 1), (2, 3, 1), True, (2,), (2,), (1,))


def body(request: Sent, version: int) -> bytes:
    kind = message_type(api_key(api_name(request)), version)
    return encode(kind.body, write_request(request, version, ENDPOINTS))


@pytest.mark.parametrize(
    "request_sent",
    [
        LeaderAndIsrRequest(1, 5, {ORDERS[0]: STATE, TopicPartition("b", 0): STATE, ORDERS[1]: STATE}, (3,), 17),
        UpdateMetadataRequest(1, 5, {ORDERS[0]: STATE, TopicPartition("b", 0): STATE}, (1, 3), 17),
        StopReplicaRequest(1, 5, (ORDERS[0], TopicPartition("b", 0), ORDERS[1]), True, 17),
        ControlledShutdownRequest(3, 17),
    ],
    ids=lambda request: api_name(request),
)
def test_a_request_survives_the_wire(request_sent: Sent) -> None:
    """In every version: what the version has no field for has its default, everything else is the same."""
    name = api_name(request_sent)
    latest = {"LeaderAndIsr": 4, "UpdateMetadata": 6, "StopReplica": 2, "ControlledShutdown": 3}[name]
    for version in range(latest + 1):
        kind = message_type(api_key(name), version)
        message, end = decode(kind.body, body(request_sent, version))
        found = read_request(name, message)
        assert end == len(body(request_sent, version))
        fields = {field for field in found._fields if getattr(found, field) != getattr(request_sent, field)}
        assert fields <= {"broker_epoch", "partitions"}
        if isinstance(found, (LeaderAndIsrRequest, UpdateMetadataRequest)):
            assert isinstance(request_sent, (LeaderAndIsrRequest, UpdateMetadataRequest))
            assert {tp: reported.state for tp, reported in found.partitions.items()} == dict.fromkeys(
                request_sent.partitions, STATE.state
            )
            assert all(reported.replicas == (2, 3, 1) for reported in found.partitions.values())
        if version == latest:
            assert found.broker_epoch == 17
            if isinstance(found, LeaderAndIsrRequest):
                assert found.partitions[ORDERS[0]] == STATE._replace(offline=())
            if isinstance(found, UpdateMetadataRequest):
                assert found.partitions[ORDERS[0]].offline == (2,)


def test_an_answer_survives_the_wire() -> None:
    """Errors keep the names that they had in 2.4."""
    answer = Response(None, {ORDERS[0]: None, ORDERS[1]: "STALE_CONTROLLER_EPOCH", ORDERS[2]: "KAFKA_STORAGE_ERROR"})
    for version in (0, 4):
        kind = message_type(4, version, RESPONSE)
        assert read_response(decode(kind.body, encode(kind.body, write_response(answer)))[0]) == answer
    left = Response("STALE_BROKER_EPOCH", remaining=(ORDERS[0],))
    kind = message_type(7, 1, RESPONSE)
    assert read_response(decode(kind.body, encode(kind.body, write_response(left)))[0]) == left


@pytest.mark.parametrize(("version", "size"), [(0, 91), (1, 92), (2, 104), (3, 112), (4, 93)])
def test_sizes_of_one_leader_and_isr(version: int, size: int) -> None:
    """What each version added, and what flexible lengths save: lesson 18."""
    reported = PartitionState(LeaderAndIsr(3, (3, 1), 1, 2, 1), (2, 3, 1))
    assert len(body(LeaderAndIsrRequest(1, 1, {ORDERS[1]: reported}, (3,)), version)) == size


@pytest.mark.parametrize(
    ("partitions", "sizes"), [(1, (56, 60, 49)), (10, (560, 492, 409)), (1000, (56000, 48012, 40010))]
)
def test_bytes_of_metadata(partitions: int, sizes: tuple[int, int, int]) -> None:
    """A partition is 56, 48, 40 bytes with two replicas: what grows when an UpdateMetadata has more of them."""
    reported = PartitionState(LeaderAndIsr(1, (1, 2), 0, 0, 1), (1, 2))
    many = {TopicPartition("orders", number): reported for number in range(partitions)}
    for version, size in zip((4, 5, 6), sizes, strict=True):
        empty = body(UpdateMetadataRequest(1, 1, {}, (1, 2, 3)), version)
        assert len(body(UpdateMetadataRequest(1, 1, many, (1, 2, 3)), version)) - len(empty) == size


def test_the_controller_speaks_over_sockets(generation: str) -> None:
    """And what brokers do is still caused by what it sent: records travel beside the bytes.

    No socket is left open when the lab is closed.
    """
    with listening(generation, orders={0: [2, 3]}) as lab:
        controller = lab.controller.id
        network = lab.world.network
        channels = {(controller, broker, False) for broker in (1, 2, 3)}
        assert channels <= network.connections.keys()
        became = lab.trace.slice(action="become-leader", topic="orders")[-1]
        causes = [(record.kind, record.action) for record in lab.trace.causes(became.seq)]
        assert ("request", "LeaderAndIsr") in causes
        report = lab.shutdown(2)
        assert (report.attempts, report.remaining, report.error) == (1, (), None)
        lab.settle()
        assert lab.partition("orders", 0).leader == 3
        open_ones = [one.streams[1].get_extra_info("socket") for one in network.connections.values() if one.streams]
        assert open_ones
    assert {one.fileno() for one in open_ones} == {-1}


def test_a_shutdown_asked_for_by_hand() -> None:
    """Anybody can ask the controller to take a broker's leaderships; other brokers refuse."""
    with listening(orders={0: [2, 3], 1: [2, 1]}) as lab:
        controller = lab.controller.id
        request = encode_message(message_type(7, 1), {"correlation_id": 5, "client_id": "me"}, {"broker_id": 2})

        def asked(broker: int) -> Response:
            host, port = lab.bootstrap_servers.split(",")[broker - 1].split(":")
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(request)
                size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
                answer = connection.recv(size, socket.MSG_WAITALL)
            header, reported = decode_message(message_type(7, 1, RESPONSE), answer)
            assert header["correlation_id"] == 5
            return read_response(reported)

        other = next(broker for broker in (1, 2, 3) if broker != controller)
        assert asked(other).error == "STALE_CONTROLLER_EPOCH"
        lab.kill(1 if controller != 1 else 3)
        eventually(lambda: len(lab.partition("orders", 0 if controller == 1 else 1).isr) == 1)
        alone = ORDERS[0 if controller == 1 else 1]
        assert asked(controller) == Response(None, remaining=(alone,))
        assert lab.partition("orders", 1 - alone.partition).leader != 2
        assert lab.brokers[2].state == "running"


def test_every_version_that_there_is_can_be_written() -> None:
    """Also newer ones than the lab speaks, as far as the fields are the same."""
    for request in (LeaderAndIsrRequest(1, 1, {ORDERS[0]: STATE}), UpdateMetadataRequest(1, 1, {ORDERS[0]: STATE})):
        for version in versions(api_key(api_name(request))):
            assert body(request, version)


def test_brokers_that_come_later_listen_too() -> None:
    """A broker with a generated id has a port of its own; one that is started again has the port it had."""
    with listening() as lab:
        first = lab.bootstrap_servers
        play(lab, "add_broker; kill 1; settle; start 1; settle")
        assert lab.bootstrap_servers.startswith(f"{first},")
        for server in lab.bootstrap_servers.split(","):
            host, port = server.split(":")
            socket.create_connection((host, int(port)), timeout=30).close()


def test_a_broker_behind_the_last_port(prose: Prose) -> None:
    """The lab goes on without it."""
    with Lab(brokers=1, wire=65535) as lab:
        prose.refuses(Unavailable, until_quiet, lab.add_broker, 2)
        lab.settle()
        assert lab.bootstrap_servers == "127.0.0.1:65535"


def test_only_a_lab_that_listens_has_servers() -> None:
    """The error says how to make one."""
    with Lab(brokers=1) as lab, pytest.raises(BadInput, match="wire=True"):
        _ = lab.bootstrap_servers
    refuses(BadInput, "True or the first", Lab, brokers=1, wire=None)


def test_an_election_that_times_out_has_no_text() -> None:
    """Clients have their own. Kafka 2.4.1: server/DelayedElectLeader.scala, onComplete"""
    with listening("2.4", config={"auto.leader.rebalance.enable": False}) as lab:
        controller = lab.controller.id
        led, other = (id for id in (1, 2, 3) if id != controller)
        until_quiet(lab.create_topic, "a", assignment={0: [led, other]})
        until_quiet(lab.reassign, {("a", 0): [other, led]})
        with Asking(lab, controller) as asked:
            topics = [{"topic": "a", "partitions": [0]}]
            answer = asked.ask("ElectLeaders", 1, election_type=0, topic_partitions=topics, timeout=0)
        (part,) = answer["replica_election_results"][0]["partition_result"]
        assert (name_of(part["error_code"]), part["error_message"]) == ("REQUEST_TIMED_OUT", None)


def test_a_follower_that_fetches_to_the_end_joins_the_isr() -> None:
    """Over the wire as well, where a Kafka broker may be the follower."""
    with listening("2.0") as lab:
        until_quiet(lab.create_topic, "a", assignment={0: [1, 2]})
        play(lab, "shutdown 2; settle")
        assert [tuple(view.isr) for view in lab.partitions()] == [(1,)]
        with Asking(lab, 1) as leader:
            asked = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 0}
            leader.ask("Fetch", 7, replica_id=2, topics=fetch_of(("a", 0, 0)), **asked)
        eventually(lambda: [tuple(view.isr) for view in lab.partitions()] == [(1, 2)], "broker 2 in the ISR")


def test_replicas_on_brokers_that_are_gone_are_offline() -> None:
    """Since version 5 of Metadata; the others are not."""
    with listening("2.0") as lab:
        until_quiet(lab.create_topic, "a", assignment={0: [1, 3], 1: [2, 1]})
        play(lab, "shutdown 3; settle")
        with Asking(lab, 1) as broker:
            (topic,) = broker.ask("Metadata", 5, topics=[{"name": "a"}], allow_auto_topic_creation=False)["topics"]
        assert [[*part["offline_replicas"]] for part in topic["partitions"]] == [[3], []]


def test_a_follower_that_knows_the_high_watermark_waits_for_records() -> None:
    """It is answered at once only where it has not been sent the high watermark (Kafka 2.4, KIP-392)."""
    with listening("2.4") as lab:
        until_quiet(lab.create_topic, "a", assignment={0: [1, 2]})
        play(lab, "produce a 0 records=3; shutdown 2; settle")
        asked = {"max_wait": 1500, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0}
        with Asking(lab, 1) as leader:
            for _ in range(2):
                began = time.monotonic()
                leader.ask("Fetch", 7, replica_id=2, topics=fetch_of(("a", 0, 3)), **asked)
        assert time.monotonic() - began >= 1


def test_brokers_of_others_are_reached_where_they_are_registered() -> None:
    """The controller knows them; any other broker reads their znodes. Only a registered broker has an endpoint."""
    foreign = {"version": 4, "host": "elsewhere", "port": 4711, "endpoints": ["PLAINTEXT://elsewhere:4711"]}
    with listening() as lab:
        lab.write_znode("/brokers/ids/8", {**foreign, "jmx_port": -1, "timestamp": "1", "rack": "r"})
        network = lab.world.network
        other = next(broker for broker in (1, 2, 3) if broker != lab.controller.id)
        own = dict(zip((1, 2, 3), lab.bootstrap_servers.split(","), strict=True))
        for source in (lab.controller.id, other):
            for wanted, found in (((8,), {8}), ((8, 9), {8}), ((9,), set()), ((1,), set())):
                endpoints = lab.world.run(network.endpoints(source, wanted))
                assert {id: f"{endpoints[id][0]}:{endpoints[id][1]}" for id in (1, 2, 3)} == own
                others = {id: endpoints[id] for id in endpoints if id > 3}
                assert others == dict.fromkeys(found, ("elsewhere", 4711, "r"))
