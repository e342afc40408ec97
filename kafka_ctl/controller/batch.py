"""The requests to brokers: the batch that gathers them while states change, and the channels that deliver them.

A batch sends LeaderAndIsr by broker first, then one UpdateMetadata for all, then StopReplica by broker. Or it sends the
requests that a plug-in of the lab makes of the changes (rule `batch`, see `kafka_ctl.plugins`). Each broker has a
channel: it sends one request at a time, in order, and waits for the answer. A request whose connection fails is sent
again, until it is answered or the broker is removed.
Kafka 2.0.1: controller/ControllerChannelManager.scala, ControllerBrokerRequestBatch, RequestSendThread
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from kafka_ctl.cluster import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from kafka_ctl.controller.failures import failure, text
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.errors import BatchNotEmpty, StateChangeFailed
from kafka_ctl.plugins import Change, Request
from kafka_ctl.requests import (
    UNKNOWN_EPOCH,
    ControlRequest,
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    api_name,
)
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

V = TypeVar("V")
States = dict[TopicPartition, PartitionState]
Pack = Callable[[list[Change]], list[Request]]
Callback = Callable[[int, Response], None]
"""Called with the broker that answered and its answer."""
RETRY_BACKOFF = 0.1
"""Seconds between two attempts of a channel to deliver the same request."""


class Channel:
    """The queue of requests for one broker and the task that delivers them."""

    def __init__(self, process: ControllerProcess, broker: int) -> None:
        self.process, self.broker = process, broker
        self.queue: deque[tuple[ControlRequest, Callback | None, int]] = deque()
        self._arrived = asyncio.Event()
        self._correlation_id = 0
        self.task = process.spawn(self.deliver())

    def put(self, request: ControlRequest, callback: Callback | None) -> None:
        self.queue.append((request, callback, CAUSE.get() or 0))
        self._arrived.set()

    async def deliver(self) -> None:
        process = self.process
        while True:
            while not self.queue:
                self._arrived.clear()
                await self._arrived.wait()
            request, callback, cause = self.queue[0]
            CAUSE.set(cause)
            detail = details.write(partitions=len(request.partitions), correlation_id=self._correlation_id)
            self._correlation_id += 1
            epoch, receiver = request.controller_epoch, self.broker
            sent = process.record(
                "request", api_name(request), broker=receiver, target="sent", controller_epoch=epoch, detail=detail
            )
            CAUSE.set(sent)
            response, answered = await self._until_answered(request)
            self.queue.popleft()
            if callback is not None:
                CAUSE.set(answered)
                callback(self.broker, response)

    async def _until_answered(self, request: ControlRequest) -> tuple[Response, int]:
        """Send and, when the connection fails, wait and send again; cancelled when the broker is removed."""
        process, name, failed = self.process, api_name(request), False
        while True:
            try:
                return await process.network.call(process.id, self.broker, request)
            except ConnectionError as error:
                if not failed:
                    process.record("response", name, broker=self.broker, error="DISCONNECTED", detail=str(error))
                failed = True
                await process.clock.sleep(RETRY_BACKOFF)


class Channels:
    """One channel for each registered broker.

    Kafka 2.0.1: controller/ControllerChannelManager.scala, ControllerChannelManager
    """

    def __init__(self, process: ControllerProcess) -> None:
        self.process = process
        self.open = False
        self._by_broker: dict[int, Channel] = {}

    def start(self, brokers: Iterable[int]) -> None:
        """Open a channel to each of these brokers.

        Channels of an earlier term exist only if 0.10 was forced to resign: it deletes nothing but `/controller`
        then. They stay, and their metrics forbid new ones, so that StateChangeFailed ends every attempt
        of this broker to act as controller.
        Kafka 0.10.2.2: controller/ControllerChannelManager.scala, addNewBroker; server/ZookeeperLeaderElector.scala,
        resign
        """
        if not self.process.generation.failover.resigns_before_moving and self._by_broker:
            raise failure("already_connected")
        self.close()
        self.open = True
        for broker in brokers:
            self.add(broker)

    def add(self, broker: int) -> None:
        if broker not in self._by_broker:
            self._by_broker[broker] = Channel(self.process, broker)

    def remove(self, broker: int) -> None:
        """Remove a broker; requests that are still queued for it are lost."""
        if (channel := self._by_broker.pop(broker, None)) is not None:
            channel.task.cancel()

    def send(self, broker: int, request: ControlRequest, callback: Callback | None = None) -> None:
        if (channel := self._by_broker.get(broker)) is not None:
            channel.put(request, callback)
            return
        fields = {"delete": request.delete} if isinstance(request, StopReplicaRequest) else {}
        partitions = [str(tp) for tp in request.partitions]
        self.process.log("not_sending", request=api_name(request), broker=broker, partitions=partitions, **fields)

    def queued(self) -> list[tuple[int, list[ControlRequest]]]:
        """By broker, the requests that wait for it."""
        return [(broker, [request for request, *_ in c.queue]) for broker, c in self._by_broker.items()]

    def close(self) -> None:
        """Close all channels; the requests in them are lost."""
        self.open = False
        for broker in list(self._by_broker):
            self.remove(broker)

    @property
    def waiting(self) -> int:
        """Requests queued or under way."""
        return sum(len(channel.queue) for channel in self._by_broker.values())


class RequestBatch:
    """The requests that one round of state changes makes necessary."""

    def __init__(self, process: ControllerProcess, channels: Channels, heard: Callback, deleted: Callback) -> None:
        self.process, self.context, self.channels = process, process.context, channels
        self._orders = process.context.orders
        self._leader_and_isr_answered, self._deleted = heard, deleted
        self._leader_and_isr: dict[int, dict[TopicPartition, PartitionState]] = {}
        self._metadata: dict[TopicPartition, PartitionState] = self._orders.empty_map()
        self._metadata_to: dict[int, None] = {}
        self._stop: dict[int, list[tuple[TopicPartition, bool, Callback | None]]] = {}

    def open(self) -> None:
        """Begin a batch. Raises BatchNotEmpty if the last batch was never sent."""
        kinds = {"LeaderAndIsr": self._leader_and_isr, "StopReplica": self._stop, "UpdateMetadata": self._metadata_to}
        for name, pending in kinds.items():
            if pending:
                raise BatchNotEmpty(text("batch_not_empty", name=name, pending=pending, space=" "))

    def clear(self) -> None:
        for pending in (self._leader_and_isr, self._metadata, self._metadata_to, self._stop):
            pending.clear()

    def leader_and_isr(
        self,
        brokers: Iterable[int],
        partition: TopicPartition,
        state: LeaderAndIsr,
        replicas: tuple[int, ...],
        is_new: bool,
    ) -> None:
        """Add a state to these brokers' LeaderAndIsr, and to all brokers' UpdateMetadata."""
        full = self.context.assignment(partition)
        for broker in brokers:
            if broker >= 0:
                states: States = self._leader_and_isr.setdefault(broker, self._orders.empty_map())
                before = states.get(partition)
                new = is_new or (before is not None and before.is_new)
                new = new and self.process.generation.requests.marks_new_replicas
                states[partition] = PartitionState(state, replicas, new, (), full.adding, full.removing)
        self.update_metadata(self.context.live_or_shutting_down, (partition,))

    def update_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Add the states of these partitions to the brokers' UpdateMetadata.

        Raises StateChangeFailed if 0.10 does not know a partition's replicas; earlier additions stay in the batch.
        Kafka 0.10.2.2: controller/ControllerChannelManager.scala, addUpdateMetadataRequestForBrokers
        """
        for broker in brokers:
            self._metadata_to[broker] = None
        context, to_be_deleted = self.context, self.context.partitions_to_be_deleted
        knows_offline = self.process.generation.requests.marks_new_replicas
        if self.process.generation.requests.announces_all_deletions:
            partitions = [*(tp for tp in partitions if tp not in to_be_deleted), *sorted(to_be_deleted)]
        for tp in partitions:
            if (state := context.leadership.get(tp)) is None:
                self.process.log("leader_not_assigned", partition=str(tp))
                continue
            replicas = context.assigned(tp)
            if not context.has(tp) and self.process.generation.requests.stumbles_over_unknown_partitions:
                raise StateChangeFailed(f"key not found: [{tp.topic},{tp.partition}]")
            offline = tuple(r for r in replicas if not context.online(r, tp)) if knows_offline else ()
            if tp in to_be_deleted:
                state = LeaderAndIsr(LEADER_DURING_DELETE, state.isr, controller_epoch=state.controller_epoch)
            self._metadata[tp] = PartitionState(state, replicas, offline=offline)

    def stop_replica(self, broker: int, partition: TopicPartition, delete: bool, callback: Callback | None) -> None:
        """Add a partition to a broker's StopReplica; with `delete` its copy is deleted."""
        if broker >= 0:
            self._stop.setdefault(broker, []).append((partition, delete, callback))

    def send(self) -> None:
        """Hand everything to the channels, as Kafka or as a plug-in packs it, and be empty again."""
        pack: Pack | None = self.process.plugins.rule("batch", None)
        if pack is None:
            self._send_all()
        else:
            self._send_packed(pack)

    def _send_all(self) -> None:
        self._send_leader_and_isr()
        self._send_metadata()
        self._send_stop()

    def _send_leader_and_isr(self) -> None:
        process, epoch = self.process, self.context.epoch
        for broker, states in self._taken_out(self._leader_and_isr):
            for tp, (state, replicas, is_new, _, adding, removing) in states.items():
                moved = adding or removing
                moves = {"adding": details.listed(adding), "removing": details.listed(removing)} if moved else {}
                detail = details.write("is_new" * is_new, **moves)
                process.record_about("request", "LeaderAndIsr", tp, broker, state, replicas=replicas, detail=detail)
            leaders = {s.state.leader for s in states.values()}
            live_leaders = tuple(b for b in self.context.live_or_shutting_down if b in leaders)
            request = LeaderAndIsrRequest(process.id, epoch, dict(states), live_leaders, self._broker_epoch(broker))
            heard = self._leader_and_isr_answered if process.generation.requests.marks_new_replicas else None
            self.channels.send(broker, request, heard)

    def _send_metadata(self) -> None:
        process, brokers = self.process, tuple(sorted(self._metadata_to))
        receivers = details.listed(brokers)
        for tp, (state, replicas, _, offline, _, _) in self._metadata.items():
            detail = details.write(brokers=receivers, offline=details.listed(offline) if offline else None)
            process.record_about("request", "UpdateMetadata", tp, None, state, replicas=replicas, detail=detail)
        live = tuple(self.context.live_or_shutting_down)
        request = UpdateMetadataRequest(process.id, self.context.epoch, dict(self._metadata), live)
        for broker in filter(self._reachable, brokers):
            self.channels.send(broker, request._replace(broker_epoch=self._broker_epoch(broker)))
        self._metadata.clear()
        self._metadata_to.clear()

    def _send_stop(self) -> None:
        process, epoch = self.process, self.context.epoch
        for broker, replicas in self._taken_out(self._stop):
            for tp, delete, _ in replicas:
                detail = details.write("delete" * delete)
                process.record("request", "StopReplica", *tp, broker, controller_epoch=epoch, detail=detail)
            for partitions, delete, callback in self._grouped(replicas):
                request = StopReplicaRequest(process.id, epoch, partitions, delete, self._broker_epoch(broker))
                self.channels.send(broker, request, callback)

    def _taken_out(self, pending: dict[int, V]) -> Iterator[tuple[int, V]]:
        """Take out one broker after the other; a broker stays if an error interrupts its requests."""
        while pending:
            broker = next(iter(pending))
            if self._reachable(broker):
                yield broker, pending[broker]
            del pending[broker]

    def _reachable(self, broker: int) -> bool:
        """True if a broker gets requests: since broker epochs exist, it must be registered to have one."""
        return not self.process.generation.membership.broker_epochs or broker in self.context.brokers

    def _broker_epoch(self, broker: int) -> int:
        return self.context.brokers[broker].epoch if self.process.generation.membership.broker_epochs else UNKNOWN_EPOCH

    def _grouped(
        self, replicas: list[tuple[TopicPartition, bool, Callback | None]]
    ) -> list[tuple[tuple[TopicPartition, ...], bool, Callback | None]]:
        """The StopReplica requests for one broker.

        Before 2.3 only replicas without a callback are grouped. Their request leaves even when it is empty. In 0.10 it
        has the replicas that are not deleted. In 1.1 to 2.2 it is empty: every replica has a callback.
        Since then every deletion has one, also that of a reassignment (stopReplicaPartitionDeleteResponseCallback).
        """
        rules = self.process.generation.requests
        if not rules.groups_stop_replica:
            plain = tuple(tp for tp, delete, _ in replicas if rules.groups_plain_stops and not delete)
            alone = [((tp,), delete, call) for tp, delete, call in replicas if delete or not rules.groups_plain_stops]
            return [(plain, False, None), *alone]
        deleted, kept = (tuple(dict.fromkeys(tp for tp, delete, _ in replicas if delete is d)) for d in (True, False))
        return [(tps, tps is deleted, self._deleted if tps is deleted else None) for tps in (deleted, kept) if tps]

    # Requests that a plug-in packs

    def changes(self) -> list[Change]:
        """The contents of the batch: for each kind of request and partition, the receivers."""
        contents = [("LeaderAndIsr", tp, broker) for broker, sent in self._leader_and_isr.items() for tp in sent]
        contents += [("UpdateMetadata", tp, broker) for tp in self._metadata for broker in sorted(self._metadata_to)]
        contents += [("StopReplica", tp, broker) for broker, stops in self._stop.items() for tp, _, _ in stops]
        receivers: dict[tuple[str, TopicPartition], tuple[int, ...]] = {}
        for kind, tp, broker in contents:
            receivers[kind, tp] = (*receivers.get((kind, tp), ()), broker)
        return [(kind, tp, brokers) for (kind, tp), brokers in receivers.items()]

    def _send_packed(self, pack: Pack) -> None:
        """Ask the plug-in for requests and hand them to the channels one by one; a state in no request is not sent."""
        if not self._metadata and self._metadata_to:
            self._send_metadata()  # it only lists the live brokers: no partition has changed
        changes = self.changes()
        sent, metadata, stops = self._leader_and_isr, self._metadata, self._stop
        self._leader_and_isr, self._metadata, self._metadata_to, self._stop = {}, self._orders.empty_map(), {}, {}
        for kind, broker, partitions in pack(changes) if changes else ():
            if kind == "LeaderAndIsr":
                meant = (sent.get(broker, {}), *sent.values())  # the broker's own state, else another's
                found = {tp: next((s[tp] for s in meant if tp in s), None) for tp in partitions}
                self._leader_and_isr = {broker: {tp: state for tp, state in found.items() if state}}
            elif kind == "UpdateMetadata":
                self._metadata = {tp: metadata[tp] for tp in partitions if tp in metadata}
                self._metadata_to = {broker: None}
            else:
                self._stop = {broker: [stop for stop in stops.get(broker, ()) if stop[0] in partitions]}
            self._send_all()
