"""Requests by hand that wait at a broker, each on a connection of its own; and the fields of a Fetch request.

Separate from `lesson_20.py` because the notebook calls it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

from kafka_ctl.errors import UnknownName
from kafka_ctl.lab.lab import Lab

if TYPE_CHECKING:
    from kafka_ctl.wire.codec import Message

WAIT = 3_600_000
"""Milliseconds that a fetch waits at most: so long that something else answers it, also after a learner's break."""


def fetch_body(
    topic: str,
    offsets: Mapping[int, int],
    *,
    replica: int = -1,
    committed: bool = False,
    log_start: int = 0,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[int] = (),
    wait: int = WAIT,
) -> Message:
    """The fields of a Fetch request, version 8; `offsets` has the first offset wanted, by partition of one topic.

    `replica` is a follower's id, -1 for a consumer; `log_start` is where the follower's log begins; `session` is the id
    and the epoch of a fetch session.
    """
    parts = [
        {
            "partition": number,
            "fetch_offset": offset,
            "log_start_offset": log_start if replica >= 0 else -1,
            "partition_max_bytes": 1 << 20,
        }
        for number, offset in offsets.items()
    ]
    gone = [*forgotten]
    return {
        "replica_id": replica,
        "max_wait": wait,
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "isolation_level": int(committed),
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": [{"topic": topic, "partitions": parts}] if parts else [],
        "forgotten_topics_data": [{"topic": topic, "partitions": gone}] if gone else [],
    }


class HandRequests:
    """Requests to one broker of a lab that listens; `answered` has the names of those with an answer, in order."""

    def __init__(self, lab: Lab, broker: int) -> None:
        self.address = lab.bootstrap_servers.split(",")[sorted(lab.brokers).index(broker)]
        self.answered: list[str] = []
        self._sent: dict[str, Future[Message]] = {}

    def send(self, name: str, api: str, version: int, body: Mapping[str, object]) -> None:
        """Send a request and do not wait for its answer; a program may end without it."""
        self._sent[name] = Future()
        Thread(target=self._ask, args=(name, api, version, body), daemon=True).start()

    def _ask(self, name: str, api: str, version: int, body: Mapping[str, object]) -> None:
        from kafka_ctl.wire.client import answer, exchange, request

        sent = self._sent[name]
        try:
            message = exchange(self.address, request(api, version, body), seconds=2 * WAIT / 1000)
            self.answered.append(name)
            sent.set_result(answer(api, version, message))
        except Exception as error:  # for the caller of `wait`
            sent.set_exception(error)

    def wait(self, name: str) -> Message:
        """The answer to a request. Raises UnknownName for a name that was not sent, Unavailable without an answer."""
        if name not in self._sent:
            raise UnknownName("request", name, [*self._sent])
        return self._sent[name].result()

    def fetched(self, topic: str, offset: int, *, committed: bool = False) -> Message:
        """The fields of partition 0 in the answer to a consumer's fetch that does not wait."""
        from kafka_ctl.wire.client import ask

        body = fetch_body(topic, {0: offset}, committed=committed, wait=0)
        part: Message = ask(self.address, "Fetch", 8, body)["responses"][0]["partitions"][0]
        return part
