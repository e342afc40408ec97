"""The rules behind what is no message of a controller: requests, writes, watches, events, what brokers do.

A name in `REASONS` is a kind and what `reason_of` makes of a record: its action, or the family of the znode that was
written. What somebody outside decided (a fault, an administrator's command) has no rule. `by` names functions as in
`trace/messages.py`; `brokers:broker.Broker.register` is one of another folder.
"""

from __future__ import annotations

import re

from kafka_ctl.trace.record import Record
from kafka_ctl.trace.rows import Rule

ONE = "The controller processes its events one at a time, in the order in which they came."
QUEUED = ("had another event come first", "that one would have been processed first")
STORED = (
    "The controller writes a partition's leader and ISR on condition of the version that it has read; only then are "
    "brokers notified."
)
UNWATCHED = ("had no watch been set", "{who} would not hear of the change")
FAMILIES = (
    (re.compile(r"/brokers/topics/[^/]+/partitions/\d+/state\Z"), "state"),
    (re.compile(r"/brokers/topics/[^/]+\Z"), "topic"),
    (re.compile(r"/brokers/topics/.+\Z"), "tree"),
    (re.compile(r"/brokers/ids/\d+\Z"), "broker"),
    (re.compile(r"/controller\Z"), "controller"),
    (re.compile(r"/controller_epoch\Z"), "epoch"),
    (re.compile(r"/isr_change_notification/.+"), "isr change"),
    (re.compile(r"/log_dir_event_notification/.+"), "log dir"),
    (re.compile(r"/admin/delete_topics/.+"), "deletion"),
    (re.compile(r"/admin/reassign_partitions\Z"), "reassignment"),
    (re.compile(r"/admin/preferred_replica_election\Z"), "preferred"),
    (re.compile(r"/config/.+"), "config"),
)
"""Paths and the families of znodes, whose writes follow one rule each."""


def reason_of(record: Record, by_controller: bool = False) -> Rule | None:
    """The rule behind a record; None where it has none here. `by_controller`: a controller made the write."""
    if record.kind == "zk" and record.action in ("create", "set", "delete"):
        if record.error:
            return None
        family = next((name for found, name in FAMILIES if found.search(record.path or "")), "")
        writer = "admin" if record.actor == "admin" else "controller" if by_controller else "broker"
        keys = (f"{record.action} {family} {writer}", f"{record.action} {family}", family)
        return next((REASONS["zk", key] for key in keys if ("zk", key) in REASONS), None)
    if record.kind == "event" and record.target != "started":
        return None
    if record.kind == "request" and record.target != "sent":
        return None
    named = ("broker", f"{record.action} {record.error}")
    return REASONS.get(named) if named in REASONS else REASONS.get((record.kind, str(record.action)))


def _event(rule: str, outcome: str, *by: str, otherwise: tuple[str, str] = QUEUED) -> Rule:
    return Rule(f"{ONE} {rule}", outcome, (otherwise,), by)


REASONS: dict[tuple[str, str], Rule] = {
    # Requests of the controller, and a broker's own.
    ("request", "UpdateMetadata"): Rule(
        "When leaders, ISRs or live brokers change, every live broker is sent the change for its metadata cache, from "
        "which it answers clients.",
        "{receiver} is sent metadata of {count} partitions",
        (("were the request lost", "clients that ask this broker would be sent to the old leaders"),),
        ("batch.RequestBatch._send_metadata",),
    ),
    ("request", "LeaderAndIsr"): Rule(
        "The brokers that hold a partition are notified who leads it and who is in sync, and no other broker is.",
        "{receiver} is notified of {count} partitions",
        (("were the request lost", "this broker would lead or follow as before, whatever ZooKeeper has"),),
        ("batch.RequestBatch._send_leader_and_isr",),
    ),
    ("request", "StopReplica"): Rule(
        "A broker whose copy leaves the ISR, moves away or is deleted is asked to stop fetching; with `delete` also to "
        "delete the copy.",
        "{receiver} is to stop copies of {count} partitions",
        (("were the request lost", "the broker would go on fetching, and keep the copies"),),
        ("batch.RequestBatch._send_stop",),
    ),
    ("request", "ControlledShutdown"): Rule(
        "A broker that is asked to stop first asks the controller to move its leaderships away; it stops when none is "
        "left, or after controlled.shutdown.max.retries attempts.",
        "{who} asks {receiver} to move its leaderships",
        (("without controlled.shutdown.enable", "it would stop at once, and its partitions would have no leader until "
          "ZooKeeper removes its znode"),),
        ("brokers:controlled_shutdown.ask_to_leave",),
    ),
    # ZooKeeper: sessions and watches.
    ("zk", "connect"): Rule(
        "A broker has one ZooKeeper session; its ephemeral znodes last as long as the session.",
        "{who} has a session ({detail})",
        (("without a session", "the broker could not register, and would not count as alive"),),
        ("brokers:broker.Broker._connect",),
    ),
    ("zk", "expired"): Rule(
        "ZooKeeper expires a session without heartbeats for the session timeout, and deletes its ephemeral znodes.",
        "the session ends ({detail})",
        (("had the client been heard in time", "the session and its znodes would have stayed"),),
        ("brokers:broker.Broker._renew_session",),
    ),
    ("zk", "closed"): Rule(
        "A client that closes its session loses its ephemeral znodes at once, without the session timeout.",
        "the session is closed ({detail})",
        (("had the process been killed instead", "its znodes would stay until the session timeout is over"),),
        ("brokers:broker.Broker.stop",),
    ),
    ("zk", "disconnected"): Rule(
        "A client that has lost its connection waits and tries again; its session lives until the timeout is over.",
        "{who} has no connection to ZooKeeper",
        (("were it longer than the session timeout", "the session would expire"),),
        ("brokers:broker.Broker._session_state",),
    ),
    ("zk", "reconnected"): Rule(
        "A client that finds ZooKeeper again before the session timeout keeps its session and its znodes.",
        "{who} goes on with its session",
        (("had it been later than the session timeout", "the session would have expired"),),
        ("brokers:broker.Broker._session_state",),
    ),
    ("watch", "fired"): Rule(
        "A watch fires once, at the first change after it was set, and ZooKeeper sends it before the answer to any "
        "later read of that session.",
        "{who} is notified of {target} at {path}, and has to read what is there now",
        (UNWATCHED,),
        ("zookeeper:client.ZooKeeperClient.watched",),
    ),
    # ZooKeeper: writes.
    ("zk", "create controller"): Rule(
        "Who creates the ephemeral znode /controller is the controller; it is theirs until their session ends.",
        "{who} has created it first",
        (("had another broker come first", "this create would fail with NODEEXISTS"),),
        ("leadership.elect_once",),
    ),
    ("zk", "delete controller"): Rule(
        "/controller goes with the session that made it, or when the controller gives up; then all brokers compete.",
        "nobody is controller, until a broker creates /controller again",
        (("had the session lasted", "the controller would have stayed"),),
        ("leadership.reelect",),
    ),
    ("zk", "epoch"): Rule(
        "Every new controller raises /controller_epoch by one, on condition of the version that it has read; brokers "
        "refuse requests with a lower epoch.",
        "the controller epoch is {detail}",
        (("had another controller written in between", "this write would fail, and the controller would resign"),),
        ("leadership.increment_epoch",),
    ),
    ("zk", "create broker"): Rule(
        "A running broker has an ephemeral znode under /brokers/ids; the controller takes exactly those brokers for "
        "alive.",
        "{who} is registered",
        (("had an older session's znode still been there", "the broker would have had to wait for it to go"),),
        ("brokers:broker.Broker.register",),
    ),
    ("zk", "delete broker"): Rule(
        "A broker's znode goes with its session; the controller watches /brokers/ids and takes the broker for dead.",
        "{path} is gone",
        (("had the session lasted", "the controller would have noticed nothing"),),
        ("membership.broker_change",),
    ),
    ("zk", "create state controller"): Rule(
        "A partition that is led for the first time gets its state znode: the first live replica leads, all live ones "
        "are in sync.",
        "the state of {partition} is stored: {detail}",
        (("had the znode existed", "the create would fail, and the partition would stay New"),),
        ("partition_machine.PartitionStateMachine.initialize",),
    ),
    ("zk", "set state controller"): Rule(
        STORED,
        "the state of {partition} is stored: {detail}",
        (("had somebody written in between", "the write would fail, and the controller would read and decide again"),),
        ("partition_machine.PartitionStateMachine._elect_once", "replica_machine.ReplicaStateMachine._remove_from_isr"),
    ),
    ("zk", "set state"): Rule(
        "Between elections only the leader changes the ISR, on condition of the version that it knows; the leader "
        "epoch stays as it is.",
        "{who} has stored the ISR of {partition}: {detail}",
        (("had the controller written in between", "the write would fail with BADVERSION"),),
        ("brokers:leader.LeaderRole._write_isr",),
    ),
    ("zk", "delete state controller"): Rule(
        "The znodes of a topic go only when every replica has been deleted.",
        "{path} is gone",
        (("were a replica not deleted yet", "the znodes would stay, and the deletion would wait"),),
        ("deletion._complete",),
    ),
    ("zk", "create topic"): Rule(
        "A tool only writes the assignment of a topic; the controller, which watches /brokers/topics, does the rest.",
        "the topic is known to ZooKeeper: {detail}",
        (("were there no controller", "the topic would wait, without leaders, until there is one"),),
        ("lab:admin.Admin.create_topic",),
    ),
    ("zk", "set topic controller"): Rule(
        "While a partition moves, the controller stores old and new replicas together, and only the new ones when all "
        "of them are in sync.",
        "the assignment is stored: {detail}",
        (("had the controller died before this write", "the next one would go on from the assignment before"),),
        ("reassignment.write_assignment",),
    ),
    ("zk", "set topic admin"): Rule(
        "A tool only writes the assignment of a topic; the controller, which watches it, does the rest.",
        "the assignment is stored: {detail}",
        (("were there no controller", "nothing would come of it until there is one"),),
        ("lab:admin.Admin.add_partitions",),
    ),
    ("zk", "delete topic controller"): Rule(
        "The znodes of a topic go only when every replica has been deleted.",
        "{path} is gone",
        (("were a replica not deleted yet", "the znodes would stay, and the deletion would wait"),),
        ("deletion._complete",),
    ),
    ("zk", "tree"): Rule(
        "The znodes of a topic are made, and deleted, level by level: topic, partitions, partition, state.",
        "{path} is written",
        (("were the level above missing", "ZooKeeper would refuse with NONODE"),),
        ("zookeeper:kafka_client.KafkaZkClient.create_states",),
    ),
    ("zk", "create isr change"): Rule(
        "A leader looks every 2.5 s for ISRs that it has changed, and names them under /isr_change_notification when "
        "none has changed for 5 s, or after a minute; the controller then reads them and informs all brokers.",
        "{who} announces changed ISRs",
        (("without the notification", "only the leader and ZooKeeper would have the new ISR"),),
        ("brokers:leader.LeaderRole._propagate",),
    ),
    ("zk", "delete isr change"): Rule(
        "A notification is deleted when the controller has read the partitions that it names; a new controller deletes "
        "all of them, as it reads everything anyway.",
        "{path} is gone",
        (("had the controller died before", "the next controller would find it and delete it"),),
        ("notifications.isr_change_notification",),
    ),
    ("zk", "create log dir"): Rule(
        "A broker that has lost a log directory creates a sequential znode; the controller then asks it for all its "
        "replicas.",
        "{who} announces a failed log directory",
        (("without the notification", "the controller would take the replicas there for online"),),
        ("brokers:replica_manager.ReplicaManager._announce_failure",),
    ),
    ("zk", "delete log dir"): Rule(
        "A notification is deleted when the controller has asked the broker that made it.",
        "{path} is gone",
        (("had the controller died before", "the next controller would find it and delete it"),),
        ("notifications.log_dir_event_notification",),
    ),
    ("zk", "create deletion"): Rule(
        "A topic is deleted on request: its name stands under /admin/delete_topics until the controller is done.",
        "the topic is to be deleted",
        (("were a replica offline", "the deletion would wait"),),
        ("lab:admin.Admin.delete_topic",),
    ),
    ("zk", "delete deletion"): Rule(
        "The request for a deletion goes last, when nothing of the topic is left.",
        "the deletion is complete",
        (("had the controller died before", "the next controller would go on with the deletion"),),
        ("deletion._complete",),
    ),
    ("zk", "create reassignment"): Rule(
        "A reassignment is asked for in /admin/reassign_partitions; the controller, which watches it, moves the "
        "partitions.",
        "the reassignment is asked for: {detail}",
        (("were there no controller", "the request would wait for the next one"),),
        ("lab:admin.Admin.reassign",),
    ),
    ("zk", "reassignment"): Rule(
        "A partition is taken out of /admin/reassign_partitions when its reassignment has ended; the znode goes with "
        "the last one.",
        "what is left to be moved: {detail}",
        (("had the controller died before", "the next controller would find the request, and what is done already"),),
        ("reassignment_request.forget",),
    ),
    ("zk", "create preferred"): Rule(
        "An election of preferred leaders is asked for in /admin/preferred_replica_election, which is watched.",
        "the election is asked for: {detail}",
        (("were there no controller", "the request would wait for the next one"),),
        ("lab:admin.Admin.elect_preferred",),
    ),
    ("zk", "preferred"): Rule(
        "The request for preferred leaders is deleted when the elections are over, successful or not.",
        "the request is gone",
        (("had the controller died before", "the next controller would hold the elections"),),
        ("rebalance.elect",),
    ),
    ("zk", "config"): Rule(
        "The configuration of a topic stands under /config/topics; brokers read it when they make a copy or elect.",
        "{path} has {detail}",
        (("without an entry", "the broker's own configuration would count"),),
        ("zookeeper:configs.change_config",),
    ),
    # Events of the controller.
    ("event", "Startup"): _event(
        "At its start it watches /controller and tries to create it.", "{who} takes part in the election",
        "leadership.startup",
    ),
    ("event", "Reelect"): _event(
        "When /controller is gone it tries to create it.", "{who} takes part in the election", "leadership.reelect",
    ),
    ("event", "RegisterBrokerAndReelect"): _event(
        "After its session has expired the broker registers again and takes part in the election.",
        "{who} begins with its new session", "leadership.new_session",
    ),
    ("event", "Expire"): _event(
        "When its session has expired the controller resigns before anything else.",
        "{who} resigns, if it was controller", "failover.resign",
    ),
    ("event", "BrokerChange"): _event(
        "It reads /brokers/ids and compares it with the brokers that it knows.", "{who} compares the brokers",
        "membership.broker_change",
    ),
    ("event", "BrokerModifications"): _event(
        "It reads the endpoints of a broker again and informs all brokers if they are others.",
        "{who} looks at broker {broker}", "membership.broker_modifications",
    ),
    ("event", "TopicChange"): _event(
        "It reads /brokers/topics: new topics get leaders, topics that are gone are forgotten.",
        "{who} looks for new topics", "topics.topic_change",
    ),
    ("event", "PartitionModifications"): _event(
        "It reads the assignment of a topic: new partitions get leaders.", "{who} looks for new partitions of {topic}",
        "topics.partition_modifications",
    ),
    ("event", "TopicDeletion"): _event(
        "It reads /admin/delete_topics and begins with the topics whose replicas are all online.",
        "{who} looks for topics to be deleted", "deletion.topic_deletion",
    ),
    ("event", "TopicDeletionStopReplicaResponseReceived"): _event(
        "When every copy of the topic has been deleted, its znodes are deleted, too.",
        "{who} counts the answer of broker {broker}", "deletion.stop_replica_response",
    ),
    ("event", "PartitionReassignment"): _event(
        "It reads /admin/reassign_partitions and begins to move the partitions named there.",
        "{who} looks for reassignments", "reassignment.partition_reassignment",
    ),
    ("event", "ApiPartitionReassignment"): _event(
        "A reassignment that comes as a request is checked partition by partition and stored in the topics' znodes.",
        "{who} begins the reassignment", "reassignment_incremental.api_partition_reassignment",
    ),
    ("event", "ListPartitionReassignments"): _event(
        "The answer is read from the controller's context.", "{who} lists the reassignments",
        "reassignment_incremental.list_partition_reassignments",
    ),
    ("event", "PartitionReassignmentIsrChange"): _event(
        "When the ISR of a moving partition changes it looks whether all new replicas are in sync.",
        "{who} looks at {partition}", "reassignment.isr_change",
    ),
    ("event", "PreferredReplicaLeaderElection"): _event(
        "It reads /admin/preferred_replica_election and elects the first replica of each partition named there.",
        "{who} looks for elections that were asked for", "rebalance.preferred_election",
    ),
    ("event", "ReplicaLeaderElection"): _event(
        "An election that comes as a request is held for each partition named in it.", "{who} holds the elections",
        "electing.elect_leaders",
    ),
    ("event", "AutoPreferredReplicaLeaderElection"): _event(
        "Every leader.imbalance.check.interval.seconds it moves leaderships back where a broker lacks more than "
        "leader.imbalance.per.broker.percentage of its own.",
        "{who} looks for imbalance", "rebalance.auto_rebalance",
    ),
    ("event", "TopicUncleanLeaderElectionEnable"): _event(
        "Once a topic is set to allow unclean elections, it elects where the topic has no leader (KAFKA-6835, since "
        "2.1).",
        "{who} looks for leaders of {topic}", "electing.unclean_enabled",
    ),
    ("event", "LogDirEventNotification"): _event(
        "It asks the brokers named there for all their replicas; the answers say which are gone.",
        "{who} looks for failed log directories", "notifications.log_dir_event_notification",
    ),
    ("event", "IsrChangeNotification"): _event(
        "It reads the states that leaders have changed and sends them to all brokers.",
        "{who} reads the changed ISRs", "notifications.isr_change_notification",
    ),
    ("event", "ControlledShutdown"): _event(
        "It moves the leaderships of a broker that is about to stop.", "{who} answers broker {broker}",
        "shutdown.controlled_shutdown",
    ),
    # What brokers do.
    ("broker", "become-leader"): Rule(
        "A broker obeys LeaderAndIsr for a partition if its leader epoch is higher than the one that it knows.",
        "{who} leads {partition}, leader epoch {leader_epoch}, ISR {isr}",
        (("had it known this leader epoch or a higher one", "it would have ignored the request"),),
        ("brokers:replica_manager.ReplicaManager.leader_and_isr",),
    ),
    ("broker", "become-follower"): Rule(
        "A broker obeys LeaderAndIsr for a partition if its leader epoch is higher than the one that it knows; a "
        "follower then fetches from the leader.",
        "{who} follows broker {leader} in {partition}, leader epoch {leader_epoch}",
        (("had it known this leader epoch or a higher one", "it would have ignored the request"),),
        ("brokers:replica_manager.ReplicaManager.leader_and_isr",),
    ),
    ("broker", "become-follower LEADER_NOT_AVAILABLE"): Rule(
        "A broker follows only a leader that its metadata cache has as alive; UpdateMetadata has to come first.",
        "{who} makes a copy of {partition}, but follows nobody",
        (("had UpdateMetadata named broker {leader} before", "it would fetch from it"),),
        ("brokers:replica_manager.ReplicaManager._become",),
    ),
    ("broker", "stop-replica"): Rule(
        "A broker that is asked to stop a copy stops fetching; with `delete` it also deletes it. A copy that it does "
        "not hold is no error.",
        "{who} has stopped its copy of {partition} ({detail})",
        (("had the request had an older controller epoch", "it would have been refused"),),
        ("brokers:replica_manager.ReplicaManager.stop_replica",),
    ),
    ("broker", "uncached"): Rule(
        "Leader -2 in UpdateMetadata says that the partition is being deleted.",
        "{who} forgets {partition}",
        (("with any other leader", "the entry of the metadata cache would be replaced"),),
        ("brokers:replica_manager.ReplicaManager.update_metadata",),
    ),
    ("broker", "log-dir-failed"): Rule(
        "A broker goes on without a failed log directory, if it has another one.",
        "{who} has lost copies ({detail})",
        (("had it no other log directory", "the broker would have halted"),),
        ("brokers:replica_manager.ReplicaManager.fail_log_dir",),
    ),
    ("broker", "shrink-isr"): Rule(
        "A leader takes a follower out of the ISR that has not been at the end of its log for replica.lag.time.max.ms.",
        "the ISR of {partition} is to be {isr}{failed}",
        (("had the follower fetched to the end of the log in time", "it would have stayed in the ISR"),),
        ("brokers:leader.LeaderRole.shrink_isrs",),
    ),
    ("broker", "expand-isr"): Rule(
        "A leader takes an assigned follower into the ISR that has fetched up to the high watermark.",
        "the ISR of {partition} is to be {isr}{failed}",
        (("were the follower still behind", "it would not be in the ISR"),),
        ("brokers:leader.LeaderRole._expand_isr",),
    ),
    ("broker", "caught-up"): Rule(
        "A follower fetches until it is at the end of its leader's log; then the leader may take it into the ISR.",
        "{who} has all records of {partition}",
        (("were its fetches slower than the producers", "it would never catch up"),),
        ("brokers:follower.Fetcher._fetch",),
    ),
    ("broker", "append"): Rule(
        "The leader writes new records at the end of its log, with its leader epoch; followers fetch them from there.",
        "{who} has appended ({detail})",
        (("were this broker no longer the leader", "it would answer NOT_LEADER_FOR_PARTITION"),),
        ("brokers:leader.LeaderRole.produce",),
    ),
    ("broker", "copy"): Rule(
        "A follower fetches from the end of its own log, and appends what the leader has from there on.",
        "{who} has copied ({detail})",
        (("were its log longer than the leader's", "it would have to drop records first"),),
        ("brokers:copying.Copying._fetch",),
    ),
    ("broker", "truncate"): Rule(
        "A new follower drops what the leader may not have: since 0.11 up to where their leader epochs agree, before "
        "that everything above its own high watermark.",
        "{who} has dropped records ({detail})",
        (("were its log a prefix of the leader's", "nothing would be dropped"),),
        ("brokers:copying.Copying._truncate",),
    ),
    ("broker", "high-watermark"): Rule(
        "The high watermark is the lowest log end offset of the ISR; followers learn it with the next fetch.",
        "{who} has it at {detail}",
        (("were a follower in the ISR behind", "the high watermark would stay where that follower's log ends"),),
        ("brokers:leader.LeaderRole.increment_high_watermark",),
    ),
    ("broker", "session-expired"): Rule(
        "A broker learns from ZooKeeper, when it is connected again, that its session has expired; its controller "
        "resigns, then it opens a new session.",
        "{who} begins again with a new session",
        (("had it been heard in time", "session and controllership would have stayed"),),
        ("brokers:broker.Broker._renew_session",),
    ),
    ("broker", "controlled-shutdown"): Rule(
        "A broker that stops in good order asks the controller, up to controlled.shutdown.max.retries times, until no "
        "leadership is left.",
        "{who} has its answer ({detail}{failed})",
        (("were leaderships left after the last attempt", "it would stop all the same"),),
        ("brokers:controlled_shutdown.ask_to_leave",),
    ),
    ("broker", "stopped"): Rule(
        "A process that stops in good order closes its session, so that ZooKeeper deletes its znodes at once.",
        "{who} has stopped",
        (("had it been killed", "its znodes would have stayed until the session timeout"),),
        ("brokers:broker.Broker.stop",),
    ),
    ("broker", "stopped OFFSET_OUT_OF_RANGE"): Rule(
        "Before 0.11 a follower whose log is longer than its leader's halts, unless unclean election is allowed "
        "(KAFKA-3410).",
        "{who} halts ({detail})",
        (("with unclean.leader.election.enable", "it would have dropped its own records and gone on"),),
        ("brokers:copying.Copying._out_of_range",),
    ),
}  # fmt: skip
"""Kind and name -> the rule."""
