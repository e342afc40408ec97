"""A teaching kit for the ZooKeeper-era Kafka controller.

The contents, lesson by lesson; a name in brackets is a module, meant to be read:
{toc}
Nothing is loaded before it is used: `import kafka_ctl` costs a few milliseconds.
"""

# Nothing newer than Python 3.6 here: `__main__` must get the chance to say that Python is too old.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_ctl import assignment, election, errors, generation, history, museum, partition, replica, trace
    from kafka_ctl.brokers.broker import ShutdownReport
    from kafka_ctl.brokers.purgatory import Purgatory
    from kafka_ctl.brokers.timing_wheel import TimingWheel
    from kafka_ctl.cluster import Broker, LeaderAndIsr, Replica, ReplicaAssignment, TopicPartition
    from kafka_ctl.drills.drill import drill
    from kafka_ctl.election import Election
    from kafka_ctl.errors import (
        BadInput,
        ConditionNotMet,
        InvalidTransition,
        KafkaCtlError,
        Unavailable,
        UnknownName,
    )
    from kafka_ctl.foreign.watch import watch
    from kafka_ctl.generation import Generation
    from kafka_ctl.incidents.incident import on_call
    from kafka_ctl.lab.lab import Lab
    from kafka_ctl.latencies import Costs
    from kafka_ctl.partition import PARTITION, PartitionState
    from kafka_ctl.replica import REPLICA, ReplicaState
    from kafka_ctl.table import TransitionTable
    from kafka_ctl.trace import Record, Trace
    from kafka_ctl.views.machines import digraph
    from kafka_ctl.views.widget.side_by_side import side_by_side
    from kafka_ctl.zookeeper.real.server import EmbeddedServer

_toc = (
    ("A cluster to watch and to break", (
        ("Lab", "lab.lab", "brokers, a controller among them, and a ZooKeeper"),
        ("ShutdownReport", "brokers.broker", "how a controlled shutdown went"),
        ("EmbeddedServer", "zookeeper.real.server", "a real ZooKeeper on this machine"),
        ("Costs", "latencies", "what a ZooKeeper operation or a request takes in virtual time"),
    )),
    ("The nouns", (
        ("TopicPartition", "cluster", "one partition of one topic"),
        ("Replica", "cluster", "one copy of a partition, on one broker"),
        ("Broker", "cluster", "a broker as it registers itself"),
        ("LeaderAndIsr", "cluster", "who leads a partition, which replicas are in sync, and the epochs"),
        ("ReplicaAssignment", "cluster", "which brokers hold a partition, also on the way to other ones"),
    )),
    ("Two state machines", (
        ("partition", "", "the four states of a partition"),
        ("PartitionState", "partition", "their names"),
        ("PARTITION", "partition", "the moves between them, by generation"),
        ("replica", "", "the seven states of a replica"),
        ("ReplicaState", "replica", "their names"),
        ("REPLICA", "replica", "the moves between them, by generation"),
        ("TransitionTable", "table", "what both tables are: checked, searched, drawn"),
    )),
    ("Decisions", (
        ("election", "", "who leads, in four situations"),
        ("Election", "election", "the outcome: leader, ISR, whether it was unclean"),
        ("assignment", "", "which brokers get a new topic's replicas"),
    )),
    ("Requests that wait", (
        ("TimingWheel", "brokers.timing_wheel", "timers in rings of buckets"),
        ("Purgatory", "brokers.purgatory", "what waits for an event or its timeout"),
    )),
    ("Generations of Kafka", (
        ("generation", "", "every difference as a field with its ticket"),
        ("Generation", "generation", "one generation, or one that never was"),
        ("museum", "", "famous bugs, each with its story and the same story without it"),
    )),
    ("What happened, and why", (
        ("trace", "", "everything that happens is one record"),
        ("Trace", "trace", "the records of a run: text, Kafka's log lines, Parquet"),
        ("Record", "trace", "one fact and the fact that caused it"),
        ("side_by_side", "views.widget.side_by_side", "two runs beside each other, stepped together"),
        ("digraph", "views.machines", "a state machine, an election or a cluster as a graphviz.Digraph"),
    )),
    ("A cluster of your own", (
        ("watch", "foreign.watch", "a real cluster, seen through its ZooKeeper and never written to"),
        ("drill", "drills.drill", "what if: failures, restarts and plans, ranked by what they do"),
    )),
    ("On call", (
        ("on_call", "incidents.incident", "an incident from a seed, to be solved in time"),
    )),
    ("Many clusters", (
        ("history", "", "simulated and real ones, and questions asked with Spark"),
    )),
    ("What can go wrong", (
        ("errors", "", "every error there is, as a tree"),
        ("KafkaCtlError", "errors", "the root of that tree"),
        ("BadInput", "errors", "something that cannot be understood"),
        ("UnknownName", "errors", "a name that does not exist; the text lists those that do"),
        ("InvalidTransition", "errors", "a move that a state machine does not have"),
        ("ConditionNotMet", "errors", "a wait that ended too early"),
        ("Unavailable", "errors", "something is missing; the text says how to get it"),
    )),
)  # fmt: skip

__all__ = [
    "PARTITION",
    "REPLICA",
    "BadInput",
    "Broker",
    "ConditionNotMet",
    "Costs",
    "Election",
    "EmbeddedServer",
    "Generation",
    "InvalidTransition",
    "KafkaCtlError",
    "Lab",
    "LeaderAndIsr",
    "PartitionState",
    "Purgatory",
    "Record",
    "Replica",
    "ReplicaAssignment",
    "ReplicaState",
    "ShutdownReport",
    "TimingWheel",
    "TopicPartition",
    "Trace",
    "TransitionTable",
    "Unavailable",
    "UnknownName",
    "assignment",
    "digraph",
    "drill",
    "election",
    "errors",
    "generation",
    "history",
    "museum",
    "on_call",
    "partition",
    "replica",
    "side_by_side",
    "trace",
    "watch",
]

_homes = {name: home for _, names in _toc for name, home, _ in names}
assert sorted(_homes) == sorted(__all__), "the course map and __all__ differ"


def _map() -> str:
    """The course map as text."""
    lines = []
    for lesson, names in _toc:
        lines += ["", lesson]
        lines += [f"    {name if home else f'[{name}]':<18} {says}" for name, home, says in names]
    return "\n".join(lines) + "\n"


__doc__ = (__doc__ or "").replace("{toc}", _map())


def __getattr__(name: str) -> object:
    """Load a name of the course map at its first use."""
    import importlib

    if name not in _homes:
        raise AttributeError(f"kafka_ctl has no {name!r}; help(kafka_ctl) lists what there is")
    home = _homes[name]
    found = importlib.import_module(f"kafka_ctl.{home or name}")
    value = globals()[name] = getattr(found, name) if home else found
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
