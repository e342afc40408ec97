"""What controllers log: one row for each message, which `env.log` records and `kafka_log/messages.txt` renders.

`rule` is the decision behind a message, as "why?" explains it.
"""

from __future__ import annotations

from kafka_ctl.trace.rows import Action, Group, Rule, action


def message(name: str, fields: str = "", sentence: str = "", news: bool = False, story: bool | None = None,
            bulk: bool = False, rule: Rule | None = None) -> Action:  # fmt: skip
    """The row of a message; its `broker` is the controller's id, and `detail` has the fields as JSON."""
    columns = f"broker controller_epoch{' detail' * bool(fields)}"
    return action(name, columns, fields, sentence)._replace(news=news, story=story, bulk=bulk, rule=rule)


HALTS = (
    "A deletion waits (is ineligible) while a replica is on a dead broker, could not be deleted, or its topic "
    "is being reassigned."
)
CAUGHT_UP = "A reassignment is finished only when every target replica is in the ISR; until then it waits."
LEADER = "At its end a reassignment needs a leader among the target replicas that is alive."
REQUEST = "A request that cannot be fulfilled is dropped, so that it does not hold up the others."
LEAVES = "A broker that asks to leave is taken out of every election from now on, then its leaderships are moved."
DELETED = "A topic's znodes go only when every replica has been deleted."
PREFERRED = "The first assigned replica, and no other, leads if it is live and in the ISR."

MESSAGES: tuple[Group, ...] = (
    Group(
        "controller",
        "who is controller",
        (
            message(
                "elected",
                "epoch zk_version",
                "Broker {number} is elected: it is the controller.",
                story=True,
                news=True,
            ),
            message(
                "already_elected",
                "elected",
                "Broker {number} stands by: broker {elected} is the controller already.",
                bulk=True,
                news=True,
            ),
            message(
                "other_elected",
                "elected",
                "Broker {number} came too late: broker {elected} is the controller now.",
                bulk=True,
                news=True,
            ),
            message(
                "elected_and_resigned",
                "elected",
                "Broker {number} was elected, but another one has been since: it resigns.",
                story=True,
                news=True,
            ),
            message(
                "election_failed",
                "error",
                "Controller {number} could not elect a leader.",
                news=True,
                rule=Rule(
                    "An error while it takes over ends a controller's time in office, so that another broker can try.",
                    "it gives up: {error}",
                    (("without the error", "it would be the controller"),),
                    ("leadership.elect_once",),
                ),
            ),
            message("reading_epoch"),
            message("initialized_epoch", "epoch zk_version"),
            message("incrementing_epoch"),
            message("epoch_incremented", "epoch"),
            message("already_moved"),
            message("controller_moved", "error event"),
            message(
                "forcing_resignation",
                "",
                "Broker {number} gives the controllership up on purpose.",
                story=True,
                news=True,
                rule=Rule(
                    "A batch of requests that was left half sent cannot be trusted: the controller gives up, so that "
                    "another one reads everything anew (KAFKA-2300).",
                    "it deletes /controller and resigns",
                    (("had the batch been empty", "it would have gone on"),),
                    ("environment.Environment.illegal_state",),
                ),
            ),
            message(
                "resigned",
                "",
                "Broker {number} resigns: it is no longer the controller.",
                story=True,
                news=True,
                rule=Rule(
                    "A controller resigns when /controller no longer names it or its session has expired: it forgets "
                    "its context and closes its channels.",
                    "it acts no more",
                    (("had its session lasted and /controller stayed", "it would still be the controller"),),
                    ("failover.resign",),
                ),
            ),
            message("reelection_skipped"),
            message("error_processing", "error event"),
        ),
    ),
    Group(
        "controller",
        "becoming controller, in this order",
        (
            message("registering_handlers"),
            message("deleting_log_dir_notifications"),
            message("deleting_isr_change_notifications"),
            message("initializing_context"),
            message("active_brokers", "brokers"),
            message("shutting_brokers", "brokers"),
            message("topics", "topics"),
            message("fetching_deletions"),
            message("topics_to_be_deleted", "topics"),
            message(
                "topics_ineligible",
                "topics",
                rule=Rule(
                    HALTS,
                    "a new controller lets these topics wait: {topics}",
                    (("were all replicas online and none reassigned", "no topic would wait"),),
                    ("deletion.initialize",),
                ),
            ),
            message("initializing_deletion", "ineligible topics"),
            message("sending_update_metadata"),
            message("initializing_replica_state"),
            message("triggering_online_replicas"),
            message("triggering_offline_replicas"),
            message("initializing_partition_state"),
            message("triggering_online_partitions"),
            message(
                "ready",
                "epoch",
                "Controller {number} has taken over{with_epoch}: it has read the cluster and begins.",
                news=True,
                rule=Rule(
                    "A new controller knows nothing of the old one's memory: it reads brokers, topics, assignments and "
                    "states from ZooKeeper, informs the brokers, and then begins.",
                    "it begins, with epoch {epoch}",
                    (("had another broker been elected meanwhile", "it would find out and resign"),),
                    ("failover.become_controller",),
                ),
            ),
            message("starting_scheduler"),
        ),
    ),
    Group(
        "controller",
        "brokers",
        (
            message(
                "brokers_changed",
                "bounced dead live new",
                "Controller {number} compares /brokers/ids with what it knew: {difference}.",
                news=True,
                rule=Rule(
                    "The controller compares the znodes under /brokers/ids with the brokers that it knows; since 2.2 "
                    "also their broker epochs, so that a quick restart is noticed.",
                    "new: {new}; restarted: {bounced}; gone: {dead}; live: {live}",
                    (
                        (
                            "had a broker gone and come back between two looks",
                            "it would be seen by its broker epoch only (KAFKA-7235)",
                        ),
                    ),
                    ("membership._brokers_are",),
                ),
            ),
            message("broker_epochs_initialized", "epochs"),
            message("broker_epochs_updated", "epochs"),
            message("broker_startup", "brokers"),
            message("broker_failure", "brokers"),
            message("removed_from_shutting_down", "brokers"),
            message("broker_updated", "broker host port"),
            message("broker_info_update", "broker"),
            message("replicas_offline", "broker partitions"),
            message("leader_and_isr_error", "broker error"),
            message(
                "retaining_last_isr",
                "partition replica",
                rule=Rule(
                    "The last member of an ISR stays in it, even dead, unless unclean election is allowed.",
                    "replica {replica} stays in the ISR of {partition}",
                    (("with unclean election", "the ISR would become empty"),),
                    ("replica_machine.ReplicaStateMachine._emptied",),
                ),
            ),
        ),
    ),
    Group(
        "controller",
        "topics",
        (
            message("topics_changed", "assignment deleted new"),
            message("partitions_added", "assignment"),
            message("topic_creation", "partitions"),
            message("partition_creation", "partitions"),
            message("partitions_not_added", "partitions topic"),
            message("restoring_assignment", "topic"),
            message("partition_change_ignored"),
        ),
    ),
    Group(
        "controller",
        "state changes, requests and batches",
        (
            message(
                "not_sending",
                "broker delete partitions request",
                bulk=True,
                rule=Rule(
                    "A request goes through the channel of a broker that is registered; there is none for any other.",
                    "{request} is not sent to broker {broker}, and is lost",
                    (("were it registered", "the request would wait in its channel until it is answered"),),
                ),
            ),
            message("leader_not_assigned", "partition"),
            message("invoking_partitions", "partitions target"),
            message("invoking_replicas", "replicas target"),
            message("error_moving_partitions", "error target"),
            message("error_moving_replicas", "error target"),
            message("states_not_created", "error"),
            message("partitions_not_moved", "error target"),
            message("replicas_not_moved", "error target"),
        ),
    ),
    Group(
        "controller",
        "controlled shutdown",
        (
            message(
                "shutting_down_broker",
                "broker",
                "Controller {number} begins a controlled shutdown.",
                news=True,
                rule=Rule(
                    LEAVES,
                    "broker {broker} is leaving",
                    (("had it asked in an earlier life (a lower broker epoch)", "2.4 would have refused"),),
                    ("shutdown._begin",),
                ),
            ),
            message(
                "stale_controlled_shutdown",
                "broker broker_epoch current",
                rule=Rule(
                    "A request to leave counts only if it comes from the broker's present life: its epoch "
                    "must not be lower.",
                    "refused: broker {broker} asks with epoch {broker_epoch}, its present one is {current}",
                    (("with the present epoch", "its leaderships would be moved"),),
                    ("shutdown._begin",),
                ),
            ),
            message("all_shutting_down", "brokers"),
            message("live_brokers", "brokers"),
        ),
    ),
    Group(
        "controller",
        "preferred leaders, elections asked for through the API, and the balance",
        (
            message("preferred_undergoing", "partitions"),
            message("preferred_completed", "partitions"),
            message("preferred_skipped", "partitions"),
            message("preferred_resuming", "partitions"),
            message("preferred_running", "partitions"),
            message("preferred_starting", "partitions trigger", bulk=True),
            message(
                "preferred_done",
                "leader partition preferred",
                bulk=True,
                rule=Rule(
                    PREFERRED,
                    "broker {leader} leads {partition}: it is the preferred one",
                    (("were it dead or out of sync", "whoever leads would go on leading"),),
                    ("rebalance.elect",),
                ),
            ),
            message(
                "preferred_failed",
                "leader partition preferred",
                rule=Rule(
                    PREFERRED,
                    "broker {leader} goes on leading {partition}; broker {preferred} is preferred",
                    (("were broker {preferred} live and in sync", "it would lead"),),
                    ("rebalance.elect",),
                ),
            ),
            message(
                "preferred_deleting",
                "partitions",
                rule=Rule(
                    REQUEST,
                    "dropped, as their topics are to be deleted: {partitions}",
                    (("were they to stay", "they would be tried"),),
                    ("rebalance._elect_requested",),
                ),
            ),
            message(
                "preferred_unknown",
                "partitions",
                rule=Rule(
                    REQUEST,
                    "dropped, as they do not exist: {partitions}",
                    (("did they exist", "they would be tried"),),
                    ("rebalance._elect_requested",),
                ),
            ),
            message("election_starting", "partitions type"),
            message("election_deleting", "partitions type"),
            message("election_unknown", "partition type"),
            message("unclean_enabled", "topic"),
            message("checking_balance", "", bulk=True),
            message(
                "imbalance",
                "broker ratio",
                bulk=True,
                rule=Rule(
                    "A broker whose share of partitions led by others is above "
                    "leader.imbalance.per.broker.percentage gets them back.",
                    "of the partitions preferred to broker {broker}, {ratio} are led by others",
                    (("with a share above the limit", "preferred leaders are elected"),),
                ),
            ),
        ),
    ),
    Group(
        "controller",
        "reassignment",
        (
            message("partitions_being_reassigned", "partitions"),
            message("partitions_already_reassigned", "partitions"),
            message("reassignment_resuming", "partitions"),
            message("handling_reassignment", "partition replicas"),
            message(
                "reassignment_ignored",
                "error",
                rule=Rule(
                    "What stands in /admin/reassign_partitions must be a list of partitions with replicas.",
                    "all of it is ignored: {error}",
                    (("could it be read", "the reassignments would begin"),),
                    ("reassignment_request.read",),
                ),
            ),
            message(
                "reassignment_skipped",
                "partition",
                rule=Rule(
                    REQUEST,
                    "refused for {partition}: its topic is to be deleted",
                    (("were it not to be deleted", "the reassignment would begin"),),
                ),
            ),
            message(
                "reassignment_unknown",
                "partition",
                rule=Rule(
                    REQUEST,
                    "refused for {partition}: there is no such partition",
                    (("did it exist", "the reassignment would begin"),),
                    ("reassignment.trigger",),
                ),
            ),
            message(
                "reassignment_not_needed",
                "partition replicas",
                rule=Rule(
                    REQUEST,
                    "nothing to do for {partition}: {replicas} is what it has",
                    (("with other replicas", "the reassignment would begin"),),
                    ("reassignment.trigger",),
                ),
            ),
            message(
                "reassignment_not_caught_up",
                "partition replicas",
                rule=Rule(
                    CAUGHT_UP,
                    "{partition} is assigned to old and new replicas together; the new ones are started",
                    (("were all of {replicas} in the ISR", "the last steps would follow at once"),),
                    (
                        "reassignment.on_reassignment",
                        "reassignment._begin",
                    ),
                ),
            ),
            message(
                "reassignment_waiting",
                "partition replicas",
                rule=Rule(
                    CAUGHT_UP,
                    "the controller waits until {replicas} are in sync",
                    (("were all of them in the ISR", "the last steps would follow at once"),),
                    ("reassignment._begin",),
                ),
            ),
            message(
                "reassignment_progress",
                "caught_up missing partition wanted",
                rule=Rule(
                    CAUGHT_UP,
                    "{caught_up} of {wanted} target replicas are in the ISR; missing: {missing}",
                    (
                        (
                            "with none missing",
                            "the old replicas would be stopped and deleted, and the reassignment finished",
                        ),
                    ),
                    ("reassignment._isr_changed",),
                ),
            ),
            message("reassignment_never_created", "partition replicas"),
            message(
                "reassignment_caught_up",
                "partition replicas",
                rule=Rule(
                    CAUGHT_UP,
                    "{replicas} are in sync: the last steps follow",
                    (("were one missing", "it would go on waiting"),),
                    (
                        "reassignment_incremental.isr_change",
                        "reassignment_incremental._complete",
                    ),
                ),
            ),
            message(
                "reassignment_leader_outside",
                "leader partition replicas",
                rule=Rule(
                    LEADER,
                    "broker {leader} leads and is none of {replicas}: an election follows",
                    (("were it one of them, and alive", "it would go on leading"),),
                    ("reassignment.move_leader",),
                ),
            ),
            message(
                "reassignment_leader_stays",
                "leader partition replicas",
                rule=Rule(
                    LEADER,
                    "broker {leader} is one of {replicas} and alive: it goes on leading, with a new leader epoch",
                    (("were it none of them, or dead", "there would be an election"),),
                    ("reassignment.move_leader",),
                ),
            ),
            message(
                "reassignment_leader_dead",
                "leader partition replicas",
                rule=Rule(
                    LEADER,
                    "broker {leader} is one of {replicas}, but dead: an election follows",
                    (("were it alive", "it would go on leading"),),
                    ("reassignment.move_leader",),
                ),
            ),
            message("reassignment_told", "adding isr leader leader_epoch partition removing replicas zk_version"),
            message("reassignment_removed", "partitions targets"),
            message("reassignment_done"),
            message("reassignment_failed", "error partition", rule=Rule(REQUEST, "refused for {partition}: {error}")),
            message("zk_reassignment_failed", "partitions"),
            message("assignment_updated", "partition replicas"),
            message("full_assignment_updated", "adding partition removing replicas"),
            message("leader_epoch_updated", "leader_epoch partition"),
        ),
    ),
    Group(
        "controller",
        "deletion",
        (
            message("starting_deletion", "topics"),
            message(
                "deleting_unknown_topics",
                "topics",
                rule=Rule(
                    "Only topics that exist can be deleted.",
                    "the requests are dropped: {topics}",
                    (("did they exist", "they would be queued for deletion"),),
                    ("deletion._requested",),
                ),
            ),
            message(
                "deletion_disabled",
                "topics",
                rule=Rule(
                    "Topics are deleted only with delete.topic.enable.",
                    "the requests are dropped: {topics}",
                    (("with delete.topic.enable=true", "the topics would be deleted"),),
                ),
            ),
            message(
                "deletion_halted",
                "reason topics",
                rule=Rule(
                    HALTS,
                    "{topics} must wait: {reason}",
                    (("without that", "the brokers' copies would be deleted, then the znodes"),),
                    ("deletion.halt",),
                ),
            ),
            message("handling_deletion", "topics"),
            message(
                "deletion_started",
                "topic",
                rule=Rule(
                    "A queued topic is deleted when nothing halts it and none of its replicas is being deleted yet.",
                    "the deletion of {topic} begins",
                    (("were it ineligible", "it would wait"),),
                    ("deletion.look",),
                ),
            ),
            message("topic_deletion", "topics"),
            message("partition_deletion", "partitions"),
            message(
                "deletion_in_progress",
                "partitions replicas topic",
                rule=Rule(
                    DELETED,
                    "{topic} waits for brokers {replicas}",
                    (("had all of them answered", "the topic would be forgotten and its znodes deleted"),),
                    ("deletion.look",),
                ),
            ),
            message(
                "retrying_deletion",
                "replicas topic",
                rule=Rule(
                    "A replica that could not be deleted is tried again when its topic is looked at.",
                    "{topic}: its ineligible replicas go back to Offline, to be deleted again",
                    (("had none of them failed", "nothing would be tried again"),),
                    ("deletion.look",),
                ),
            ),
            message(
                "deletion_ineligible",
                "topic",
                rule=Rule(
                    HALTS,
                    "{topic} is not deleted now: it is marked as ineligible",
                    (
                        (
                            "when its replicas are back, or its reassignment has ended",
                            "the mark goes and the deletion goes on",
                        ),
                    ),
                    ("deletion.look",),
                ),
            ),
            message(
                "deletion_completed",
                "topic",
                rule=Rule(
                    DELETED,
                    "{topic} is gone: every replica was deleted",
                    (("were one replica not deleted", "the deletion would still wait for it"),),
                    ("deletion.look",),
                ),
            ),
            message("deletion_can_resume", "brokers replicas topics"),
            message("thread_died", "error"),
        ),
    ),
)
"""The messages by what they are about, in the order of a controller's life."""
