"""Exercises of lesson 17, the wire. The wire itself is imported where it is used: its tables need more than Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_ctl.brokers.process import RUNNING
from kafka_ctl.errors import short
from kafka_ctl.exercises.compute import Compute
from kafka_ctl.exercises.exercise import Exercise, Guess
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab

if TYPE_CHECKING:
    from kafka_ctl.wire.codec import Message

Header = tuple[str | int, int, int, int]
Frame = tuple[int, int, int, str | None, bytes]
TITLE = "The wire"
OPENING = (
    "lab brokers=3 generation=2.4 seed=7 "
    """config='{"auto.leader.rebalance.enable":false}' costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
)
BYTES = "00000010 0007 0001 0000002a 0002 6f70 00000002"
"""A ControlledShutdown request."""
ORDERS = "create_topic orders partitions=3 replication_factor=3\nsettle\n"
FIVE = (
    OPENING.replace("brokers=3", "brokers=5")
    + """create_topic orders assignment='{"0":[1,2],"1":[2,3],"2":[3,1]}'\nsettle\n"""
)
"""Broker 4 is the controller, and leads nothing."""
COPIED = OPENING + ORDERS + "shutdown 3\nsettle\nset_meta 3 /d1 2\nstart 3\nsettle\n"
"""A directory of broker 2 was copied to broker 3."""
LARGEST = 100 << 20
"""Bytes of a request that a broker takes, at most."""


# 1: predict


def decoded(lab: Lab) -> tuple[str, int, int, int]:
    """API, version, correlation id and broker of the request."""
    from kafka_ctl.wire.codec import decode_message
    from kafka_ctl.wire.schema import apis, message_type

    data = bytes.fromhex(BYTES.replace(" ", ""))[4:]
    key, version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    header, body = decode_message(message_type(key, version), data)
    return apis()[key], version, header["correlation_id"], body["broker_id"]


def decode_wrong(answer: Header, truth: Header) -> str | None:
    """The mistakes of exercise 1."""
    api, version, correlation, broker = answer
    if (correlation, broker) == (truth[3], truth[2]):
        return f"Broker {broker}? The number after the version says whose question an answer belongs to."
    if version == 7:
        return "0007 comes first after the length: the API key. The version is next."
    if 16 in answer:
        return "16 is the length: so many bytes follow it."
    if 33554432 in answer or 704643072 in answer:
        return "You read the bytes from right to left. On the network the largest comes first."
    if api != truth[0]:
        return f"The API is not {api}: the first two bytes after the length are its key, 7."
    return None


def by_name(answer: object) -> object:
    """The same with the name of an API that was given by its key."""
    from kafka_ctl.wire.schema import apis

    if not isinstance(answer, tuple) or not answer or type(answer[0]) is not int:
        return answer
    return apis().get(answer[0], answer[0]), *answer[1:]


# 2: a frame


def frames(lab: Lab) -> list[Frame]:
    """Requests to be packed: API key, version, correlation id, client id, body."""
    return [
        (7, 1, 5, "c1", b"\0\0\0\3"),
        (3, 1, 70000, "me", b"\xff\xff\xff\xff"),
        (18, 0, 1, "", b""),
        (7, 1, 2, "caf\u00e9", b"\0\0\0\2"),
        (7, 1, 9, None, b"\0\0\0\1"),
    ]


def packed(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    """The request's bytes, as the codec packs them."""
    from kafka_ctl.wire.codec import encode
    from kafka_ctl.wire.schema import REQUEST, header_type

    header = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation,
        "client_id": client,
    }
    payload = encode(header_type(REQUEST, 1), header) + body
    return len(payload).to_bytes(4, "big") + payload


def explain_frame(given: Frame, got: object, expected: bytes) -> str:
    """The request that a broker would read from these bytes."""
    client = given[3]
    asked = f"for {given[:4]} "
    if not isinstance(got, bytes):
        return f"{asked}your function returned {short(got)}; bytes are asked for."
    size = int.from_bytes(got[:4], "big")
    if got == expected[4:]:
        return f"{asked}the length is missing. The broker takes {got[:4].hex()} = {size:,} for it."
    if got[4:] == expected[4:] and size == len(expected):
        return f"{asked}the length is {size}: it counts itself, so the broker waits for 4 bytes more."
    if got[:4] == expected[:4][::-1] and size > LARGEST:
        return (
            f"{asked}the length is {size:,}, written from right to left. `Invalid receive (size = {size} larger than "
            f"{LARGEST})`, and the connection is closed."
        )
    name = b"" if client is None else client.encode()
    if client and got[12:] == expected[14:]:
        read = int.from_bytes(got[12:14], "big")
        return f"{asked}the name has no length. The broker takes {got[12:14].hex()} = {read:,} for it."
    if client is None and got[12:14] == b"\0\0":
        return f"{asked}length 0 means an empty name; none is -1, which is ffff."
    if client and len(name) != len(client) and got[12:14] == len(client).to_bytes(2, "big"):
        return f"{asked}the name's length is {len(client)}. It counts bytes: {name!r} has {len(name)}."
    return f"{asked}{_first_difference(got, expected)}"


def _first_difference(got: bytes, expected: bytes) -> str:
    """The first field that is not as it should be."""
    from kafka_ctl.wire.annotated import annotate

    for part in annotate(expected):
        mine = got[part.offset : part.offset + len(part.raw)]
        if mine != part.raw:
            return f"the field {part.field} is {mine.hex() or 'missing'}; it should be {part.raw.hex()}."
    return f"{len(got) - len(expected)} bytes follow the request; the broker reads them as the next request."


# 3: where a client writes


def metadata(lab: Lab) -> list[tuple[Message, str, int]]:
    """A Metadata answer of a broker of this lab with each partition, and with one that there is not."""
    from kafka_ctl.wire.codec import decode, encode
    from kafka_ctl.wire.schema import RESPONSE, api_key, message_type

    assert lab.controller is not None
    known = next(view for view in lab.brokers.values() if view.state == RUNNING)
    nodes = [{"node_id": id, "host": "127.0.0.1", "port": 9090 + id} for id in known.live_brokers]
    partitions = [
        {
            "error_code": 0 if state.leader >= 0 else 5,
            "partition_index": tp.partition,
            "leader_id": state.leader,
            "replica_nodes": state.isr,
            "isr_nodes": state.isr,
        }
        for tp, state in sorted(known.metadata.items(), reverse=True)
    ]
    topics = [{"error_code": 3, "name": "nothing"}, {"error_code": 0, "name": "orders", "partitions": partitions}]
    schema = message_type(api_key("Metadata"), 1, RESPONSE).body
    body = {"brokers": nodes[::-1], "controller_id": lab.controller.id, "topics": topics}
    answer, _ = decode(schema, encode(schema, body))
    return [(answer, "orders", number) for number in range(3)] + [(answer, "nothing", 0)]


def leader_address(answer: Message, topic: str, partition: int) -> str | None:
    """The address of the leader, as a client finds it; None where there is no leader."""
    leaders = {
        (each["name"], one["partition_index"]): one["leader_id"]
        for each in answer["topics"]
        for one in each["partitions"]
    }
    nodes = {node["node_id"]: f"{node['host']}:{node['port']}" for node in answer["brokers"]}
    return nodes.get(leaders.get((topic, partition), -1))


def explain_address(given: tuple[Message, str, int], got: object, expected: str | None) -> str:
    """The fault in an address, in one sentence; None if there is none."""
    answer, topic, partition = given
    asked = f"for {topic}-{partition} you return {got!r}. "
    nodes = {f"{node['host']}:{node['port']}": node["node_id"] for node in answer["brokers"]}
    if isinstance(got, int):
        return f"{asked}That is an id; a client needs host and port."
    if expected is None:
        return f"{asked}The leader is -1 or the topic is unknown: no broker takes the record now; answer None."
    if got is None:
        return f"{asked}There is a leader, and it listens at an address."
    if got not in nodes:
        return f"{asked}No broker listens there; the addresses are {', '.join(sorted(nodes))}."
    by_place = next(each for each in answer["topics"] if each["name"] == topic)["partitions"][partition]
    if nodes[got] == by_place["leader_id"]:
        return (
            f"{asked}That leader is of partition {by_place['partition_index']}: its place in the list is {partition}."
        )
    if nodes[got] == answer["controller_id"]:
        return f"{asked}That is the controller. Writes go to the leader, and that is broker {nodes[expected]}."
    if nodes[got] == answer["brokers"][0]["node_id"]:
        return f"{asked}That broker stands first in the list. It knows who leads, but only the leader takes records."
    return f"{asked}That is broker {nodes[got]}, not {nodes[expected]}."


# 4: operate


def not_back(lab: Lab) -> str | None:
    """True if broker 3 does not run, or another broker runs instead."""
    if (others := [id for id in lab.brokers if id > 3]) and lab.brokers[3].state != RUNNING:
        return f"broker {others[0]} runs, with an empty disk; broker 3 and its replicas are still missing."
    if lab.brokers.keys() != {1, 2, 3}:
        return f"the cluster has brokers {', '.join(map(str, lab.brokers))}; 1, 2 and 3 are asked for."
    if lab.brokers[3].state == RUNNING:
        return None
    last = lab.trace.slice(kind="broker", action="stopped", broker=3)[-1]
    reason = (last.detail or "no reason").replace("\n", " ")
    return f"broker 3 is down. It said: {reason}"


def only_started(lab: Lab) -> str | None:
    """The reply where the broker was only started again."""
    changes = [command for command in lab.commands if command.name in ("set_meta", "set_broker_id")]
    return "Nothing has changed since the last attempt." if len(changes) == 1 else None


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="17.1",
        title="Twenty bytes",
        hints=(
            "Write the bytes in groups: length 4, API key 2, version 2, correlation id 4, client id 2 and its letters.",
            "What is left after the client id is the body: one number of four bytes.",
            "2a in base 16 is 42.",
        ),
        story=OPENING,
        ask=decoded,
        example=("Metadata", 0, 1, 1),
        parts=("the API", "the version", "the correlation id", "the broker"),
        wrong=(decode_wrong,),
        read=by_name,
        why="Header and body have no names on the wire: key and version say which fields follow.",
    ),
    Compute(
        name="17.2",
        title="Pack a request",
        core=True,
        given='''
def frame(api_key, version, correlation_id, client_id, body):
    """The bytes of a request, its length in front."""
    name = b"" if client_id is None else client_id.encode()
    head = api_key.to_bytes(2, "big") + ...
    payload = head + ... + name + body
    return ... + payload
''',
        hints=(
            "`(16).to_bytes(4, 'big')` are four bytes, the largest first.",
            "What counts towards the length? Everything behind it.",
            "A text is its length in two bytes and then its bytes; none at all has length -1.",
        ),
        stories={"five requests": OPENING},
        give=frames,
        truth=packed,
        explain=explain_frame,
        why="Length, key, version, correlation id, client id, body: a broker would read all five as they were meant.",
        shows_story=False,
    ),
    Compute(
        name="17.3",
        title="Where does a client write?",
        hints=(
            "Two lists belong together: partitions name the leader's id, brokers name addresses.",
            "Is partition 1 at place 1 of its list?",
            "What does a leader of -1 mean, and a topic without partitions?",
        ),
        stories={
            "five brokers": FIVE,
            "ids that are not 1, 2, 3": OPENING.replace("brokers=3", "brokers=[5,7,9]") + ORDERS,
            "a partition without a leader": OPENING
            + """create_topic orders assignment='{"0":[1],"1":[2],"2":[3]}'\nsettle\nkill 3\nsettle\n""",
        },
        give=metadata,
        truth=leader_address,
        explain=explain_address,
        why="Every client does it like this: metadata from any broker, records to the leader.",
    ),
    Operate(
        name="17.4",
        title="Two ids on one machine",
        core=True,
        hints=(
            "Which places say who this broker is? `lab.identity(3)` shows all of them.",
            "`lab.trace.slice(actor='broker-3', action='stopped')[-1].detail` says which two disagree.",
            "Which file is wrong? `lab.set_meta(3, directory, None)` removes one.",
        ),
        begin=COPIED,
        missing=not_back,
        best=2,
        remarks={
            "set_broker_id": "The configuration was right: the directory /d0 is broker 3's.",
            "add_broker": "A new broker has no data. The replicas are on the disks of broker 3.",
            "start": only_started,
            "set_meta": "2.4 compares the whole entry in all directories, with the cluster's id, and then the id with "
            "the configuration.",
        },
        why="An id belongs to the disks. Where two of them disagree, a guess is not safe.",
    ),
)

GUESSES: dict[str, Guess] = {
    "17.a": Guess(
        "A broker logs: Invalid receive (size = 1195725856 larger than 104857600). What has it received?",
        (
            ("a message of 1.2 GB", "Then raising the limit would help. Write the number as four bytes first."),
            ("a damaged file", "These four bytes are the same in many people's logs."),
            ("the letters GET and a space", "A browser asked a broker for a page."),
            ("a request of another version", "The version comes later; the length comes first."),
        ),
        2,
    ),
    "17.b": Guess(
        "LeaderAndIsr version 4 has every field of version 3. Which has more bytes for the same partition?",
        (
            ("version 4: versions only add", "They do add. But how is a length written?"),
            ("version 3", "Version 4 writes lengths in one byte where they are small."),
            ("both have the same", "Count the bytes of the lengths of arrays and texts."),
        ),
        1,
    ),
    "17.c": Guess(
        "The only server in bootstrap.servers is stopped while a producer writes. What happens to its records?",
        (
            ("they wait until it is back", "That would be so if it passed them on. Does it?"),
            ("they are written", "The producer has asked it once, and knows the leaders since."),
            ("the producer ends with an error", "It does, if it is started after the server has gone."),
        ),
        1,
    ),
    "17.d": Guess(
        "Brokers 1, 2, 3; a broker without an id got 1001; one was configured as 7. Two more come without ids. Theirs?",
        (
            ("1002 and 1003", "ZooKeeper counts what it has given out; 7 was not given out by it."),
            ("8 and 9", "Nothing looks for the highest id."),
            ("4 and 5", "Nothing looks for gaps."),
            ("1001 again, then 1002", "The counter does not know which brokers are alive."),
        ),
        0,
    ),
    "17.e": Guess(
        "A broker's disks are moved to a machine whose configuration has another broker.id. Which id wins?",
        (
            ("the configuration's", "Then the replicas on the disks would belong to a broker that does not exist."),
            ("the disks'", "So it is where the configuration says nothing."),
            ("none: the broker does not start", "Two sources disagree, so it stops and says which."),
        ),
        2,
    ),
}
