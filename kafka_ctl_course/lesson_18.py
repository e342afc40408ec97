"""Exercises of lesson 18, the wire. The wire itself is imported where it is used: its tables need more than Python."""

from __future__ import annotations

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.quiet import opening

Header = tuple[str | int, int, int, int]
Frame = tuple[int, int, int, str | None, bytes]
Span = tuple[int, int]
Offer = tuple[Span, list[dict[str, int]], int]
TITLE = "The wire"
OPENING = opening(3, "2.4")
ORDERS = """create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2]}'\nsettle\n"""
LATE = (
    OPENING.replace("2.4", "2.0").replace("false}", 'false,"controlled.shutdown.max.retries":1}')
    + ORDERS
    + "delay 3 2 60\nshutdown 3\nheal\nstart 3\nrun_for 60\nsettle\n"
)
"""The ControlledShutdown request of broker 3 comes a minute late, when its next process has started."""
STARTED = LATE.count("\n") - 1
"""The commands of this story."""
BYTES = "00000010 0007 0001 0000002a 0002 6f70 00000002"
"""A ControlledShutdown request."""
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
        return "You read the bytes from right to left. On the network the most significant comes first."
    if str(api).isdigit():
        return f"{api} is a key; the name of the API is asked for."
    if api != truth[0]:
        return f"The API is not {api}: the first two bytes after the length are its key, 7."
    return None


def by_name(answer: object) -> object:
    """The same with Kafka's name of an API that was given by its key, or by its name in another spelling."""
    from kafka_ctl.wire.schema import apis

    if not isinstance(answer, tuple) or not answer:
        return answer
    api, *rest = answer
    if isinstance(api, str):
        names = {name.casefold(): name for name in apis().values()}
        api = names.get("".join(filter(str.isalpha, api)).casefold().removesuffix("request"), api)
    return apis().get(api, api) if type(api) is int else api, *rest


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
    if got[4:] == expected[4 : len(expected) - len(given[4])]:
        return f"{asked}the body is missing."
    return f"{asked}{_first_difference(got, expected)}"


def _first_difference(got: bytes, expected: bytes) -> str:
    """The first field that is not as it should be."""
    from kafka_ctl.wire.annotated import annotate

    for part in annotate(expected):
        mine = got[part.offset : part.offset + len(part.raw)]
        if mine != part.raw:
            return f"the field {part.field} is {mine.hex() or 'missing'}; it should be {part.raw.hex()}."
    more = len(got) - len(expected)
    follow, them = ("s follow", "them") if more != 1 else (" follows", "it")
    return f"{more} byte{follow} the request; the broker takes {them} for the beginning of the next request."


# 3: the version of a request


def offers(lab: Lab) -> list[Offer]:
    """The versions that clients know of an API, those that a broker of this generation announces, and the API's key."""
    from kafka_ctl.wire.schema import api_key
    from kafka_ctl.wire.versions import announced

    listed = [
        {"api_key": api_key(name), "min_version": lowest, "max_version": highest}
        for name, (lowest, highest) in sorted(announced(lab.generation).items())
    ]
    known: list[tuple[str, Span]] = [
        ("Metadata", (0, 9)),
        ("Metadata", (0, 0)),
        ("Metadata", (4, 9)),
        ("Fetch", (1, 11)),
        ("ControlledShutdown", (0, 0)),
        ("ElectLeaders", (0, 2)),
    ]
    return [(span, listed, api_key(name)) for name, span in known]


def common_version(known: Span, listed: list[dict[str, int]], key: int) -> int | None:
    """The highest version that both know; None if there is none.

    Kafka 2.4.1: clients/NodeApiVersions.java, latestUsableVersion
    """
    for each in listed:
        if each["api_key"] == key:
            highest = min(known[1], each["max_version"])
            return highest if highest >= max(known[0], each["min_version"]) else None
    return None


def explain_version(given: Offer, got: object, expected: int | None) -> str:
    """The fate of a request of this version: refused, unreadable, or older than need be."""
    (low, high), listed, key = given
    offer = next((each for each in listed if each["api_key"] == key), None)
    asked = f"for API key {key}, where the client knows {low} to {high}, you return {got!r}. "
    if offer is None:
        return f"{asked}The broker does not list this key. It closes the connection on every version; answer None."
    first, last = offer["min_version"], offer["max_version"]
    broker = f"The broker knows {first} to {last}"
    if not isinstance(got, int):
        return f"{asked}{broker}. A version is a number: the highest that both know."
    if not first <= got <= last:
        if (key, got) == (7, 0):  # with a header of its own, Kafka 0.10.2.2: network/RequestChannel.scala:68
            return f"{asked}{broker}; a client uses only what a broker announces."
        return f"{asked}{broker}, and closes the connection."
    if not low <= got <= high:
        return f"{asked}{broker}, but the client cannot write that version, nor read its answer."
    place = listed[key]
    named = f" If you took place {key} of the list: it has API key {place['api_key']}."
    taken = named if got == min(high, place["max_version"]) else ""
    return f"{asked}{broker}. Both know that version, and a newer one, too.{taken}"


# 4: operate


def not_leading(lab: Lab) -> str | None:
    """The fault of broker 3: the replica that is not in sync, or the leader that it is not."""
    if down := [id for id, view in lab.brokers.items() if view.state != RUNNING]:
        return f"broker {down[0]} is not running."
    for partition in lab.partitions():
        if len(partition.replicas) < 3:
            return f"{partition.topic}-{partition.partition} has {len(partition.replicas)} of 3 copies."
        if 3 in partition.replicas and 3 not in partition.isr:
            return f"broker 3 is not in the ISR of {partition.topic}-{partition.partition}."
    leader = lab.partition("orders", 2).leader
    return None if leader == 3 else f"orders-2 is led by broker {leader}; it prefers broker 3."


def about_preferred(lab: Lab) -> str:
    """The remark on a preferred election, by what broker 3 lacks now."""
    if 3 not in lab.partition("orders", 2).isr:
        return "For orders-2 nothing was elected: its preferred replica is not in the ISR."
    detail = lab.trace.slice(kind="election", topic="orders", partition=2)[-1].detail or ""
    ids = {name: brokers.split(",") for name, _, brokers in (word.partition("=") for word in detail.split())}
    if "3" in ids.get("isr_before", ()) and "3" not in ids.get("live", ()):
        return (
            "Broker 3 is in the ISR, but this controller counts it as leaving, since the late request. It forgets "
            "that when the session of broker 3 ends; another controller does not know it."
        )
    return "When you asked, broker 3 was not in the ISR of orders-2 yet. Wait until it is: `lab.settle()`."


def about_restart(lab: Lab) -> str:
    """The remark on a new process, by what broker 3 follows then and whether an election was asked for before."""
    if any(3 not in each.isr for each in lab.partitions()):
        return "Broker 3 fetches from the leaders that are new to it, and from no other."
    if any(each.name == "elect_preferred" for each in lab.commands):
        return "Every replica is in sync now. You asked for the election before that: ask again."
    return "Every replica is in sync. No leader goes back by itself here: an administrator asks for it."


def why_it_follows(lab: Lab) -> str:
    """The explanation of what made broker 3 follow: a new process of it, or another leader."""
    renewed = any(each.args[:1] == (3,) and each.name in ("bounce", "start") for each in lab.commands[STARTED:])
    cause = (
        "A new process knows no leaders, so it does what LeaderAndIsr says."
        if renewed
        else "Broker 3 received leaders that it did not know, so it started its fetchers."
    )
    return f"{cause} The request that took broker 3 away had no broker epoch."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="18.1",
        title="Twenty bytes",
        hints=(
            "Write the bytes in groups: length 4, API key 2, version 2, correlation id 4, client id 2 and its letters.",
            "The rest after the client id is the body: one number of four bytes.",
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
        name="18.2",
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
            "`(16).to_bytes(4, 'big')` are four bytes, the most significant first.",
            "What counts towards the length? Everything behind it.",
            "A text is its length in two bytes and then its bytes; none at all has length -1.",
        ),
        stories={"five requests": OPENING},
        give=frames,
        truth=packed,
        explain=explain_frame,
        why="Length, key, version, correlation id, client id, body. A broker would read all five requests as they "
        "were meant.",
        shows_story=False,
    ),
    Compute(
        name="18.3",
        title="Which version?",
        hints=(
            "Look for the entry whose `api_key` is the one; there may be none.",
            "The highest version of both is the lower one of two numbers.",
            "Is that version high enough for both?",
        ),
        stories={
            "a broker of 0.10": OPENING.replace("2.4", "0.10"),
            "a broker of 2.0": OPENING.replace("2.4", "2.0"),
            "a broker of 2.4": OPENING,
        },
        give=offers,
        none=True,
        truth=common_version,
        explain=explain_version,
        why="The highest version that both know. Where there is none, a client sends nothing and reports "
        "UnsupportedVersionException.",
        shows_story=False,
    ),
    Operate(
        name="18.4",
        title="A broker that leads nothing",
        core=True,
        hints=(
            "Two things are missing: broker 3 in the ISRs, and broker 3 as leader of orders-2.",
            "Broker 3 believes that it follows, and it stopped its fetchers when it was asked to. What starts them?",
            "A preferred election needs broker 3 in the ISR, and a controller that does not count it as leaving.",
        ),
        begin=LATE,
        missing=not_leading,
        best=2,
        remarks={
            "delete_controller": "The next controller names the leaders that broker 3 knows already. So broker 3 takes "
            "the epochs, and starts no fetcher.",
            "expire_session": "The process registers again, and receives leaders that it knows. So it starts no "
            "fetcher.",
            "elect_preferred": about_preferred,
            "heal": "The network is well: the late request has arrived.",
            "catch_up": "That is for a follower that `lag` made slow. This one does not fetch at all.",
            "shutdown": "It left in good order; now it has to come back.",
            "bounce": about_restart,
            "start": about_restart,
        },
        praise={"kill": "After `kill` the session had to expire first: `shutdown` and `bounce` are faster."},
        why=why_it_follows,
    ),
)
