"""What can happen: one row for each kind and action of a record.

A row has the columns and the names in `detail` that such a record may carry, its sentence in a caption, whether it is
news, and for a controller's message (`messages.py`) the rule behind it. Text, steps, captions, "why?", the files of a
history and `docs/trace-format.md` read these rows. A new action is a new row; a test finds what has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from kafka_ctl.trace.messages import MESSAGES
from kafka_ctl.trace.record import KINDS
from kafka_ctl.trace.rows import ANY, Action, Group, action, actions

PARTITION = "topic partition"
STATE = "leader isr leader_epoch zk_version controller_epoch"
MOVE = f"{PARTITION} source target controller_epoch"

GROUPS: tuple[Group, ...] = (
    Group("zk",
        "one operation as the server applied it; `path`, the `zk_version` it left or read, `error` by ZooKeeper's "
        "name; `create` has `target` `persistent` or `ephemeral`; `detail` is the data written. The parts of a "
        "transaction that went through stand by themselves; `multi` is one that was refused", (
            *actions("create set", "path target zk_version error detail"),
            action("delete", "path error"),
            *actions("get exists children", "path zk_version error", news=False, story=False),
            action("multi", "path error"),
        )),
    Group("zk", "sessions; `detail` names the session", (
        *actions("connect disconnected reconnected expired closed", "detail", "session timeout"),
    )),
    Group("watch",
        "`actor` is the receiver; `target` is `NodeCreated`, `NodeDeleted`, `NodeDataChanged` or `NodeChildrenChanged`",
        actions("fired", "path target")),
    Group("event",
        "an event of a controller: `target` is `queued`, then `started`, then `done` (with `error` if it failed); or "
        "`dropped`, when the session expired first", (
            *actions(
                "Startup Reelect RegisterBrokerAndReelect Expire BrokerChange BrokerModifications TopicChange "
                "PartitionModifications TopicDeletion TopicDeletionStopReplicaResponseReceived PartitionReassignment "
                "ApiPartitionReassignment ListPartitionReassignments PartitionReassignmentIsrChange "
                "PreferredReplicaLeaderElection ReplicaLeaderElection AutoPreferredReplicaLeaderElection "
                "TopicUncleanLeaderElectionEnable "
                "LogDirEventNotification IsrChangeNotification ControlledShutdown",
                "topic partition broker source target error detail", "waited"),
            action("ControllerChange", "source target error detail", "waited", news=False),
            action("LeaderAndIsrResponseReceived", "broker source target error detail", "waited", news=False,
                   story=False),
        )),
    Group("event", "a command of `admin`, its arguments in `detail`; `refused` is the answer to one that was refused", (
        *actions("create_topic add_partitions alter_config delete_topic reassign cancel_reassignment elect_preferred "
                 "elect_leaders delete_controller write_znode delete_znode shutdown", "topic broker detail error"),
        action("refused", "error detail"),
    )),
    Group("partition",
        "a move of the partition state machine, named as in its table: `source` -> `target`; with a leader: `leader`, "
        "`isr`, `leader_epoch`, `zk_version`; `replicas`. `refuse` is a move that the table does not have (`error` "
        "`InvalidTransition`) or that could not be made (`StateChangeFailed`, in 0.10 also `NoReplicaOnline`, or "
        "ZooKeeper's error); `detail` says why. `set` is no move: with this state (`target`; no `source`) a new "
        "controller's machine begins", (
            *actions("set assign initialize elect mark", f"{MOVE} replicas {STATE}"),
            action("refuse", f"{MOVE} error detail"),
        )),
    Group("replica", "the same for a replica; `broker` holds it", (
        *actions("set create join tell stop delete confirm give_up forget", f"{MOVE} broker"),
        action("refuse", f"{MOVE} broker error detail"),
    )),
    Group("election",
        "the strategy: the chosen `leader` and `isr`, or `error`; `target` is `clean` or `unclean`; `replicas`; "
        "`detail` has the live brokers, the ISR and the leader before",
        actions("offline unclean preferred reassign controlled-shutdown", f"{PARTITION} target replicas error {STATE} "
                "detail", "live isr_before leader_before")),
    Group("request",
        "with a `topic`: one partition state put into a batch. `broker` is its receiver (UpdateMetadata has "
        "`brokers=1,2,3` in `detail` instead, and `offline=` replicas); `controller_epoch` is that of the state; "
        "`detail` has `is_new`, or `delete`. Without a `topic`: the request as it left for `broker`, `target` is "
        "`sent`, `detail` has `partitions=` and `correlation_id=`", (
            action("LeaderAndIsr", f"{PARTITION} broker target replicas {STATE} detail",
                   "is_new adding removing partitions correlation_id", "who leads and who follows"),
            action("UpdateMetadata", f"{PARTITION} broker target replicas {STATE} detail",
                   "brokers offline partitions correlation_id", "metadata for clients"),
            action("StopReplica", f"{PARTITION} broker target controller_epoch detail",
                   "delete partitions correlation_id", "which copies to stop"),
            action("ControlledShutdown", "broker target detail", "", "it asks to shut down"),
        )),
    Group("response",
        "`actor` and `broker` are the answering broker; `error` is that of the whole request. From a controller with "
        "`error` `DISCONNECTED`: the connection was lost before the response, it is sent again",
        actions("LeaderAndIsr UpdateMetadata StopReplica ControlledShutdown", "broker error detail")),
    *(
        Group(kind,
            "from `admin` to a broker, and its answer: the reassignment tool moves copies between log directories, and "
            "the commands of 2.4 ask the controller",
            actions("AlterReplicaLogDirs DescribeLogDirs AlterPartitionReassignments ListPartitionReassignments "
                    "ElectLeaders", "broker target error detail"))
        for kind in ("request", "response")
    ),
    Group("request",
        "`actor` is the `producer`, `broker` whom it takes for the leader (-1: nobody); `detail` has the values, "
        "`acks=` and `bytes=`",
        (action("Produce", f"{PARTITION} broker detail", "records acks bytes", "records to write"),)),
    Group("response",
        "from the `producer`: the outcome of its request, with the `error`, or the `offset=` of the first record; none "
        "where nothing was acknowledged. From a broker: its answer",
        actions("Produce", f"{PARTITION} broker error detail", "records acks bytes offset")),
    Group("broker",
        "the life of a process; `start` has settings that are not as usual; `waiting` for an older session's znode to "
        "go; `named`: it takes an id", (
        action("start", "broker error detail", "", "starts", "start"),
        action("named", "broker detail"),
        action("registered", "broker", "", "is registered in ZooKeeper", "are registered in ZooKeeper", news=False),
        action("waiting", "broker path error", news=False),
        action("session-expired", "broker", "", "learns that its session has expired",
               "learn that their sessions have expired"),
        action("log-dir-failed", "broker detail", "partitions"),
        action("stopped", f"{PARTITION} broker error detail", "end leaders_end", "stops", "stop"),
    )),
    Group("broker",
        "what a broker did with a request, one record for a partition. `error` says why it ignored a partition "
        "(or, without a `topic`, a whole request), or that it cannot follow because the leader is not alive; "
        "`stop-replica` has `delete` and `absent` in `detail`; `become-follower` has `fetcher=kept` where the "
        "follower goes on fetching as before, and `fetcher=skipped` where it starts no fetcher because it is "
        "shutting down", (
            *actions("become-leader become-follower", f"{PARTITION} broker replicas error {STATE} detail",
                     "is_new fetcher"),
            action("ignored", f"{PARTITION} broker leader leader_epoch controller_epoch replicas error detail",
                   "current request controller latest broker_epoch"),
            action("stop-replica", f"{PARTITION} broker controller_epoch error detail", "delete absent",
                   "stops its copy of {0}", "stop their copies of {0}"),
            action("cached", f"{PARTITION} broker replicas {STATE}", news=False, story=False),
            action("uncached", f"{PARTITION} broker", news=False),
        )),
    Group("broker",
        "a copy is to lie in the directory `path=` (`error` says why not; with `REPLICA_NOT_AVAILABLE` it will be made "
        "there), its future copy there is being filled, and takes its place", (
            action("log-dir-wanted", f"{PARTITION} broker error detail", "path",
                   "is to have its copy of {0} in a certain log directory",
                   "are to have their copies of {0} in certain log directories"),
            action("log-dir-copying", f"{PARTITION} broker detail", "path",
                   "fills a future copy of {0} in another log directory",
                   "fill future copies of {0} in other log directories"),
            action("log-dir-swapped", f"{PARTITION} broker detail", "path",
                   "puts the future copy of {0} in its place", "put the future copies of {0} in their places"),
        )),
    Group("broker",
        "a follower reached the end of its leader's log; a leader wrote another ISR (`isr_before=` in `detail`, "
        "`error` if somebody else had written); settings of a topic, or its own, were changed "
        "(`config=`); an attempt to leave in good order was answered (`attempt=`, "
        "`remaining=`)", (
            action("caught-up", f"{PARTITION} broker leader leader_epoch", "",
                   "has caught up with the leader of {0}", "have caught up with the leaders of {0}"),
            action("shrink-isr", f"{PARTITION} broker error {STATE} detail", "isr_before cached_version",
                   "shrinks the ISR of {0}: a follower lags", "shrink the ISR of {0}: followers lag"),
            action("expand-isr", f"{PARTITION} broker error {STATE} detail", "isr_before cached_version",
                   "expands the ISR of {0}: a follower has caught up",
                   "expand the ISR of {0}: followers have caught up"),
            action("config-changed", "topic broker detail", "config", "applies changed settings",
                   "apply changed settings"),
            action("controlled-shutdown", "broker error detail", "attempt remaining",
                   "has no leadership left and may stop", "have no leadership left and may stop"),
        )),
    Group("broker",
        "a broker that listens (`wire=True`) ended a connection, or refused records, because of what came over it: "
        "Kafka's error in `error`, what was wrong in `detail`", (
            action("closed-connection", "broker error detail", "", "closes a connection", "close connections"),
            action("refused-records", "broker error detail", "", "refuses records", "refuse records"),
        )),
    Group("broker",
        "a leader writes records, a follower copies them from its leader; records above `offset=` are dropped (`by=` "
        "what: `high-watermark`, `leader-epoch` or `leader-end`); the high watermark is `offset=` now. `detail` lists "
        "records as value@leader epoch (many in a row as `1..5000@0`), and their `bytes=` where they have sizes", (
            action("append", f"{PARTITION} broker leader leader_epoch detail", "offset records bytes",
                   "writes new records to {0}", "write new records to {0}"),
            action("copy", f"{PARTITION} broker leader leader_epoch detail", "offset records bytes",
                   "copies the new records of {0}", "copy the new records of {0}"),
            action("truncate", f"{PARTITION} broker leader leader_epoch detail", "offset records bytes by",
                   "drops records of {0} that its leader may not have",
                   "drop records of {0} that its leader may not have"),
            action("high-watermark", f"{PARTITION} broker leader leader_epoch detail", "offset",
                   "raises the high watermark of {0}",
                   "raise the high watermark of {0}"),
        )),
    Group("fault",
        "what was broken or healed, on which `broker`; `detail` has the seconds, or both ends of a connection", (
            action("kill", "broker detail", "grace",
                   "{0} is killed: its process is gone, but ZooKeeper does not know yet."),
            action("start", "broker detail", "empty", "{0} is started again."),
            action("bounce", "broker detail", "seconds", "{0} is restarted faster than its session expires."),
            action("add_broker", "broker detail", "", "A broker joins the cluster ({2})."),
            action("set_broker_id", "broker detail", "", "The configuration of {0} is changed ({2})."),
            action("set_meta", "broker detail", "", "meta.properties on a disk of {0} is changed ({2})."),
            action("expire_session", "broker", "", "The ZooKeeper session of {0} is made to expire."),
            action("pause", "broker detail", "seconds", "{0} is paused, as by a long garbage collection."),
            action("resume", "broker", "", "{0} goes on after its pause."),
            action("lag", f"{PARTITION} broker", "", "{0} falls behind with {1}."),
            action("catch_up", "broker", "", "{0} may catch up again."),
            action("heal", "broker", "", "Pauses, cuts and delays end, and followers catch up again."),
            action("disconnect", "broker detail", "", "{0} is cut off ({2})."),
            action("delay", "broker detail", "", "What {0} sends takes longer ({2})."),
            action("slow", "broker detail", "", "What {0} fetches takes longer ({2})."),
            action("lose", "broker detail", "", "The next connection that {0} uses will break ({2})."),
            action("fail_log_dir", "broker", "",
                   "A disk of {0} fails: the copies on it are gone until it starts again."),
            action("stop_zookeeper", "", "", "ZooKeeper does not answer any more; no session expires meanwhile."),
            action("start_zookeeper", "", "", "ZooKeeper answers again."),
        )),
    Group("violation",
        "an invariant that no longer holds (`docs/invariants.md`); `detail` says how, `error` is the ticket of a real "
        "bug that breaks it in this generation",
        actions(ANY, f"{PARTITION} broker error {STATE} detail")),
)  # fmt: skip
"""The catalogue, but for what controllers log (`messages.py`)."""

IMPORTED = (
    Group("broker", "", actions("received stopped-fetcher truncated started-fetcher skipped done failed says lost")),
    Group("election", "", actions("started")),
    Group("controller", "", actions("says", news=False)),
)
"""What only imported logs have."""


def catalogue() -> Iterator[Group]:
    """Every group of the tables: what a lab records."""
    yield from GROUPS
    yield from MESSAGES


@cache
def rows() -> dict[tuple[str, str], Action]:
    """The rows by kind and action; the action is `ANY` where one row stands for all of a kind."""
    return {(group.kind, row.name): row for group in (*catalogue(), *IMPORTED) for row in group.actions}


UNLISTED = {kind: Action(ANY, news=kind != "controller") for kind in KINDS}
"""What is known of an action that has no row: a log of another release, or somebody's own record."""


@cache
def find(kind: str, name: str) -> Action:
    """The row of a kind and action; a row without a sentence for what is not in the catalogue."""
    return rows().get((kind, name)) or rows().get((kind, ANY)) or UNLISTED.get(kind, Action(ANY))
