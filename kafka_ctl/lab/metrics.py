"""Metrics of a broker as in JMX: gauges of its controller and its replicas, meters, and the timers of its event queue.

Gauges are read from the actors, everything else from the trace. A meter or timer begins with the process. Times are
milliseconds on the lab's clock. `metrics.txt` says where Kafka counts what, and in which generations.
Kafka 2.0.1: controller/ControllerEventManager.scala, ControllerEventManager; controller/ControllerState.scala

Separate from `recorded_run.py` because the names are those of JMX, and no other code reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.controller import events
from kafka_ctl.controller.gauges import COUNTS
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.paths import blocks
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import BrokerIdsZNode

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

STATES = """
    Idle ControllerChange BrokerChange TopicChange TopicDeletion PartitionReassignment AutoLeaderBalance
    ManualLeaderBalance ControlledShutdown IsrChange LeaderAndIsrResponseReceived LogDirChange ControllerShutdown
    UncleanLeaderElectionEnable TopicUncleanLeaderElectionEnable ListPartitionReassignment
""".split()
"""Kafka's ControllerState: the metric of that name is the place in this list."""


class Timer(NamedTuple):
    """A count, and times in milliseconds: the mean, the 99th percentile, the longest."""

    number: int
    mean: float
    p99: float
    max: float


class Meter(NamedTuple):
    """A count since the process started, and its rate a second: JMX's Count and MeanRate."""

    number: int
    mean: float


MetricValue = int | Timer | Meter | None
"""The value of a metric; None for a gauge that Kafka fails to read."""


class Metric(NamedTuple):
    """A metric by Kafka's name: what it counts, and by generation where Kafka does so."""

    name: str
    counts: str
    sources: Mapping[str, str]


def _read() -> Iterator[Metric]:
    for head, *written in blocks(__package__, "metrics.txt"):
        name, _, counts = head.partition(" | ")
        counted = [source.split(" x ") if " x " in source else ["1", source] for source in written]
        sources = [source for times, source in counted for _ in range(int(times))]
        yield Metric(name, counts, dict(zip(list(GENERATIONS)[-len(sources) :], sources, strict=True)))


METRICS = tuple(_read())
"""Every metric of the lab, with its source in the release that each generation follows."""
PRODUCE, FETCH = (
    tuple(f"{name},delayedOperation={kind}" for name in ("PurgatorySize", "NumDelayedOperations"))
    for kind in ("Produce", "Fetch")
)
"""The gauges of the two purgatories: what is watched, and what waits."""
REPLICA_MANAGER = """
    LeaderCount PartitionCount OfflineReplicaCount UnderReplicatedPartitions UnderMinIsrPartitionCount
    AtMinIsrPartitionCount
""".split()
"""The gauges in Kafka's order; `METRICS` says which of them exist in a generation."""


def replica_manager(broker: Broker) -> dict[str, int]:
    """The counts of a broker about its partitions, from its own memory.

    By name; one that has lost its connection to the controller shows its last values.
    Kafka 2.0.1: server/ReplicaManager.scala, newGauge; cluster/Partition.scala, isUnderReplicated, isUnderMinIsr
    Kafka 2.4.1: cluster/Partition.scala, isAtMinIsr
    """
    hosted, offline, configs = broker.hosted, broker.offline, broker.as_leader.configs
    led = {tp: held for tp, held in hosted.items() if held.state.leader == broker.id}
    spare = [len(held.state.isr) - configs.min_isr(tp) for tp, held in led.items()]
    under_replicated = sum(len(held.state.isr) < len(held.replicas) for held in led.values())
    below, at = sum(more < 0 for more in spare), spare.count(0)
    counted = len(led), len(hosted) + len(offline), len(offline), under_replicated, below, at
    return dict(zip(REPLICA_MANAGER, counted, strict=True))


def metrics(broker: Broker, records: Iterable[Record]) -> dict[str, MetricValue]:
    """The metrics of one broker by Kafka's names, those that its generation has.

    A process that is down shows what one that has just started would.
    """
    generation, found = broker.world.generation, dict[str, MetricValue]()
    own = [] if broker.state == DOWN else _of_process(records, broker.id)
    if broker.state == DOWN:
        found |= dict.fromkeys(("ActiveControllerCount", "BrokerState", *COUNTS, *REPLICA_MANAGER, *PRODUCE, *FETCH), 0)
    else:
        found |= broker.controller.gauges.read()
        found |= {"BrokerState": broker.broker_state.number} | replica_manager(broker)
        leader = broker.as_leader
        for (size, delayed), purgatory in ((PRODUCE, leader.produce_purgatory), (FETCH, leader.fetch_purgatory)):
            found |= {size: purgatory.watched, delayed: purgatory.delayed}
    found |= _meters(own, broker.clock.now() * 1000, generation)
    found |= queue_metrics(own, broker.id) if generation.gauges.times_events else listener_metrics(own, broker.id)
    missing = {metric.name for metric in METRICS if generation.name not in metric.sources}
    return {name: value for name, value in found.items() if name not in missing}


def _of_process(records: Iterable[Record], broker: int) -> list[Record]:
    """The records of a broker and its controller since the broker's process was started."""
    own: list[Record] = []
    for r in records:
        if r.actor in (f"broker-{broker}", f"controller-{broker}"):
            if (r.kind, r.action) == ("broker", "start"):
                own.clear()
            own.append(r)
    return own


CONFLICTS = ("BADVERSION", "NONODE")
"""The errors of an ISR write that Kafka takes for a failed update, and not for an exception."""


def _meters(own: Sequence[Record], now_ms: float, generation: Generation) -> dict[str, MetricValue]:
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
    mean = math.fsum(ordered) / len(ordered)  # `sum` adds floats differently from Python 3.12 on
    return Timer(len(ordered), mean, ordered[(99 * len(ordered) - 1) // 100], ordered[-1])


def name_of_timer(state: str) -> str:
    """The name of the timer of a controller state; that of BrokerChange is older than the others."""
    return f"{'LeaderElection' if state == 'BrokerChange' else state}RateAndTimeMs"


def queue_metrics(records: Iterable[Record], broker: int) -> dict[str, MetricValue]:
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


def listener_metrics(records: Iterable[Record], broker: int) -> dict[str, MetricValue]:
    """The timer of 0.10, which has no queue: changes of brokers, from the lock on to the end.

    The listener has read `/brokers/ids` by then.
    Kafka 0.10.2.2: controller/ReplicaStateMachine.scala, BrokerChangeListener.doHandleChildChange
    """
    begun: dict[int, float] = {}
    times: list[float] = []
    for r in records:
        if (r.kind, r.path, r.action) == ("zk", BrokerIdsZNode.path(), "children") and r.cause in begun:
            begun[r.cause] = r.time_ms
        elif (r.kind, r.action, r.actor) == ("event", "BrokerChange", f"controller-{broker}"):
            if r.target == "started":
                begun[r.seq] = r.time_ms
            elif r.target == "done" and (start := begun.pop(r.cause or 0, None)) is not None:
                waited = details.named(r.detail).get("waited", "0ms").removesuffix("ms")
                times.append(r.time_ms - start - float(waited))
    return {name_of_timer("BrokerChange"): timer(times)} if times else {}


def _state(event: str) -> str:
    return str(getattr(events, event).state)
