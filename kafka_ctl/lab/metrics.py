"""What JMX shows of a broker: gauges of its controller and its replicas, meters, and the timers of its event queue.

Gauges are read from the actors, everything else from the trace. A meter or timer begins with the process. Times are
milliseconds on the lab's clock. `METRICS` says where Kafka counts what, and in which generations.
Kafka 2.0.1: controller/ControllerEventManager.scala, ControllerEventManager; controller/ControllerState.scala
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.broker import DOWN
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.controller import events
from kafka_ctl.controller.gauges import COUNTS
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

STATES = (
    "Idle", "ControllerChange", "BrokerChange", "TopicChange", "TopicDeletion", "PartitionReassignment",
    "AutoLeaderBalance", "ManualLeaderBalance", "ControlledShutdown", "IsrChange", "LeaderAndIsrResponseReceived",
    "LogDirChange", "ControllerShutdown", "UncleanLeaderElectionEnable", "TopicUncleanLeaderElectionEnable",
    "ListPartitionReassignment",
)  # fmt: skip
"""Kafka's ControllerState: the metric of that name is the place in this list."""


class Timer(NamedTuple):
    """How often something happened, and how long it took in milliseconds: on average, mostly, at most."""

    number: int
    mean: float
    p99: float
    max: float


class Meter(NamedTuple):
    """How often something has happened since the process started, and how often a second: JMX's Count and MeanRate."""

    number: int
    mean: float


Shown = int | Timer | Meter | None
"""What a metric shows; None for a gauge that Kafka fails to read."""


class Metric(NamedTuple):
    """A metric by Kafka's name: what it counts, and by generation where Kafka does so."""

    name: str
    counts: str
    sources: Mapping[str, str]


def _in(*sources: str) -> dict[str, str]:
    """Sources of the newest generations, one each; for those before them the metric does not exist."""
    return dict(zip(list(GENERATIONS)[-len(sources) :], sources, strict=True))


CONTROLLER, MANAGER = "controller/KafkaController.scala", "server/ReplicaManager.scala, newGauge"
OLD, UPDATED, PARTITION = f"{CONTROLLER}, newGauge", f"{CONTROLLER}, updateMetrics", "cluster/Partition.scala"
STORE = f"{PARTITION}, ZkPartitionStateStore"
PRODUCE, FETCH = (
    tuple(f"{name},delayedOperation={kind}" for name in ("PurgatorySize", "NumDelayedOperations"))
    for kind in ("Produce", "Fetch")
)
"""The gauges of the two purgatories: what is watched, and what waits."""
METRICS = (
    Metric("ActiveControllerCount", "1 where the broker takes itself for the controller", _in(OLD, OLD, OLD)),
    Metric("OfflinePartitionsCount", "partitions without a live leader",
           _in(OLD, UPDATED, "controller/ControllerContext.scala, updatePartitionStateMetrics")),
    Metric("PreferredReplicaImbalanceCount", "partitions that their preferred replica does not lead",
           _in(OLD, UPDATED, UPDATED)),
    Metric("GlobalTopicCount", "topics", _in(UPDATED, UPDATED)),
    Metric("GlobalPartitionCount", "partitions that have ever had a leader", _in(UPDATED, UPDATED)),
    Metric("TopicsToDeleteCount", "topics queued for deletion", _in(UPDATED)),
    Metric("ReplicasToDeleteCount", "replicas of these that are not deleted yet", _in(UPDATED)),
    Metric("TopicsIneligibleToDeleteCount", "topics whose deletion must wait", _in(UPDATED)),
    Metric("ReplicasIneligibleToDeleteCount", "replicas that cannot be deleted now", _in(UPDATED)),
    Metric("LeaderCount", "partitions that the broker leads", _in(MANAGER, MANAGER, MANAGER)),
    Metric("PartitionCount", "partitions that it has a copy of", _in(MANAGER, MANAGER, MANAGER)),
    Metric("OfflineReplicaCount", "copies lost with a log directory", _in(MANAGER, MANAGER)),
    Metric("UnderReplicatedPartitions", "partitions it leads whose ISR is smaller than the replicas",
           _in(*[f"{PARTITION}, isUnderReplicated"] * 3)),
    Metric("UnderMinIsrPartitionCount", "partitions it leads with fewer in sync than `min.insync.replicas`",
           _in(*[f"{PARTITION}, isUnderMinIsr"] * 2)),
    Metric("AtMinIsrPartitionCount", "partitions it leads with just as many", _in(f"{PARTITION}, isAtMinIsr")),
    Metric("IsrShrinksPerSec", "ISRs it shrank; before 2.4 also attempts that met another version",
           _in(*[f"{PARTITION}, maybeShrinkIsr"] * 2, STORE)),
    Metric("IsrExpandsPerSec", "ISRs it expanded; before 2.4 also attempts that met another version",
           _in(*[f"{PARTITION}, maybeExpandIsr"] * 2, STORE)),
    Metric("FailedIsrUpdatesPerSec", "ISRs it could not write", _in(f"{PARTITION}, updateIsr", STORE)),
    Metric("UncleanLeaderElectionsPerSec", "elections of a replica out of sync, as controller",
           _in("controller/PartitionLeaderSelector.scala, OfflinePartitionLeaderSelector",
               *["controller/PartitionStateMachine.scala, offlinePartitionLeaderElection"] * 2)),
    Metric(PRODUCE[0], "entries on the watch lists for produce requests, also of answered ones",
           _in(*["server/DelayedOperation.scala, newGauge"] * 3)),
    Metric(PRODUCE[1], "produce requests that wait for the high watermark",
           _in(*["server/DelayedOperation.scala, newGauge"] * 3)),
    Metric(FETCH[0], "the same for fetches, of followers and of clients on the wire",
           _in(*["server/DelayedOperation.scala, newGauge"] * 3)),
    Metric(FETCH[1], "fetches that wait for bytes", _in(*["server/DelayedOperation.scala, newGauge"] * 3)),
    Metric("ControllerState", "what the controller is at, as a number (0: idle)",
           _in(*["controller/ControllerState.scala"] * 2)),
    Metric("EventQueueSize", "events that wait", _in(*["controller/ControllerEventManager.scala"] * 2)),
    Metric("EventQueueTimeMs", "how long events have waited", _in(*["controller/ControllerEventManager.scala"] * 2)),
    Metric("LeaderElectionRateAndTimeMs", "how long changes of brokers have taken, and so for each other state",
           _in(*[f"{CONTROLLER}, ControllerStats"] * 2)),
)  # fmt: skip
"""Every metric of the lab, with its source in the release that each generation follows."""


REPLICA_MANAGER = (
    "LeaderCount", "PartitionCount", "OfflineReplicaCount", "UnderReplicatedPartitions", "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
)  # fmt: skip
"""The gauges in Kafka's order; `METRICS` says which of them exist in a generation."""


def replica_manager(process: BrokerProcess, min_isr: Callable[[str], int]) -> dict[str, int]:
    """What a broker counts of the partitions it holds, from what it knows itself.

    By name; one that has lost its connection to the controller shows its last values. `min_isr` gives a topic's
    `min.insync.replicas`.
    Kafka 2.0.1: server/ReplicaManager.scala, newGauge; cluster/Partition.scala, isUnderReplicated, isUnderMinIsr
    Kafka 2.4.1: cluster/Partition.scala, isAtMinIsr
    """
    hosted, offline = process.hosted, process.offline
    led = {tp: held for tp, held in hosted.items() if held.state.leader == process.id}
    spare = [len(held.state.isr) - min_isr(tp.topic) for tp, held in led.items()]
    under_replicated = sum(len(held.state.isr) < len(held.replicas) for held in led.values())
    below, at = sum(more < 0 for more in spare), spare.count(0)
    counted = len(led), len(hosted) + len(offline), len(offline), under_replicated, below, at
    return dict(zip(REPLICA_MANAGER, counted, strict=True))


def metrics(broker: Broker, records: Iterable[Record], min_isr: Callable[[str], int]) -> dict[str, Shown]:
    """The metrics of one broker by Kafka's names, those that its generation has.

    A process that is down shows what one that has just started would. `min_isr` gives a topic's `min.insync.replicas`.
    """
    generation, found = broker.world.generation, dict[str, Shown]()
    own = [] if broker.state == DOWN else _of_process(records, broker.id)
    if broker.state == DOWN:
        found |= dict.fromkeys(("ActiveControllerCount", *COUNTS, *REPLICA_MANAGER, *PRODUCE, *FETCH), 0)
    else:
        found |= broker.controller.gauges.read()
        found |= replica_manager(broker, min_isr)
        leader = broker.as_leader
        for (size, delayed), purgatory in ((PRODUCE, leader.produce_purgatory), (FETCH, leader.fetch_purgatory)):
            found |= {size: purgatory.watched, delayed: purgatory.delayed}
    found |= _meters(own, broker.clock.now() * 1000, generation)
    found |= queue_metrics(own, broker.id) if generation.gauges.times_events else {}
    missing = {metric.name for metric in METRICS if generation.name not in metric.sources}
    return {name: value for name, value in found.items() if name not in missing}


def _of_process(records: Iterable[Record], broker: int) -> list[Record]:
    """What a broker and its controller have left in the trace since the broker's process was started."""
    own: list[Record] = []
    for r in records:
        if r.actor in (f"broker-{broker}", f"controller-{broker}"):
            if (r.kind, r.action) == ("broker", "start"):
                own.clear()
            own.append(r)
    return own


CONFLICTS = ("BADVERSION", "NONODE")
"""The errors of an ISR write that Kafka takes for a failed update, and not for an exception."""


def _meters(own: Sequence[Record], now_ms: float, generation: Generation) -> dict[str, Shown]:
    """ISR changes and unclean elections, out of what a process has left in the trace."""

    def meter(counts: Callable[[Record], bool]) -> Meter:
        count, seconds = sum(map(counts, own)), (now_ms - own[0].time_ms) / 1000 if own else 0.0
        return Meter(count, count / seconds if seconds > 0 else 0.0)

    attempts = () if generation.isr.counts_written_isrs else CONFLICTS
    changes = ("shrink-isr", "expand-isr")
    return {
        "IsrShrinksPerSec": meter(lambda r: r.action == "shrink-isr" and (r.error is None or r.error in attempts)),
        "IsrExpandsPerSec": meter(lambda r: r.action == "expand-isr" and (r.error is None or r.error in attempts)),
        "FailedIsrUpdatesPerSec": meter(lambda r: r.action in changes and r.error in CONFLICTS),
        "UncleanLeaderElectionsPerSec": meter(lambda r: r.kind == "election" and r.target == "unclean"),
    }


def timer(times: Sequence[float]) -> Timer:
    """The figures of some times, none of which may be missing."""
    ordered = sorted(times)
    mean = math.fsum(ordered) / len(ordered)  # `sum` adds floats otherwise from Python 3.12 on
    return Timer(len(ordered), mean, ordered[(99 * len(ordered) - 1) // 100], ordered[-1])


def name_of_timer(state: str) -> str:
    """The name of the timer of a controller state; that of BrokerChange is older than the others."""
    return f"{'LeaderElection' if state == 'BrokerChange' else state}RateAndTimeMs"


def queue_metrics(records: Iterable[Record], broker: int) -> dict[str, Shown]:
    """The metrics of a controller's event queue; a timer is there once it has been used."""
    queued: dict[int, Record] = {}
    times: dict[str, list[float]] = {}
    running: Record | None = None
    for r in records:
        if r.kind != "event" or r.actor != f"controller-{broker}":
            continue
        if r.target == "queued":
            queued[r.seq] = r
        elif r.source == "queued":
            arrived = queued.pop(r.cause or 0, None)
            if arrived is not None and r.target == "started":
                times.setdefault("EventQueueTimeMs", []).append(r.time_ms - arrived.time_ms)
                running = r
        elif r.target == "done" and running is not None:
            times.setdefault(name_of_timer(_state(r.action)), []).append(r.time_ms - running.time_ms)
            running = None
    state = STATES.index(_state(running.action)) if running else 0
    return {"ControllerState": state, "EventQueueSize": len(queued)} | {n: timer(t) for n, t in sorted(times.items())}


def _state(event: str) -> str:
    return str(getattr(events, event).state)
