"""Exercises of lesson 20, Produce, Fetch and requests that wait. The wire is imported where it is used."""

from __future__ import annotations

from kafka_ctl.brokers.log import Entry, Log
from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.hand_requests import fetch_body
from kafka_ctl_course.quiet import opening

Ends = tuple[int, int, int]
Fields = tuple[int, int, int, int]
TITLE = "Produce, Fetch and requests that wait"
OPENING = opening(config={"replica.lag.time.max.ms": 86400000})
UNREAD = OPENING + (
    """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\nproduce orders 0 records=2\nsettle\nlag 3 orders 0\n"""
    "produce orders 0 records=3 acks=1\nrun_for 60\n"
)
"""Follower 3 stands still, and stays in the ISR for a day."""
RECORDS = 5
NOT_SLOW = "That broker does not lag. `lab.log('orders', 0)` shows which one does."
FIELDS = ("replica_id", "isolation_level", "session_id", "session_epoch")
END, FETCHED = 9, 7
WRITERS = {2: "A", 3: "A", 4: "B", 8: "B"}
"""By offset the producer whose transaction a record belongs to."""
MARKER = 6
"""The offset of the marker with which A commits."""


# 1: predict


def ends(lab: Lab) -> Ends:
    """The offsets up to which a follower, a consumer and a consumer of committed records may read."""
    from kafka_ctl.wire.batches import TRANSACTIONAL, Record, read_batch, write_batch
    from kafka_ctl.wire.contents import marker, transactions

    log = Log([Entry(0, number) for number in range(END)], min(END, FETCHED))
    written = {
        offset: write_batch([Record(0, 0, None, b"")], producer=ord(name), attributes=TRANSACTIONAL)
        for offset, name in WRITERS.items()
    }
    written[MARKER] = marker(ord("A"), 0, True, 0)
    known = transactions(log, {offset: read_batch(data) for offset, data in written.items()})
    return log.end, log.high_watermark, known.last_stable(log.high_watermark)


def ends_wrong(answer: Ends, truth: Ends) -> str | None:
    """The mistakes of exercise 1."""
    follower, consumer, committed = answer
    if follower == FETCHED:
        return "A follower has to fetch what is not committed yet: how else would the high watermark rise?"
    if consumer == END:
        return "A consumer does not get what one follower still lacks."
    if committed == min(WRITERS):
        return "Producer A's transaction has its marker. The leader and its follower both have the marker."
    if committed == FETCHED:
        return (
            "Producer B's transaction is open. Records behind its first one are not given out, also those of other "
            "producers."
        )
    if committed == max(WRITERS):
        return "Look for the first record of producer B, not for its last."
    return None


# 2: the fields of a Fetch request


def requests(lab: Lab) -> list[tuple[bytes]]:
    """Fetch requests of a follower and of consumers, with different client ids."""
    from kafka_ctl.wire.client import request

    bodies = {
        "consumer": fetch_body("orders", {0: 7}),
        "": fetch_body("orders", {0: 7}, committed=True, session=(0, 0)),
        "broker-3-fetcher-0": fetch_body("orders", {0: 7, 1: 9}, replica=3, session=(70_000, 12)),
        None: fetch_body("orders", {}, committed=True, session=(2**31 - 1, 1), forgotten=[4]),
        "caf\u00e9": fetch_body("orders", {0: 0}, replica=1001, session=(9, 1)),
    }
    return [(request("Fetch", 8, body, client_id=client),) for client, body in bodies.items()]


def fields_of(data: bytes) -> Fields:
    """The reader, the records that it may see, and the session."""
    from kafka_ctl.wire.codec import decode_message
    from kafka_ctl.wire.schema import api_key, message_type

    body = decode_message(message_type(api_key("Fetch"), 8), data[4:])[1]
    replica, level, session, epoch = (int(body[name]) for name in FIELDS)
    return replica, level, session, epoch


def explain_fields(given: tuple[bytes], got: object, expected: Fields) -> str:
    """The first field that was read wrongly."""
    (data,) = given
    size = int.from_bytes(data[12:14], "big", signed=True)
    client = f"the request whose client id has length {size}"
    if not isinstance(got, tuple) or len(got) != len(FIELDS):
        return f"for {client} your function returned {short(got)}; {', '.join(FIELDS)} are asked for."
    number = next(place for place, pair in enumerate(zip(got, expected, strict=True)) if pair[0] != pair[1])
    mine, right = got[number], expected[number]
    if isinstance(mine, int) and right < 0 and mine in (2**32 + right, 2**8 + right):
        return f"for {client} {FIELDS[number]} is {mine}: it has a sign, and all its bits are set. {right} is meant."
    if size < 0:
        return f"for {client} {FIELDS[number]} is {mine!r}. Length -1 means that there is no client id, and no letters."
    return f"for {client} {FIELDS[number]} is {mine!r}, not {right}. Count the bytes of all fields before it."


# 3: operate


def unread(lab: Lab) -> str | None:
    """The records of orders-0 that a consumer still lacks; None if it can read all."""
    partition = lab.partition("orders", 0)
    if partition.leader not in lab.brokers or lab.brokers[partition.leader].state != RUNNING:
        return "orders-0 has no leader that runs, so no client can read."
    logs = ((log.end, log.high_watermark) for log in lab.log("orders", 0) if log.broker == partition.leader)
    end, mark = next(logs, (0, 0))  # an empty disk has no log
    if end < RECORDS:
        return f"the leader's log ends at {end}: records are gone that the producer had written."
    if mark < end:
        return f"the log ends at {end}, and the high watermark is {mark}: a consumer gets no more."
    return None


def one_less(lab: Lab) -> str | None:
    """The remark on a way that left a copy behind."""
    return "There is one copy less now." if len(lab.partition("orders", 0).isr) < 3 else None


def fewer_copies(lab: Lab) -> str | None:
    """The remark on a reassignment that threw copies away."""
    copies = len(lab.partition("orders", 0).replicas)
    return f"orders-0 has {copies} of 3 copies now." if copies < 3 else None


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="20.1",
        title="Three readers of one log",
        hints=(
            "Three offsets of the leader decide: log end, high watermark, last stable offset.",
            "The high watermark is the lowest offset that a member of the ISR asks for.",
            "Which transaction has no marker below the high watermark, and where is its first record?",
        ),
        story=OPENING,
        ask=ends,
        example=(1, 1, 1),
        parts=("the follower's", "the consumer's", "the one of committed records"),
        wrong=(ends_wrong,),
        why="A follower reads to the log end, a consumer to the high watermark, `read_committed` to the last stable "
        "offset.",
    ),
    Compute(
        name="20.2",
        title="Whose fetch is it?",
        core=True,
        hints=(
            "In front are length (4), API key (2), version (2), correlation id (4): the client id begins at byte 12.",
            "A client id is its length in two bytes and then that many bytes; -1 means none.",
            "`int.from_bytes(data[a:b], 'big', signed=True)`; replica_id, max_wait, min_bytes, max_bytes have 4 bytes "
            "each, isolation_level 1, session_id and session_epoch 4.",
        ),
        stories={"five requests": OPENING},
        give=requests,
        truth=fields_of,
        explain=explain_fields,
        why="replica_id tells a follower from a consumer; isolation_level says which consumer; the session says how "
        "much of the request was left out.",
        shows_story=False,
    ),
    Operate(
        name="20.3",
        title="Written, and not to be read",
        core=True,
        hints=(
            "`lab.log('orders', 0)` shows where each log ends, and each high watermark.",
            "The high watermark is the lowest log end in the ISR. Which member holds it back?",
            "That follower may catch up, or leave the ISR.",
        ),
        begin=UNREAD,
        missing=unread,
        best=1,
        remarks={
            "produce": "More records do not help: the high watermark waits for follower 3.",
            "elect_preferred": "Broker 1 leads already.",
            "delete_controller": "A controller does not touch high watermarks.",
            **dict.fromkeys(
                ("kill 1", "shutdown 1", "bounce 1", "pause 1", "expire_session 1", "fail_log_dir 1"),
                "The new leader waits for the same follower.",
            ),
            **dict.fromkeys(("kill 2", "shutdown 2", "bounce 2"), NOT_SLOW),
            "write_znode": "The leader has the ISR in memory, and takes another one only with a higher leader epoch.",
            "catch_up 1": NOT_SLOW,
            "catch_up 2": NOT_SLOW,
            "disconnect": "A follower that cannot fetch stays in the ISR for a day, too.",
        },
        praise={
            "kill": lambda lab: " ".join(filter(None, ("A consumer waited for the session timeout.", one_less(lab)))),
            "shutdown": one_less,
            "fail_log_dir": one_less,
            "reassign": fewer_copies,
        },
        why="A consumer reads below the high watermark, and that is what the slowest member of the ISR has.",
    ),
)
