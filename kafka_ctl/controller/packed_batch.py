"""A request batch whose requests are made by a function that was plugged into the lab.

The state changes are gathered as in Kafka; which requests they become, for whom and in which order, is asked of the
rule `batch` (see `kafka_ctl.plugins`).
"""

from __future__ import annotations

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.plugins import Change, Request
from kafka_ctl.requests import PartitionState

States = dict[TopicPartition, PartitionState]
Sent = dict[int, States]


class PackedBatch(RequestBatch):
    """The requests of one round of state changes, as the rule `batch` packs them."""

    def changes(self) -> list[Change]:
        """What has been gathered: for each kind of request and partition, the receivers."""
        receivers: dict[tuple[str, TopicPartition], tuple[int, ...]] = {}

        def add(kind: str, tp: TopicPartition, broker: int) -> None:
            receivers[kind, tp] = (*receivers.get((kind, tp), ()), broker)

        for broker, sent in self._leader_and_isr.items():
            for tp in sent:
                add("LeaderAndIsr", tp, broker)
        for tp in self._metadata:
            for broker in sorted(self._metadata_to):
                add("UpdateMetadata", tp, broker)
        for broker, stops in self._stop.items():
            for tp, _, _ in stops:
                add("StopReplica", tp, broker)
        return [(kind, tp, brokers) for (kind, tp), brokers in receivers.items()]

    def send(self) -> None:
        """Ask for the requests and hand them to the channels one by one; what no request mentions is not sent."""
        if not self._metadata and self._metadata_to:
            self._send_metadata()  # only which brokers are there, which is no partition's change
        changes = self.changes()
        sent, metadata, stops = self._leader_and_isr, self._metadata, self._stop
        self._leader_and_isr, self._metadata, self._metadata_to, self._stop = {}, self._states(), {}, {}
        for kind, broker, partitions in self.process.plugins.pack(changes) if changes else ():
            self._send_one((kind, broker, partitions), sent, metadata, stops)

    def _send_one(self, request: Request, sent: Sent, metadata: States, stops: dict) -> None:
        kind, broker, partitions = request
        if kind == "LeaderAndIsr":
            self._leader_and_isr = {broker: {tp: state for tp in partitions if (state := _state(sent, broker, tp))}}
            self._send_leader_and_isr()
        elif kind == "UpdateMetadata":
            self._metadata = {tp: metadata[tp] for tp in partitions if tp in metadata}
            self._metadata_to = {broker: None}
            self._send_metadata()
        else:
            self._stop = {broker: [stop for stop in stops.get(broker, ()) if stop[0] in partitions]}
            self._send_stop()


def _state(sent: Sent, broker: int, tp: TopicPartition) -> PartitionState | None:
    """A partition's state for this broker; where none was meant for it, that of another."""
    return next((states[tp] for states in (sent.get(broker, {}), *sent.values()) if tp in states), None)
