"""What Kafka's controllers write into `controller.log`, as far as the trace has a record of the same meaning.

`SENTENCES` has a sentence a line, under the name of the trace's record of kind `controller`; `{name:kind}` is a word
of that record and how to read it. Any other line of these loggers is understood without such a record: its action is
`says`, its text the detail.
Kafka 0.8.0 to 3.9.0: controller/*.scala; org/apache/kafka/controller/*.java (KRaft); the calls of their loggers
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kafka_ctl.kafka_log.read_rules import REQUESTS, Reader
from kafka_ctl.kafka_log.read_values import TP, assignment, names, numbers, partitions, replicas, spelled
from kafka_ctl.trace import details

SENTENCES = """
elected                Becoming active at controller epoch {epoch:number}.
elected                Becoming the active controller at epoch {epoch:number}, {:text}
elected                {:number} successfully elected as the controller
elected                {:number} successfully elected as the controller. Epoch incremented to {epoch:number} and epoch zk version is now {zk_version:number}
elected                {:number} successfully elected as leader
already_elected        Broker {elected:number} has been elected as the controller, so stopping the election process.
other_elected          Broker {elected:number} was elected as controller instead of broker {:number}
elected_and_resigned   A controller has been elected but just resigned, this will result in another round of election
election_failed        Error while electing or becoming controller on broker {:number}
election_failed        Error while electing or becoming controller on broker {:number}. Trigger controller movement immediately
reading_epoch          Broker {:number} starting become controller state transition
reading_epoch          Reading controller epoch from ZooKeeper
reading_epoch          Starting become controller state transition
initialized_epoch      Initialized controller epoch to {epoch:number} and zk version {zk_version:number}
incrementing_epoch     Incrementing controller epoch in ZooKeeper
epoch_incremented      Controller {:number} incremented epoch to {epoch:number}
epoch_incremented      Epoch incremented to {epoch:number}
epoch_incremented      Incremented epoch to {epoch:number}
already_moved          Controller has already moved when trying to trigger controller movement
controller_moved       Controller moved to another broker when processing {event:text}.
forcing_resignation    Forcing the controller to resign
resigned               Broker {:number} resigned as the controller
resigned               Renouncing the leadership {:text}
resigned               Resigned
reelection_skipped     ZK expired, but the current controller id {:number} is the same as this broker id, skip re-elect
error_processing       Error processing event {event:text}
error_processing       Uncaught error processing event {event:text}
ready                  Broker {:number} is ready to serve as the new controller with epoch {epoch:number}
ready                  Ready to serve as the new controller with epoch {epoch:number}

partition_states       Started partition state machine with initial state -> {partitions:states}
registering_handlers   Registering handlers
deleting_log_dir_notifications    Deleting log dir event notifications
deleting_isr_change_notifications Deleting isr change notifications
initializing_context   Initializing controller context
active_brokers         Currently active brokers in the cluster: {brokers:ids}
shutting_brokers       Currently shutting brokers in the cluster: {brokers:ids}
topics                 Current list of topics in the cluster: {topics:names}
fetching_deletions     Fetching topic deletions in progress
topics_to_be_deleted   List of topics to be deleted: {topics:names}
topics_ineligible      List of topics ineligible for deletion: {topics:names}
initializing_deletion  Initializing manager with initial deletions: {topics:names}, initial ineligible deletions: {ineligible:names}
initializing_deletion  Initializing topic deletion manager
sending_update_metadata      Sending update metadata request
initializing_replica_state   Initializing replica state
triggering_online_replicas   Triggering online replica state changes
triggering_offline_replicas  Triggering offline replica state changes
initializing_partition_state Initializing partition state
triggering_online_partitions Triggering online partition state changes
starting_scheduler     Starting the controller scheduler
starting_scheduler     Starting the partition rebalance scheduler

brokers_changed        Newly added brokers: {new:ids}, deleted brokers: {dead:ids}, all live brokers: {live:ids}
brokers_changed        Newly added brokers: {new:ids}, deleted brokers: {dead:ids}, bounced brokers: {bounced:ids}, all live brokers: {live:ids}
broker_startup         New broker startup callback for {brokers:ids}
broker_failure         Broker failure callback for {brokers:ids}
removed_from_shutting_down Removed {brokers:ids} from list of shutting down brokers.
broker_updated         Updated broker: {broker:number} : {:text}
broker_updated         Updated broker metadata: {:text} -> {broker:number} : {:text}
broker_info_update     Broker info update callback for {broker:number}
retaining_last_isr     Retaining last ISR {replica:number} of partition {partition:tp} since unclean leader election is disabled
topics_changed         New topics: [{new:names}], deleted topics: [{deleted:names}], new partition replica assignment [{assignment:map}]
partitions_added       New partitions to be added [{assignment:map}]
partitions_added       New partitions to be added {assignment:map}
topic_creation         New topic creation callback for {partitions:tps}
partition_creation     New partition creation callback for {partitions:tps}
partitions_not_added   Skipping adding partitions {partitions:ids} for topic {topic:name} since it is currently being deleted
restoring_assignment   Restoring the partition replica assignment for topic {topic:name}
partition_change_ignored Ignoring partition change during topic deletion as no new partitions are added
not_sending            Not sending request {request:request} to broker {broker:number}, since it is offline.
leader_not_assigned    Leader not assigned yet for partition {partition:tp}. Skip sending udpate metadata request
leader_not_assigned    Leader not yet assigned for partition {partition:tp}. Skip sending UpdateMetadataRequest.
invoking_partitions    Invoking state change to {target:name} for partitions {partitions:tps}
invoking_replicas      Invoking state change to {target:name} for replicas {replicas:members}
error_moving_partitions Error while moving some partitions to {target:name} state
error_moving_partitions Error while moving some partitions to the {target:name} state
error_moving_replicas  Error while moving some replicas to {target:name} state
isr_changes            Sending MetadataRequest to Brokers:{:text}

shutting_down_broker   Shutting down broker {broker:number}
shutting_down_broker   Unfenced broker {broker:number} has requested and been granted a controlled shutdown.
stale_controlled_shutdown Received controlled shutdown request from an old broker epoch {:text}
all_shutting_down      All shutting down brokers: {brokers:ids}
live_brokers           Live brokers: {brokers:ids}
preferred_undergoing   Partitions undergoing preferred replica election: {partitions:tps}
preferred_completed    Partitions that completed preferred replica election: {partitions:tps}
preferred_skipped      Skipping preferred replica election for partitions due to topic deletion: {partitions:tps}
preferred_resuming     Resuming preferred replica election for partitions: {partitions:tps}
preferred_running      These partitions are already undergoing preferred replica election: {partitions:tps}
preferred_starting     Starting preferred replica leader election for partitions {partitions:tps}
preferred_starting     Starting replica leader election (PREFERRED) for partitions {partitions:tps} triggered by {trigger:name}
preferred_done         Partition {partition:tp} completed preferred replica leader election. New leader is {preferred:number}
preferred_failed       Partition {partition:tp} failed to complete preferred replica leader election to {preferred:number}. Leader is still {leader:number}
preferred_failed       Partition {partition:tp} failed to complete preferred replica leader election. Leader is {leader:number}
preferred_deleting     Skipping preferred replica election for partitions {partitions:tps} since the respective topics are being deleted
preferred_deleting     Skipping replica leader election (PREFERRED) for partitions {partitions:tps} by {:name} since the respective topics are being deleted
preferred_unknown      Skipping preferred replica leader election for partition {partitions:tps} since it doesn't exist.
preferred_unknown      Skipping replica leader election (PREFERRED) for partition {partitions:tps} by {:name} since it doesn't exist.
checking_balance       Checking need to trigger auto leader balancing
checking_balance       Checking need to trigger partition rebalance
imbalance              Leader imbalance ratio for broker {broker:number} is {ratio:ratio}

partitions_being_reassigned Partitions being reassigned: {partitions:map}
partitions_already_reassigned Partitions already reassigned: {partitions:tps}
reassignment_resuming  Resuming reassignment of partitions: {partitions:map}
handling_reassignment  Handling reassignment of partition {partition:tp} to new replicas {replicas:order}
reassignment_skipped   Skipping reassignment of partition {partition:tp} for topic {:name} since it is currently being deleted
reassignment_skipped   Skipping reassignment of partition {partition:tp} since it is currently being deleted
reassignment_skipped   Skipping reassignment of {partition:tp} since the topic is currently being deleted
reassignment_unknown   Ignoring request to reassign partition {partition:tp} that doesn't exist.
reassignment_not_needed Partition {partition:tp} to be reassigned is already assigned to replicas {replicas:order}. Ignoring request for partition reassignment.
reassignment_not_caught_up New replicas {replicas:order} for partition {partition:tp} being reassigned not yet caught up with the leader
reassignment_waiting   Waiting for new replicas {replicas:order} for partition {partition:tp} being reassigned to catch up with the leader
reassignment_progress  {caught_up:number}/{wanted:number} replicas have caught up with the leader for partition {partition:tp} being reassigned.Replica(s) {missing:ids} still need to catch up
reassignment_progress  {caught_up:number}/{wanted:number} replicas have caught up with the leader for partition {partition:tp} being reassigned. Replica(s) {missing:ids} still need to catch up
reassignment_progress  {caught_up:number}/{wanted:number} replicas have caught up with the leader for partition {partition:tp} being reassigned.{missing:none}Resuming partition reassignment
reassignment_progress  {caught_up:number}/{wanted:number} replicas have caught up with the leader for partition {partition:tp} being reassigned. {missing:none}Resuming partition reassignment
reassignment_never_created Error handling reassignment of partition {partition:tp} to replicas {replicas:order} as it was never created
reassignment_caught_up Target replicas {replicas:order} have all caught up with the leader for reassigning partition {partition:tp}
reassignment_leader_outside Leader {leader:number} for partition {partition:tp} being reassigned, is not in the new list of replicas {replicas:order}. Re-electing leader
reassignment_leader_stays Leader {leader:number} for partition {partition:tp} being reassigned, is already in the new list of replicas {replicas:order} and is alive
reassignment_leader_dead Leader {leader:number} for partition {partition:tp} being reassigned, is already in the new list of replicas {replicas:order} but is dead
reassignment_removed   Removed partition {partitions:tps} from the list of reassigned partitions in zookeeper
reassignment_removed   Removing partition {partitions:tps} from the list of reassigned partitions in zookeeper
reassignment_removed   Removing partitions {partitions:tps} from the list of reassigned partitions in zookeeper
reassignment_done      No more partitions need to be reassigned. Deleting zk path {:text}
reassignment_failed    Error completing reassignment of partition {partition:tp}
reassignment_failed    Error completing reassignment of partition {partition:tp} because controller has moved to another broker
reassignment_failed    Failed completing reassignment of partition {partition:tp} because controller has moved to another broker
zk_reassignment_failed Failed reassignment through zk with the following errors: {partitions:text}
assignment_updated     Updated assigned replicas for partition {partition:tp} being reassigned to {replicas:order}
full_assignment_updated Successfully updated assignment of partition {partition:tp} to {:assignment}
leader_epoch_updated   Updated leader epoch for partition {partition:tp} to {leader_epoch:number}
leader_epoch_updated   Updated leader epoch for partition {partition:tp} to {leader_epoch:number}, zkVersion={:number}

starting_deletion      Starting topic deletion for topics {topics:names}
deleting_unknown_topics Ignoring request to delete non-existing topics {topics:names}
deletion_disabled      Removing {topics:names} since delete topic is disabled
deletion_halted        Halted deletion of topics {topics:names}
deletion_halted        Halted deletion of topics {topics:names} due to {reason:text}
handling_deletion      Handling deletion for topics {topics:names}
deletion_started       Deletion of topic {topic:name} (re)started
topic_deletion         Topic deletion callback for {topics:names}
partition_deletion     Partition deletion callback for {partitions:tps}
deletion_in_progress   Deletion for replicas {replicas:order} for partition {partitions:tps} of topic {topic:name} in progress
retrying_deletion      Retrying delete topic for topic {topic:name} since replicas {replicas:members} were not successfully deleted
retrying_deletion      Retrying deletion of topic {topic:name} since replicas {replicas:members} were not successfully deleted
retrying_deletion      Retrying deletion of topics {topics:names} since replicas {replicas:members} were not successfully deleted
deletion_ineligible    Not retrying deletion of topic {topic:name} at this time since it is marked ineligible for deletion
deletion_completed     Deletion of topic {topic:name} successfully completed
deletion_can_resume    Some replicas {replicas:members} for topics scheduled for deletion {topics:names} are on the newly restarted brokers {brokers:ids}. Signaling restart of topic deletion for these topics
thread_died            Error due to {:text}
thread_died            Error due to
"""  # noqa: E501
"""Older Kafkas begin some of these with a small letter, as there they come after a name."""

COUNTED = 99_000
"""Characters of a list whose members are counted; longer lines are cut when they are read (`logfile.LONGEST`)."""
STATE = re.compile(r" -> \w+Partition\b")
MEMBER = re.compile(r"\[Topic=([\w.-]+),Partition=(\d+),Replica=(\d+)\]")
KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "number": (r"-?\d+", int),
    "ratio": (r"\d[-.\dE]*|NaN", float),
    "name": (r"[\w.-]+", str),
    "text": (r".*", str),
    "none": (r"", list),
    "tp": (TP.replace("?P<tp>", "?:"), spelled),
    "tps": (r".*?", partitions),
    "ids": (r"[\w.]*\(?[-\d, ]*\)?", lambda text: sorted(numbers(text))),
    "order": (r"[\w.]*\(?[-\d, ]*\)?", lambda text: list(numbers(text))),
    "names": (r"(?:\w+\([^)]*\)|[^\s()]*)", names),
    "members": (r".*?", lambda text: [[t, int(p), int(r)] for t, p, r in MEMBER.findall(text)]),
    "map": (r".*", assignment),
    "states": (r".*Map\(.*\)", lambda text: len(STATE.findall(text)) if len(text) < COUNTED else None),
    "assignment": (r"\w+\(.*\)", replicas),
    "request": (r".*", lambda text: _api(text)),
}
"""How each kind of word is printed, as a pattern, and what it is in the trace."""
FIELD = re.compile(r"\{(\w*):(\w+)\}")


def _api(text: str) -> str:
    """The kind of a request in any print of it."""
    for name, api in REQUESTS.items():
        if api.replace("AndIsr", "AndIs") in text or name in text:
            return api
    return text


def _sentences() -> Iterator[tuple[str, Reader]]:
    """Pattern and reader of each sentence."""
    for line in filter(None, SENTENCES.splitlines()):
        action, sentence = line.split(None, 1)
        kinds = [how for _, how in FIELD.findall(sentence)]
        parts = FIELD.split(sentence)[::3]
        pattern = re.escape(parts[0])
        for how, rest in zip(kinds, parts[1:], strict=True):
            pattern += f"({KINDS[how][0]}){re.escape(rest)}"
        fields = tuple((name, KINDS[how][1]) for name, how in FIELD.findall(sentence))
        yield pattern + "$", partial(_read, action, fields)


def _read(action: str, fields: tuple[tuple[str, Callable[[str], Any]], ...], found: re.Match[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for (name, how), text in zip(fields, found.groups(), strict=True):
        if name:
            said[name] = how(text)
        elif how is replicas:
            said |= replicas(text)
    epoch = {"controller_epoch": said["epoch"]} if "epoch" in said else {}
    return {"action": action, "detail": details.write_fields(said), **epoch}


def _stopped(found: re.Match[str]) -> dict[str, Any]:
    named = MEMBER.findall(found[3])
    return {
        "kind": "request",
        "action": "StopReplica",
        "broker": int(found[2]),
        "partitions": tuple((topic, int(partition)) for topic, partition, _ in named),
        "detail": "delete" if found[1] == "true" else None,
    }


def _fenced(found: re.Match[str]) -> dict[str, Any]:
    return {"kind": "broker", "action": "lost", "broker": int(found[1])}


CONTROLLER_RULES: tuple[tuple[str, Reader], ...] = (
    *_sentences(),
    (r"The stop replica request \(delete = (\w+)\) sent to broker (\d+) is (.*)$", _stopped),
    (r"Fencing broker (\d+) because its session has timed out\.$", _fenced),
)
"""Sentences and their readers; the first that matches is taken."""
