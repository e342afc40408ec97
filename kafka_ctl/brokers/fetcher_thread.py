"""The thread of a follower that fetches from one leader, and its fetch session.

Separate from `follower.py` because that one says what is fetched, and this whether a fetch belongs to a session.
"""

from __future__ import annotations

from kafka_ctl.brokers.process import BrokerProcess


class FetcherThread:
    """Kafka's thread that fetches from one leader, for as long as it has partitions there.

    Its first fetch begins a fetch session (KIP-227), which ends with the leader's process or the connection.
    Kafka 2.4.1: server/ReplicaFetcherThread.scala, fetchSessionHandler, fetchFromLeader
    """

    def __init__(self, process: BrokerProcess, leader: int) -> None:
        self.process, self.leader = process, leader
        self.since = self._session_since = process.clock.now()
        """Times in seconds: of the first fetch, and of the first one of the session."""
        self._session = self.connection
        self.partitions = 0
        """The number of partitions whose `leader` is this one."""

    @property
    def connection(self) -> tuple[int, int]:
        """The connection to the leader, as the network names it."""
        return self.process.network.connection(self.process.id, self.leader)

    @property
    def is_in_session(self) -> bool:
        """True if the next fetch belongs to a fetch session that another one has begun."""
        holds = self._session == self.connection and self.process.reaches(self.leader)
        return holds and self.process.clock.now() - self._session_since > 2 * self.process.costs.request

    def fetched(self) -> None:
        """A fetch was answered: if it belongs to no session, it has begun one."""
        if self._session != self.connection and self.process.reaches(self.leader):
            self._session, self._session_since = self.connection, self.process.clock.now()
