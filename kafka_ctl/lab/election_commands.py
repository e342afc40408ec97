"""Elections in a lab: by a znode that asks for preferred leaders, or through the controller's API (2.4, KIP-460)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ApiException, BadInput, Unavailable, UnknownName
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import command
from kafka_ctl.lab.draw import Drawn, with_
from kafka_ctl.lab.menu import CLUSTER, PARTITION, Button
from kafka_ctl.lab.reassignment_commands import (
    CONTROLLER,
    ZOOKEEPER,
    ReassignmentCommands,
    one_partition,
)
from kafka_ctl.requests import API_TIMEOUT, ApiError, ElectLeadersRequest

Elections = dict[TopicPartition, ApiError | None]
"""By partition: None where a leader was elected, else Kafka's error."""


class ElectionCommands(ReassignmentCommands):
    """Other leaders for partitions."""

    @command(
        Button(PARTITION, "Elect unclean", "without a leader, a replica outside the ISR may lead; records may be lost",
               call=lambda name, _: (("unclean", [menu.partition(name)]), {}), needs="elects_on_request", rank=2),
        drawn=Drawn(2, lambda d: with_(
            d.rng.choice(("preferred", "unclean")), partitions=[d.partition()] if d.maybe(0.5) else None),
            needs="elects_on_request"),
    )  # fmt: skip
    def elect_leaders(self, election_type: str, partitions: Iterable[object] | None = None) -> Elections:
        """2.4: ask the controller for elections, `preferred` or `unclean`, as `kafka-leader-election.sh` does.

        Kafka 2.4.1: admin/LeaderElectionCommand.scala; clients admin/KafkaAdminClient.java, electLeaders.

        Returns an answer for each partition: None where a leader was elected, else an error with Kafka's `code`
        (ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE ...). Without `partitions`
        all are meant that the controller's broker knows; those that needed no election are left out of the answer.
        Raises ApiException (UNSUPPORTED_VERSION) in 0.10 and 2.0, Unavailable when no answer comes within 30 s.
        """
        return self._elect(_election_type(election_type), partitions)

    @command(
        Button(PARTITION, "Elect preferred", "its first replica leads again", call=one_partition, rank=1),
        Button(CLUSTER, "Elect all preferred", "every partition is led by its first replica again", rank=-2),
        drawn=Drawn(3),
    )
    def elect_preferred(
        self, partitions: Iterable[object] | None = None, through: str | None = None
    ) -> Elections | None:
        """Ask for the preferred leaders of `[("orders", 0)]`, or of all partitions.

        A znode asks, and nothing is answered; in 2.4 `through="controller"` asks the controller and answers as
        `elect_leaders` does (Kafka 2.4.1: admin/PreferredReplicaLeaderElectionCommand.scala).
        """
        if through not in (None, ZOOKEEPER, CONTROLLER):
            raise BadInput(f"an election cannot be asked for through {through!r}; {ZOOKEEPER} or {CONTROLLER} can be")
        if through == CONTROLLER:
            return self._elect(ElectionType.PREFERRED, partitions)
        wanted = None if partitions is None else validate.topic_partitions("partitions", partitions)
        self._ask(lambda: self._admin.elect_preferred(wanted), "elect_preferred")
        return None

    def _elect(self, kind: ElectionType, partitions: Iterable[object] | None) -> Elections:
        wanted = None if partitions is None else validate.topic_partitions("partitions", partitions)
        if not self.generation.election.elects_on_request:
            raise ApiException(
                "UNSUPPORTED_VERSION",
                f"Kafka {self.generation.kafka} does not support ELECT_LEADERS with an election type; that came with "
                "2.4 (KIP-460)",
            )
        found: Elections = {}
        request = ElectLeadersRequest(kind, None if wanted is None else tuple(dict.fromkeys(wanted)), API_TIMEOUT)

        async def ask() -> None:
            try:
                async with asyncio.timeout(API_TIMEOUT):
                    found.update((await self._call_controller(request)).elections)
            except TimeoutError:
                raise Unavailable("Timeout waiting for election results") from None

        listed = None if wanted is None else ",".join(map(str, wanted))
        self._ask(ask, "elect_leaders", type=kind.lower(), partitions=listed)
        return found


def _election_type(given: object) -> ElectionType:
    """An election type in capitals or not, as the tool takes it."""
    try:
        return ElectionType(validate.name("an election type", given).upper())
    except ValueError:
        raise UnknownName("election type", given, map(str.lower, ElectionType)) from None
