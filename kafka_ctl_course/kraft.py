"""The fate of each bug of the museum in KRaft: read from sources, not run, as there is no KRaft here.

Apache Kafka trunk of October 2024: metadata/src/main/java/org/apache/kafka/controller/QuorumController.java,
ReplicationControlManager.java, ClusterControlManager.java, PartitionChangeBuilder.java.

Separate from `lesson_24.py` because it is a table of sources, and the museum's page prints it too.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.errors import UnknownName

GONE, KIND, STAYS = "gone", "kind", "stays"
SHELVES = {
    GONE: "the mechanism is gone, and the bug with it",
    KIND: "not in this form; a bug of this kind was seen",
    STAYS: "it has nothing to do with where the controller keeps its data",
}
"""The meaning of the shelves."""
PULLED = "brokers read the records of one log in order; they are sent no requests"
ONE_RECORD = "leader, ISR and reassignment of a partition are one record of the log"


class AfterZooKeeper(NamedTuple):
    """The shelf of an exhibit, the reason, and where a bug of its kind can be read about, if one can."""

    shelf: str
    reason: str
    source: str = ""


KRAFT: dict[str, AfterZooKeeper] = {
    "KAFKA-532": AfterZooKeeper(GONE, PULLED),
    "KAFKA-708": AfterZooKeeper(KIND, "with eligible leader replicas an ISR may be empty on purpose", "KIP-966"),
    "KAFKA-1170": AfterZooKeeper(GONE, ONE_RECORD),
    "KAFKA-1382": AfterZooKeeper(
        KIND, "leader and controller can disagree on a version; the answer is an error to try again", "KAFKA-14154"
    ),
    "KAFKA-2300": AfterZooKeeper(GONE, "there are no batches of requests"),
    "KAFKA-3085": AfterZooKeeper(GONE, "there is no list of brokers to be read; a registration is a record"),
    "KAFKA-3670": AfterZooKeeper(STAYS, "the order in which leaders are chosen is policy: leaders still drift"),
    "KAFKA-4214": AfterZooKeeper(GONE, ONE_RECORD),
    "KAFKA-4443": AfterZooKeeper(GONE, PULLED),
    "KAFKA-4229": AfterZooKeeper(GONE, "there is no session and no /controller"),
    "KAFKA-5310": AfterZooKeeper(GONE, ONE_RECORD),
    "KAFKA-1211": AfterZooKeeper(
        STAYS, "records and acknowledgements are between leader and followers", "KIP-966 for the last replica"
    ),
    "KAFKA-6879": AfterZooKeeper(GONE, "there is no session to wait for"),
    "KAFKA-6612": AfterZooKeeper(GONE, "a deletion is one record; it waits for no copies"),
    "KAFKA-6650": AfterZooKeeper(GONE, "a deletion is one record; it waits for no copies"),
    "KAFKA-6082": AfterZooKeeper(GONE, "what a replaced controller appends is not committed by the quorum"),
    "KAFKA-7482": AfterZooKeeper(STAYS, "a broker acts as the leader until it has read the record that says otherwise"),
    "KAFKA-7235a": AfterZooKeeper(GONE, "a registration carries the id of the process, so a restart is another one"),
    "KAFKA-7235b": AfterZooKeeper(
        KIND, "replicas of a former life must not join the ISR: their broker epoch is compared", "KIP-903"
    ),
    "KAFKA-3143": AfterZooKeeper(
        KIND, "heartbeats are not in the log: a new controller does not know who was silent", "KAFKA-18138"
    ),
    "KAFKA-8294": AfterZooKeeper(GONE, "there are no batches of requests"),
    "KAFKA-8286": AfterZooKeeper(GONE, "there are no conditional writes in batches"),
    "KAFKA-9089": AfterZooKeeper(GONE, ONE_RECORD),
    "KAFKA-9212": AfterZooKeeper(GONE, ONE_RECORD),
    "KAFKA-9866": AfterZooKeeper(STAYS, "the automatic rebalance is policy, every 300 s as before"),
    "KAFKA-10314": AfterZooKeeper(STAYS, "a disk that half works is the broker's; JBOD came to KRaft in 3.7"),
    "LINKEDIN-14": AfterZooKeeper(GONE, ONE_RECORD),
}
"""By the name of the exhibit."""


def shelf(name: str) -> str:
    """`gone`, `kind` or `stays`; UnknownName for what is no exhibit."""
    if name not in KRAFT:
        raise UnknownName("exhibit", name, KRAFT)
    return KRAFT[name].shelf
