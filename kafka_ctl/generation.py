"""A generation of Kafka's controller is data: every difference is a field with its ticket.

Code asks `generation.zookeeper.pipelined`, never for a version number. `Generation("2.0").but(pipelined=False)` is
a controller that never existed and shows what one ticket bought.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn, TypedDict

from kafka_ctl.errors import BadInput, UnknownName, short

GENERATIONS = {"0.10": "0.10.2.2", "2.0": "2.0.1", "2.4": "2.4.1"}
"""The generations, and the release whose source each follows."""

Config = TypedDict(
    "Config",
    {
        "auto.leader.rebalance.enable": bool,
        "broker.id.generation.enable": bool,
        "controlled.shutdown.enable": bool,
        "controlled.shutdown.max.retries": int,
        "controlled.shutdown.retry.backoff.ms": int,
        "controller.socket.timeout.ms": int,
        "default.replication.factor": int,
        "delete.topic.enable": bool,
        "leader.imbalance.check.interval.seconds": int,
        "leader.imbalance.per.broker.percentage": int,
        "min.insync.replicas": int,
        "num.partitions": int,
        "replica.lag.time.max.ms": int,
        "request.timeout.ms": int,
        "reserved.broker.max.id": int,
        "unclean.leader.election.enable": bool,
        "zookeeper.max.in.flight.requests": int,
        "zookeeper.session.timeout.ms": int,
    },
)
"""A broker's configuration: the keys that the lab obeys, and what their values are."""

DEFAULTS: Config = {
    "auto.leader.rebalance.enable": True,
    "broker.id.generation.enable": True,
    "controlled.shutdown.enable": True,
    "controlled.shutdown.max.retries": 3,
    "controlled.shutdown.retry.backoff.ms": 5000,
    "controller.socket.timeout.ms": 30000,
    "default.replication.factor": 1,
    "delete.topic.enable": True,
    "leader.imbalance.check.interval.seconds": 300,
    "leader.imbalance.per.broker.percentage": 10,
    "min.insync.replicas": 1,
    "num.partitions": 1,
    "replica.lag.time.max.ms": 10000,
    "request.timeout.ms": 30000,
    "reserved.broker.max.id": 1000,
    "unclean.leader.election.enable": False,
    "zookeeper.max.in.flight.requests": 10,
    "zookeeper.session.timeout.ms": 6000,
}
"""Kafka 2.0.1's configuration keys that the lab obeys, with their defaults."""

UNCLEAN: Final = "unclean.leader.election.enable"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
REPLICA_LAG_TIME: Final = "replica.lag.time.max.ms"
TIMES: Final = (REQUEST_TIMEOUT, REPLICA_LAG_TIME)
"""The settings that pictures count by: a broker's `start` has them in the trace where they are not as usual."""
OLD_DEFAULTS: Config = DEFAULTS | {UNCLEAN: True, "delete.topic.enable": False}
"""The same for 0.10.2.2, which preferred availability and did not delete. It has no window of ZooKeeper requests."""


class Difference(NamedTuple):
    """One switch of a generation, as `Generation.but` takes it."""

    name: str
    area: str
    """The part of a generation that it is in: `generation.isr`."""
    ticket: str
    doc: str
    values: Mapping[str, bool]
    """By generation."""
    bug: str | None = None
    """The name of its absence in `generation.bugs`."""
    fixed: str | None = None
    """The release that fixed the bug."""

    @property
    def asked(self) -> str:
        """The expression in code: `generation.isr.keeps_last_isr_member`, `generation.bugs.keeps_batches`."""
        return f"generation.{self.area}.{self.bug or self.name}"


def _field(ticket: str, *values: bool, doc: str) -> Any:
    """A difference: its ticket (see `docs/generations.md`), its value in each of GENERATIONS, what it means."""
    return Difference("", "", ticket, doc, dict(zip(GENERATIONS, values, strict=True)))


def _bug(ticket: str, fix: str, fixed: str, doc: str) -> Any:
    """A bug: its ticket, the name of its fix, the release with the fix, and the behaviour since that release.

    Where the fix came between two generations, the older one did not have the code with the bug.
    """
    values = dict.fromkeys(GENERATIONS, _released(fixed) <= _released(GENERATIONS["2.4"]))
    return Difference(fix, "", ticket, doc, values, fixed=fixed)


def _released(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


class Area:
    """A part of a generation: the values of its switches.

    A plain class: sixteen dataclasses would take as long to make as an empty Python takes to start.
    """

    def __init__(self, **switches: bool) -> None:
        vars(self).update(switches)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed; `but` makes another generation")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


# fmt: off
class Threads(Area):
    """The threads of the controller and the state that they share."""

    single_threaded: bool = _field("KAFKA-5028", False, True, True,
        doc="one thread works through a queue of events; before, listeners and other threads share a lock")
    preempts_queue: bool = _field("KAFKA-5692", False, False, True,
        doc="controlled shutdowns and elections that are dropped at session expiry are answered with an error")
    acts_while_connected: bool = _field("KAFKA-4447", True, False, False,
        doc="a broker with connections to others acts as controller; since KAFKA-5028, only the elected one does")


class Zookeeper(Area):
    """The controller's use of ZooKeeper."""

    pipelined: bool = _field("KAFKA-5642", False, True, True,
        doc="ZooKeeper operations go out in a window, and partitions change in batches; before, one at a time")
    watches_before_reading: bool = _field("KAFKA-5642", False, True, True,
        doc="a watch is set by the read that it follows; before, by a request of its own, for topics after the read")
    reads_epoch_at_once: bool = _field("KAFKA-5642", False, True, True,
        doc="`/controller_epoch` is read; before, its existence is checked first")
    ends_with_session: bool = _field("KAFKA-5642", False, True, True,
        doc="pending ZooKeeper requests fail when the session expires; before, they were retried in the next session")
    reports_missed_deletion: bool = _field("KAFKA-13407", True, False, False,
        doc="the client reads `/controller` again and reports a missed deletion; without that, no broker competes")
    accepts_own_lost_write: bool = _field("KAFKA-1382", True, False, False,
        doc="a version conflict with what was just to be written counts as success")
    fences_writes: bool = _field("KAFKA-6082", False, False, True,
        doc="a controller's writes fail once another has been elected")


class Membership(Area):
    """Sessions, brokers and their ids."""

    registers_first: bool = _field("KAFKA-5473", False, True, True,
        doc="a broker registers itself before it competes to be controller, and again after a lost session")
    remembers_cluster: bool = _field("KAFKA-7335", False, False, True,
        doc="`meta.properties` stores the cluster id; a broker refuses to start in another cluster")
    watches_endpoints: bool = _field("KAFKA-6246", False, True, True,
        doc="the controller notices when a broker's address changes")
    broker_epochs: bool = _field("KAFKA-7235", False, False, True,
        doc="each life of a broker has an epoch: requests of another are refused, a quick restart is noticed")


class Failover(Area):
    """The beginning and the end of a controller's term."""

    resigns_at_expiry: bool = _field("KAFKA-5642", False, True, True,
        doc="a controller resigns when its session expires; before, when it has the next session")
    resigns_before_moving: bool = _field("apache/kafka#2935", False, True, True,
        doc="a controller that gives up resigns, then deletes `/controller`; before, it acted until the next election")
    forgets_on_resignation: bool = _field("KAFKA-5310", False, True, True,
        doc="a controller that resigns forgets its reassignments")
    clears_isr_notifications: bool = _field("KAFKA-5642", False, True, True,
        doc="a new controller deletes the notifications meant for the last one")
    gives_up_lost_epoch: bool = _field("KAFKA-5642", False, True, True,
        doc="a broker that cannot raise the epoch, as another one has done so, gives up; before, it went on without")
    stops_dead_replicas_at_startup: bool = _field("KAFKA-3143", False, False, True,
        doc="a new controller takes replicas on dead brokers out of their ISRs")


class Election(Area):
    """Leader elections."""

    follows_missing_leaders: bool = _field("KAFKA-4763", False, True, True,
        doc="when brokers die, every partition without an online leader is elected, not only theirs")
    retries_whole_batch: bool = _field("KAFKA-8286", False, True, False,
        doc="after a version conflict all partitions of a batch are elected again, not only the one")
    needs_json_states: bool = _field("apache/kafka#6944", False, True, False,
        doc="a `state` znode without JSON ends the election of its whole batch; else only of its own partition")
    skips_needless_elections: bool = _field("KAFKA-5692", False, False, True,
        doc="a preferred election leaves out partitions that the controller does not know, and those whose preferred "
            "replica leads already")
    elects_already_preferred: bool = _field("KAFKA-5642", False, True, False,
        doc="a preferred election raises the leader epoch also where the preferred replica leads already")
    rebalances_in_batches: bool = _field("KAFKA-7299", False, True, True,
        doc="the automatic rebalance elects all partitions of a broker in one batch")
    elects_once_unclean_is_allowed: bool = _field("KAFKA-6835", False, False, True,
        doc="a topic that is set to allow unclean elections gets its leaders at once; before, when a broker or a "
            "controller comes or goes")
    rebalances_at_fixed_times: bool = _field("KAFKA-5028", True, False, False,
        doc="the balance is checked at a fixed rate; since then, a fixed delay after the previous check")
    elects_on_request: bool = _field("KIP-460", False, False, True,
        doc="an administrator can ask the controller for elections, also for unclean ones")


class Isr(Area):
    """The members of the ISR, and the reads and writes of it."""

    keeps_last_isr_member: bool = _field("KAFKA-5083", False, True, True,
        doc="the last member stays in the ISR whatever the unclean setting")
    reads_state_of_new_replicas: bool = _field("KAFKA-5642", True, False, False,
        doc="a new replica's leader is read from ZooKeeper, not from the cache")
    tolerates_missing_state: bool = _field("KAFKA-6650", False, True, True,
        doc="a replica goes offline also where no leader was ever elected")
    expels_silent_followers: bool = _field("KAFKA-7152", True, True, False,
        doc="a follower that stopped fetching leaves the ISR in time also when nothing was written")
    joins_from_epoch_start: bool = _field("KAFKA-7128", False, True, True,
        doc="a follower is in sync when it has all that its leader had when it began to lead; before, when it had all "
            "below the high watermark")
    isr_holds_ids: bool = _field("KAFKA-8841", False, False, True,
        doc="a leader's ISR is a set of ids; before, of replicas, which has another order if there are more than four")
    counts_written_isrs: bool = _field("KAFKA-8371", False, False, True,
        doc="only ISR changes that were written are counted")
    keeps_offline_partitions: bool = _field("KAFKA-7313", False, False, True,
        doc="StopReplica leaves a partition offline whose log directory has failed; before, the broker forgets it")


class Requests(Area):
    """Requests to brokers."""

    marks_new_replicas: bool = _field("KAFKA-4763", False, True, True,
        doc="LeaderAndIsr says which replicas are new, UpdateMetadata which are offline, and answers are read")
    announces_all_deletions: bool = _field("KAFKA-6481", True, False, False,
        doc="every UpdateMetadata also names all partitions that are being deleted")
    announces_leaderless_replicas: bool = _field("KAFKA-3143", False, False, True,
        doc="a replica that goes offline is announced also where no leader was ever elected")
    metadata_to_all_on_broker_change: bool = _field("KAFKA-7537", True, True, False,
        doc="a broker that comes or goes makes the controller send all metadata to every broker")
    stumbles_over_unknown_partitions: bool = _field("KAFKA-6630", True, False, False,
        doc="UpdateMetadata about a partition that the topic's znode lacks fails, and leaves its batch half filled")
    groups_plain_stops: bool = _field("KAFKA-4420", True, False, False,
        doc="StopReplica requests that delete nothing travel together")
    groups_stop_replica: bool = _field("KAFKA-8294", False, False, True,
        doc="StopReplica requests to one broker travel together")
    answers_invalid_batches: bool = _field("KAFKA-7549", False, False, True,
        doc="a produce request whose records are not one batch gets an error; before, its connection is closed")
    names_supported_versions: bool = _field("KIP-511", False, False, True,
        doc="who asks for the versions in an unknown version is sent the known ones; before, only that it is unknown")
    hides_dead_controller: bool = _field("KAFKA-7922", False, True, False,
        doc="an answer with metadata names no controller where the known one is not among the live brokers")
    names_isr_without_leader: bool = _field("KAFKA-8442", False, False, True,
        doc="an answer with metadata names the ISR of a partition whose leader is not alive")
    names_stable_offset: bool = _field("KAFKA-7395", False, False, True,
        doc="every fetch is answered with the last stable offset; before, only a fetch of committed records")
    reads_followers: bool = _field("KAFKA-8443", False, False, True,
        doc="a consumer may fetch from a follower, too (KIP-392); before, only one whose replica id is -2")
    keeps_deleted_producers: bool = _field("KAFKA-7190", False, False, True,
        doc="the sequence numbers of a producer are known after its records were deleted; before, they are forgotten")
    has_default_counts: bool = _field("KIP-464", False, False, True,
        doc="in CreateTopics, -1 is the default number of partitions or replicas; before, -1 is refused")
    writes_sentences: bool = _field("KAFKA-5856", False, True, True,
        doc="a topic with a wrong number of partitions or replicas is refused in a sentence; before, in a clause")
    names_topic_configs: bool = _field("KAFKA-3267", False, True, True,
        doc="a new topic's unknown setting is an unknown topic config name; before, an unknown Log configuration")
    answers_invalid_configs: bool = _field("KAFKA-7409", False, False, True,
        doc="a new topic's wrong setting is answered with INVALID_CONFIG; before, with an unknown error")
    checks_existence_first: bool = _field("KAFKA-8875", False, False, True,
        doc="a new topic that exists is refused as such; before, wrong settings and numbers are found first")
    answers_each_entry: bool = _field("KAFKA-7832", False, False, True,
        doc="a topic that stands twice in CreateTopics or DeleteTopics (KAFKA-8034) is answered twice; before, once")
    numbers_from_zero: bool = _field("KAFKA-7864", False, False, True,
        doc="the partitions of a new topic are numbered from 0 without gaps; before, this is not checked")
    answers_unknown_kinds: bool = _field("KAFKA-8056", False, False, True,
        doc="FindCoordinator of an unknown kind is answered with an error; before, its connection is closed")
    completes_rebalances: bool = _field("KAFKA-5565", False, True, True,
        doc="a group that waits for its assignment has the state CompletingRebalance; before, AwaitingSync")
    gathers_first_members: bool = _field("KAFKA-4925", False, True, True,
        doc="an empty group waits a moment for more members (KIP-134); before, the first one is a generation alone")
    names_no_generation: bool = _field("KAFKA-7824", False, False, True,
        doc="a JoinGroup that is refused is answered with generation -1; before, with 0")
    checks_committed_partitions: bool = _field("KAFKA-6796", False, True, True,
        doc="offsets are committed for known partitions; before, for any partition of a known topic")
    refuses_by_partition: bool = _field("apache/kafka#4147", False, True, True,
        doc="a LeaderAndIsr that is refused is answered with the error for each partition, too")
    explains_absent_copies: bool = _field("KAFKA-6796", False, True, True,
        doc="a broker without a copy answers clients that it does not lead; before, that there is no such partition")
    checks_first_member: bool = _field("KAFKA-6005", False, True, True,
        doc="who joins a group first is refused without a protocol type; before, the group is made")
    checks_group_ids: bool = _field("KAFKA-6773", False, True, True,
        doc="SyncGroup, Heartbeat and LeaveGroup refuse an empty group id; before, they know no such member")
    checks_members_first: bool = _field("KAFKA-8487", False, False, True,
        doc="who commits offsets while a group waits for its assignment must be a member; before, this is not checked")
    checks_heartbeats_first: bool = _field("KAFKA-8225", False, False, True,
        doc="a heartbeat to a group that waits for its assignment has its generation; before, this is not checked")
    fences_offset_commits: bool = _field("KAFKA-9144", False, False, True,
        doc="offsets of a transaction are refused to a producer with an old epoch; before, they are kept")


class Records(Area):
    """The fetches of followers."""

    truncates_by_epoch: bool = _field("KIP-101", False, True, True,
        doc="a follower drops what its leader's epochs do not have; before, what lay above its own high watermark")
    refetches_after_missed_epoch: bool = _field("KAFKA-7164", False, True, True,
        doc="a follower that missed a leader epoch begins to fetch again, also where the leader is the same")
    refetches_at_each_epoch: bool = _field("KAFKA-7395", False, False, True,
        doc="a follower begins to fetch again at every leader epoch; before, not where the leader stays")
    answers_producers_at_stop: bool = _field("KAFKA-9198", False, False, True,
        doc="a producer that waits at a copy that is stopped gets an error at once; before, when its time is up")
    closes_idle_fetchers: bool = _field("KAFKA-6051", False, True, True,
        doc="a fetcher of stopped copies ends at once; before, when its fetch has returned, and requests wait for that")
    checks_fetched_epoch: bool = _field("KIP-320", False, False, True,
        doc="the first fetch of a session must know the leader's epoch (each one since KAFKA-9338); before, none")
    passes_on_high_watermark: bool = _field("KAFKA-8443", False, False, True,
        doc="a leader answers its followers at once when the high watermark rises; before, when their fetch has waited")


class Reassignment(Area):
    """Reassignments."""

    requests_begin_when_created: bool = _field("KAFKA-6146", False, True, True,
        doc="a reassignment (apache/kafka#4143) or an election is noticed when its znode is created; before, also when "
            "it was changed")
    drops_finished_requests: bool = _field("KAFKA-6193", True, False, False,
        doc="a new controller takes finished moves out of the znode as it reads it; since then, when it resumes them")
    tolerates_deleted_topics: bool = _field("KAFKA-6630", False, True, True,
        doc="a partition whose topic is deleted has no replicas; before, a reassignment that looks for them fails")
    drops_requests_together: bool = _field("KAFKA-6617", False, True, True,
        doc="partitions leave the znode of the reassignment together, and it is not read again for each")
    incremental_reassignment: bool = _field("KIP-455", False, False, True,
        doc="a reassignment stands in the topic's znode and can be changed and cancelled")
    caches_bumped_epoch: bool = _field("KAFKA-9212", False, False, True,
        doc="the leader epoch raised for a reassignment also enters the controller's cache")


class Deletion(Area):
    """Topic deletions."""

    has_own_thread: bool = _field("KAFKA-5028", True, False, False,
        doc="a thread of its own deletes topics whenever it is notified; since then, the event that allows a deletion")
    restores_assignments: bool = _field("KAFKA-6612", False, True, True,
        doc="partitions added to a topic that is being deleted are taken out again")
    halts_deletions_for_elections: bool = _field("KAFKA-5107", True, False, False,
        doc="the deletion of a topic waits for its preferred elections")
    partitions_leave_first: bool = _field("KAFKA-6753", False, False, True,
        doc="partitions leave the state machine when the deletion of their topic begins, not when it ends")
    deletion_waits_for_reassignment: bool = _field("linkedin/kafka#14", False, False, False,
        doc="the deletion of a topic waits for its reassignment; in every release only a new controller holds it back")


class Shutdown(Area):
    """Controlled shutdowns."""

    shutdown_tells_leaving_broker: bool = _field("KAFKA-7482", True, False, True,
        doc="a broker in controlled shutdown receives the leaders that replace it")
    shutdown_skips_deletions: bool = _field("KAFKA-6753", False, False, True,
        doc="a controlled shutdown leaves partitions of topics being deleted alone")


class LogDirs(Area):
    """Log directories."""

    moves_between_log_dirs: bool = _field("KIP-113", False, True, True,
        doc="replicas move between the log directories of a broker")
    outlives_failed_log_dir: bool = _field("KIP-112", False, True, True,
        doc="a broker goes on when one of its log directories fails; before, it stops")
    moves_in_ascending_order: bool = _field("apache/kafka#6313", False, False, True,
        doc="copies move one after another in ascending order of topic and partition; before, in descending order, and "
            "a new one that is later in the order goes first")
    distinguishes_unknown_partitions: bool = _field("KAFKA-7395", False, False, True,
        doc="where a copy cannot be moved because it is not there, the answer says whether the partition exists")


class Tool(Area):
    """The reassignment tool."""

    limits_brokers_last: bool = _field("KAFKA-4266", False, True, True,
        doc="throttled replicas are written before the limits of the brokers")
    refuses_empty_replicas: bool = _field("KAFKA-5091", False, True, True,
        doc="a plan in which a partition has no replicas is refused")
    refuses_unknown_brokers: bool = _field("KAFKA-5161", False, True, True,
        doc="a plan with a broker that is not registered is refused")
    prints_short_names: bool = _field("KAFKA-5822", False, True, True,
        doc="a partition is printed as `orders-0`; before, as `[orders,0]`")
    checks_files: bool = _field("KAFKA-5919", False, True, True,
        doc="a file that is no JSON, or of another version, is refused; before, it is empty, and versions are ignored")
    explains_failures: bool = _field("KAFKA-5928", True, True, False,
        doc="`--verify` prints which replicas a partition has whose reassignment failed")
    groups_plans_by_topic: bool = _field("KAFKA-5928", False, False, True,
        doc="a plan's partitions are written topic by topic, in the order of a hash table")


class Gauges(Area):
    """The metrics of a controller."""

    counts_after_events: bool = _field("KAFKA-5028", False, True, True,
        doc="gauges are counted when an event has been processed; before, when they are read")
    counts_partitions_never_led: bool = _field("KAFKA-5135", False, True, True,
        doc="a partition without any leader yet is not out of balance; before, the gauge of the imbalance fails")
    times_events: bool = _field("KAFKA-5135", False, True, True,
        doc="the controller's state is a gauge, and its work is timed (KIP-143)")


class Log(Area):
    """The log messages of a controller."""

    announces_state_changes: bool = _field("KAFKA-5642", True, False, False,
        doc="both state machines log what they are to move before they do")
    names_election_strategies: bool = _field("KAFKA-5642", False, True, True,
        doc="a failed election names its strategy; before, each selector has its text")


class Bugs(Area):
    """Bugs that every generation has, or none: the fix is younger than all of them, or older.

    A reader may skip every line that asks for a bug. A story switches a bug by the name of its fix.
    """

    obeys_old_controllers: bool = _bug("KAFKA-532", fix="checks_controller_epoch", fixed="0.8.0",
        doc="a broker refuses the requests of a controller whose epoch is not the newest it has seen")
    keeps_dead_leader: bool = _bug("KAFKA-708", fix="resets_dead_leader", fixed="0.8.0",
        doc="a leader that leaves the ISR stops leading: the leader is -1, and the last member stays in the ISR")
    shrinks_cached_isr: bool = _bug("KAFKA-1170", fix="shrinks_stored_isr", fixed="0.8.1",
        doc="whether a replica has to leave the ISR is decided by the ISR in ZooKeeper, not by the one in the cache")
    refuses_own_isr: bool = _bug("KAFKA-1382", fix="accepts_own_isr", fixed="0.8.2.0",
        doc="a leader whose ISR write meets a version conflict looks whether it was its own write that came through")
    keeps_batches: bool = _bug("KAFKA-2300", fix="clears_batches", fixed="0.9.0.0",
        doc="a controller that cannot go on empties its request batches and resigns")
    reads_brokers_twice: bool = _bug("KAFKA-3085", fix="reads_brokers_once", fixed="0.10.0.0",
        doc="live, new and dead brokers are taken from the brokers' znodes; before, dead ones from `/brokers/ids`")
    shutdown_follows_isr: bool = _bug("KAFKA-3670", fix="shutdown_prefers_order", fixed="0.10.0.0",
        doc="a controlled shutdown chooses the new leader in the order of the assigned replicas, not of the ISR")
    has_controller_state: bool = _bug("KAFKA-3761", fix="names_no_controller_state", fixed="0.10.1.0",
        doc="the gauge BrokerState does not tell whether the broker is controller: there is no RunningAsController")
    drops_dead_targets: bool = _bug("KAFKA-4214", fix="waits_for_dead_targets", fixed="0.10.1.0",
        doc="a reassignment to a broker that is down waits for it instead of being dropped")
    resigns_when_reelected: bool = _bug("KAFKA-4229", fix="skips_own_reelection", fixed="0.10.2.0",
        doc="a controller whose new session finds itself elected already stays, instead of resigning")
    introduces_brokers_last: bool = _bug("KAFKA-4443", fix="introduces_brokers_first", fixed="0.10.2.0",
        doc="a new controller sends the live brokers (UpdateMetadata) before LeaderAndIsr")
    strands_waiters_at_expiry: bool = _bug("KAFKA-6879", fix="fails_waiters_at_expiry", fixed="1.1.1",
        doc="what waits for ZooKeeper learns that its session has expired before the next one is opened")
    keeps_older_requests: bool = _bug("KAFKA-9089", fix="takes_over_requests", fixed="2.4.0",
        doc="a reassignment through the controller takes an older request for the same partition out of ZooKeeper")
    rebalances_out_of_sync: bool = _bug("KAFKA-9866", fix="rebalances_to_in_sync", fixed="2.6.0",
        doc="the automatic rebalance leaves preferred replicas alone that are not in sync and so cannot lead")
    omits_new_replicas: bool = _bug("KAFKA-10314", fix="announces_new_replicas", fixed="2.7.0",
        doc="the first request of a reassignment already says which replicas are new")
# fmt: on


@dataclass(frozen=True, init=False)
class Generation:
    """One generation: `Generation("2.0")`. Raises UnknownName for others, BadInput for an impossible value of a switch.

        from kafka_ctl import Generation, Lab
        one_by_one = Generation("2.0").but(pipelined=False)
        one_by_one.changes  # {'pipelined': False}
        one_by_one.config["replica.lag.time.max.ms"]  # 10000
        lab = Lab(generation=one_by_one)

    A hybrid made with `but` keeps the name of the generation it was made from.
    """

    name: str
    config: Config = field(hash=False, compare=False)
    """Defaults of Kafka's configuration keys."""
    threads: Threads
    zookeeper: Zookeeper
    membership: Membership
    failover: Failover
    election: Election
    isr: Isr
    requests: Requests
    records: Records
    reassignment: Reassignment
    deletion: Deletion
    shutdown: Shutdown
    log_dirs: LogDirs
    tool: Tool
    gauges: Gauges
    log: Log
    bugs: Bugs

    def __init__(self, name: str | Generation = "2.0", **changes: bool) -> None:
        base = name.name if isinstance(name, Generation) else name
        if not isinstance(base, str) or base not in GENERATIONS:
            raise UnknownName("generation", base, GENERATIONS if isinstance(base, str) else map(repr, GENERATIONS))
        values = {d.name: name.has(d.name) if isinstance(name, Generation) else d.values[base] for d in FIELDS}
        for key, value in changes.items():
            if key not in values:
                raise UnknownName("field of Generation", key, values)
            if not isinstance(value, bool):
                raise BadInput(f"Generation.{key} cannot be {short(value)}; it must be True or False")
        values |= changes
        object.__setattr__(self, "name", base)
        object.__setattr__(self, "config", OLD_DEFAULTS if base == "0.10" else DEFAULTS)
        for area, part in AREAS.items():
            given = {d.bug or d.name: values[d.name] != bool(d.bug) for d in FIELDS if d.area == area}
            object.__setattr__(self, area, part(**given))

    @property
    def kafka(self) -> str:
        """The release whose source is followed."""
        return GENERATIONS[self.name]

    @property
    def topic_version(self) -> int:
        """The version of a topic's znode: 2 has a place for what is being added and removed (KIP-455)."""
        return 2 if self.reassignment.incremental_reassignment else 1

    def has(self, field: str) -> bool:
        """The value of a switch, wherever it is. Raises UnknownName for others."""
        found = BY_NAME.get(field)
        if found is None:
            raise UnknownName("field of Generation", field, BY_NAME)
        value: bool = getattr(getattr(self, found.area), found.bug or field)
        return value != bool(found.bug)

    def but(self, **changes: bool) -> Generation:
        """The same generation with some switches changed: a hybrid for lessons and exhibits."""
        return Generation(self, **changes)

    @property
    def changes(self) -> dict[str, bool]:
        """The switches in which a hybrid differs from the generation it is named after."""
        return dict(self._changes)

    @cached_property
    def _changes(self) -> dict[str, bool]:
        return {d.name: self.has(d.name) for d in FIELDS if self.has(d.name) != d.values[self.name]}

    def __str__(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.changes.items())


def _switches(area: str, part: type[Area]) -> Iterator[Difference]:
    for name, found in vars(part).items():
        if isinstance(found, Difference):
            yield found._replace(area=area, bug=name) if found.fixed else found._replace(area=area, name=name)


_KINDS = {part.__name__: part for part in Area.__subclasses__()}
AREAS = {name: _KINDS[kind] for name, kind in Generation.__annotations__.items() if kind in _KINDS}
"""The parts of a generation, by the fields of `Generation`."""
FIELDS = tuple(switch for area, part in AREAS.items() for switch in _switches(area, part))
"""Every switch."""
BY_NAME = {switch.name: switch for switch in FIELDS}
DEFECTS = tuple(switch for switch in FIELDS if switch.bug)
"""Fixes of bugs from before or after these generations, in which they agree."""
DIFFERENCES = tuple(switch for switch in FIELDS if not switch.bug)
"""The switches in which generations differ."""
