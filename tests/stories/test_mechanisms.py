"""Mechanisms: each is seen in a story, explains what it has happened to, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_ctl.explore import play as playing
from kafka_ctl.explore.play import DOES_NOT_QUIESCE, play
from kafka_ctl.explore.walk import Walk, busy
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.invariants import INVARIANTS, MECHANISMS
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import EXHIBITS
from tests.mutants import mutant

DELETING = """'{"delete.topic.enable":true}'"""
OUTLIVED, CREATED = "KafkaController.TopicDeletion", "PartitionStateMachine.initializeLeaderAndIsrForPartitions"
MISSED, DISK = "MetadataCache.scala, updateCache", "ReplicaStateMachine.doHandleStateChanges"
STARTED = "linkedin/kafka#14"
TWICE = "KafkaController.PartitionReassignment"
PREFERRED = "PartitionStateMachine.electLeaderForPartition"
UNWATCHED = "KafkaController.PartitionReassignmentHandler"
REMOVED = """
create_topic a assignment='{"0":[1,2]}'\nsettle\nreassign '{"a-0":[1,3]}'\nsettle
delete_znode /admin/reassign_partitions\nreassign '{"a-0":[1,2]}'\nsettle"""

STORIES = {
    "a broker registers itself anew while an old request waits for a configuration": ("2.4 brokers=[1,2,3] seed=0", """
disconnect 1 zookeeper\ncreate_topic c partitions=1 replication_factor=1\nreassign '{"c-0":[3,2,1]}' zookeeper
shutdown 1\nheal\nsettle""", {("I9", "KafkaApis.handleLeaderAndIsrRequest")}),
    "a request outlives its topic": ("2.0 brokers=[1,2,3] seed=0", """
create_topic a partitions=1 replication_factor=1\nreassign '{"a-0":[3]}'\ndelete_topic a\nsettle
create_topic a partitions=1 replication_factor=1\nsettle""", {("I19", OUTLIVED)}),
    "a request outlives its topic, and an election is asked for": ("2.0 brokers=[1,2,3] seed=0", """
create_topic a partitions=3 replication_factor=1\nreassign '{"a-2":[1,3]}'\ndelete_topic a\nsettle
create_topic a partitions=3 replication_factor=3\nsettle""", {("I19", OUTLIVED)}),
    "a deletion is missed, and the topic is made again with fewer partitions": ("2.4 brokers=[1,2,3] seed=0", """
create_topic c assignment='{"0":[2,3],"1":[2,3],"2":[2,3]}'\nsettle\ndisconnect 1 zookeeper\nsettle\ndelete_topic c
settle\ncreate_topic c partitions=1 replication_factor=2\nsettle\nheal\nsettle""", {("I18", MISSED)}),
    "the controller dies before it could tell a broker of a deletion": ("2.4 brokers=[1,2,3,4] seed=1", """
create_topic b partitions=1 replication_factor=1\nshutdown 3\ndelete_controller\ndisconnect 2 4
at_once '["create_topic a partitions=3 replication_factor=2","delete_topic b","delete_topic c"]'\nsettle\nkill 4
heal\nsettle""", {("I18", MISSED)}),
    "a broker that is taken for dead has missed a leader epoch, and joins": ("2.0 brokers=[1,2] seed=0", """
create_topic a replication_factor=2 partitions=1\nsettle\ndisconnect 1 zookeeper\nsettle""", {("I15", "KAFKA-14140")}),
    "a leader that is cut off adds a follower that a reassignment has taken away": ("0.10 brokers=[1,2] seed=1", """
create_topic b partitions=2 replication_factor=2\nsettle\ndisconnect zookeeper 2\nstep 24\ndisconnect 1 zookeeper
reassign '{"b-0":[1]}'\ndelay zookeeper 1 0.0827\nsettle\nheal\nsettle""", {("I12", "Partition.maybeExpandIsr")}),
    "a disk fails under a replica that is still New": ("2.0 brokers=[1,2,3,4] seed=1", """
create_topic c replication_factor=1 partitions=1\nshutdown 2\nreassign '{"c-0":[2,3,4,1]}'\nshutdown 4\nsettle
fail_log_dir 3\nsettle""", {("I19", DISK)}),
    "a disk fails before a restart that nobody notices": ("2.0 brokers=[1,2] seed=2", """
create_topic c partitions=1 replication_factor=1\nsettle\nfail_log_dir 1\ndelay zookeeper 2 1\nsettle\nbounce 1\nheal
settle""", {("I19", "KAFKA-7235")}),
    "the preferred replica leads, and is dead": ("0.10 brokers=[1,2,3] seed=1", """
create_topic a partitions=3 replication_factor=2\nsettle\nkill 1\ndisconnect zookeeper 2\nsettle\nelect_preferred\nheal
settle""", {("I19", PREFERRED)}),
    "a request outlives its topic after a restart that nobody noticed": (
        f"0.10 brokers=[1,2] seed=0 config={DELETING}", """
create_topic c replication_factor=2 partitions=1\nat_once '["delete_topic c","elect_preferred","delete_topic b"]'
kill 1\nsettle\nreassign '{"c-0":[1]}'\nkill 2\nstart 2\nstart 1\nsettle
create_topic c partitions=1 replication_factor=1\nsettle""", {("I19", OUTLIVED)}),
    "a reassignment fails after its replicas were assigned": ("0.10 brokers=[1,2,3] seed=0", """
shutdown 2\nfail_log_dir 3\ncreate_topic b partitions=1 replication_factor=1\ndisconnect zookeeper 1
reassign '{"b-0":[4,3,1,2]}'\nsettle\nstart 2\nheal\nsettle""",
        {("I14", "KafkaController.onPartitionReassignment")}),
    "a topic is deleted after a reassignment of it has failed half-way": ("2.0 brokers=[1,2] seed=1", """
kill 1\ncreate_topic c partitions=1 replication_factor=1\nsettle
at_once '["reassign '"'"'{\\"c-0\\":[2]}'"'"' through=zookeeper","delete_topic b"]'\ndelete_topic c\nstart 1\nsettle""",
        {("I19", "KafkaController.onPartitionReassignment")}),
    "a reassignment ends when none of its replicas is alive": ("0.10 brokers=[1,2,3,4] seed=8400130", """
create_topic c partitions=2 replication_factor=4\ndisconnect 2 4\ndisconnect 1 2 one_way=true\nshutdown 4
pause 1 6.4578\nbounce 2\nsettle\ndisconnect 3 zookeeper\nreassign '{"c-1":[3]}'\nsettle\nheal\nsettle""",
        {("I19", "KafkaController.moveReassignedPartitionLeaderIfRequired")}),
    "a leader's expansion of the ISR is not confirmed": ("0.10 brokers=[1,2] seed=1", """
disconnect 1 2\ncreate_topic b replication_factor=1 partitions=1\nreassign '{"b-0":[2,1]}'\nsettle\nheal
disconnect zookeeper 1 one_way=true\nrun_for 10\nproduce b 0 records=2 wait=false\nheal\nsettle""",
        {("I1", "KIP-497"), ("I3", "KIP-497")}),
    "a broker returns with a log that was taken from it, and its topic is made again": (
        "2.0 brokers=[1,2,3,4] seed=1", """
create_topic a replication_factor=4 partitions=1\nsettle\nproduce a 0 records=3\nsettle\nshutdown 4
reassign '{"a-0":[2,3]}'\nsettle\nstart 4\nsettle\ndelete_topic a\nsettle
create_topic a assignment='{"0":[4,1]}'\nsettle""", {("I1", "KAFKA-7362"), ("I3", "KAFKA-7362")}),
    "the last of an ISR returns with an empty disk": ("2.4 brokers=[1,2] seed=1", """
create_topic a assignment='{"0":[1,2]}'\nsettle\nproduce a 0 records=5\nkill 2\nsettle\nkill 1
settle\nstart 1 empty=true\nsettle\nstart 2\nsettle""", {("I4", "KIP-966")}),
    "a dead leader's epoch is raised": ("""0.10 brokers=[1,2,3] seed=0
        config='{"unclean.leader.election.enable":false}'""".replace("\n       ", ""), """
shutdown 2
at_once '["create_topic a partitions=3 replication_factor=2","create_topic b partitions=3 replication_factor=2"]'
disconnect zookeeper 1\nsettle\nreassign '{"a-0":[2]}'\nshutdown 3\nheal\nsettle""", {("I14", "KAFKA-3143")}),
    "two preferred elections while the leader is dead": ("""0.10 brokers=[1,2] seed=1
        config='{"unclean.leader.election.enable":false}'""".replace("\n       ", ""), """
create_topic a replication_factor=1 partitions=2\nfail_log_dir 1\nfail_log_dir 2\nstart 2\nreassign '{"a-1":[2,1]}'
settle\nstart 1\nshutdown 2\nsettle\nelect_preferred\nat_once '["elect_preferred","delete_topic c"]'\nstart 2
settle""", {("I14", PREFERRED)}),
    "a reassignment waits for who was told to follow a dead preferred leader": ("0.10 brokers=[1,2] seed=0", """
create_topic b partitions=3 replication_factor=1\nsettle\nkill 2\nsettle
at_once '["create_topic b partitions=2 replication_factor=2","elect_preferred","create_topic b"]'
reassign '{"b-2":[1]}'\nstart 2\nsettle""", {("I14", PREFERRED), ("I19", PREFERRED)}),
    "a reassignment waits, and the election was asked for twice": ("0.10 brokers=[1,2] seed=1", """
create_topic a replication_factor=1 partitions=1\nsettle\nkill 1\nsettle
at_once '["elect_preferred","delete_topic b","elect_preferred"]'\nreassign '{"a-0":[2]}'\nstart 1\nsettle""",
        {("I14", PREFERRED), ("I19", PREFERRED)}),
    "the same of a partition that has another replica": (
        """0.10 brokers=[1,2] seed=0 config='{"unclean.leader.election.enable":false}'""", """
create_topic b partitions=3 replication_factor=2\ndisconnect 1 zookeeper\nsettle\nkill 2\nheal\nsettle
at_once '["create_topic b partitions=2 replication_factor=2","elect_preferred","create_topic b"]'
reassign '{"b-2":[1]}'\nstart 2\nsettle""", {("I14", PREFERRED), ("I19", PREFERRED)}),
    "checks that are made up for are no two checks of the balance": (
        """0.10 brokers=[1,2,3] seed=0 config='{"unclean.leader.election.enable":false}'""", """
create_topic b partitions=1 replication_factor=1\nsettle\nexpire_session 2\nrun_for 0.0007\nstop_zookeeper\nsettle\nheal
settle""", set()),
    "a broker that cannot stop is killed": ("0.10 brokers=[1,2,3] seed=1", """
create_topic a partitions=3 replication_factor=3\nshutdown 3\nkill 1\nstep 33\nstop_zookeeper\nbounce 2\nheal\nstart 2
settle""", set()),
    "a controller raises the epoch after another has been elected": ("0.10 brokers=[1,2,3] seed=0", """
fail_log_dir 1\ndelay zookeeper 2 0.3657\ndisconnect 3 zookeeper\ndelete_controller
run_for 1.9088\ndelete_controller\nheal\nsettle""",
        {("I8", "KAFKA-6082"), ("I19", "KAFKA-6082")}),
    "a controller raises the epoch before the next one has read the rest": ("0.10 brokers=[1,2,3,4] seed=1", """
shutdown 3\ndelete_controller\nbounce 1\nstep 2\nkill 1\ndisconnect 4 zookeeper\nstep 20\nheal\nsettle""",
        {("I8", "KAFKA-6082"), ("I19", "KAFKA-6082")}),
    "a deposed controller takes a request out of ZooKeeper": ("0.10 brokers=[1,2,3] seed=45", """
bounce 3\nat_once '["create_topic a partitions=3 replication_factor=2","elect_preferred"]'
create_topic b partitions=3 replication_factor=2\nsettle\ndisconnect 1 zookeeper\nreassign '{"b-0":[3]}'\nstep 21
delete_controller\nsettle""", {("I16", "KAFKA-6082")}),
    "a disk refuses what the controller's cache says later": ("2.0 brokers=[1,2,3] seed=5150286", """
kill 1\nfail_log_dir 3\nsettle\ncreate_topic c partitions=1 replication_factor=1\nshutdown 2\nreassign '{"c-0":[3]}'
settle""", {("I14", "KAFKA-3143")}),
    "a disk refuses a replica, and takes it as new when a leader has been elected without it": (
        """2.0 brokers=[1,2,3] seed=2 config='{"unclean.leader.election.enable":true}'""", """
create_topic c replication_factor=1 partitions=1\nkill 1\nfail_log_dir 2\nsettle
at_once '["elect_preferred","reassign '"'"'{\\"c-0\\":[3,1,2]}'"'"'"]'\nsettle""", {("I14", "KAFKA-10314")}),
    "the same where the controller adds replicas one by one": (
        """2.4 brokers=[1,2,3] seed=2 config='{"unclean.leader.election.enable":true}'""", """
create_topic c partitions=3 replication_factor=1\nshutdown 1\nfail_log_dir 3\nsettle\nreassign '{"c-0":[3,2,1]}'
settle""", {("I14", "KAFKA-10314")}),
    "a new controller finds a request and is told of it as well": ("2.0 brokers=[1,2,3] seed=1", """
kill 1\ncreate_topic a partitions=1 replication_factor=1\nstep 28\nreassign '{"a-0":[1,2]}'\nstart 1\nsettle""",
        {("I14", TWICE), ("I18", "KAFKA-9212")}),
    "a request comes while a new controller looks again for one": ("2.0 brokers=[1,2,3] seed=0", """
shutdown 2\nbounce 3\nrun_for 0.0023\ncreate_topic a partitions=1 replication_factor=1
reassign '{"a-0":[2,3,1]}'\nstart 2\nsettle""", {("I14", TWICE)}),
    "a broker is told to follow nobody, goes on fetching from who led before, and is taken for dead": (
        "2.0 brokers=[1,2,3] seed=1", """
create_topic c replication_factor=2 partitions=1\nshutdown 2\nkill 3\nstart 2\nsettle\ndisconnect 2 zookeeper\nsettle
start 3\nsettle""", {("I15", "KAFKA-14140")}),
    "the same of a replica that a reassignment adds": ("2.0 brokers=[1,2] seed=2", """
create_topic b replication_factor=1 partitions=1\nsettle\nfail_log_dir 1\nreassign '{"b-0":[2]}'\nsettle
disconnect zookeeper 2\nbounce 1\nsettle""", {("I15", "KAFKA-14140")}),
    "metadata arrives after its broker has a new session, and was told what is newer": (
        "2.0 brokers=[1,2,3] seed=82100074", """
create_topic a replication_factor=1 partitions=1\nshutdown 3\ndelay 2 3 2\nstart 3\nrun_for 0.0981\nheal
expire_session 3\nsettle""", {("I9", "KAFKA-7235"), ("I18", "KAFKA-7235")}),
    "a leader is elected before the controller hears that a broker has taken a replica as new": (
        "2.4 brokers=[1,2] seed=1", """
create_topic b replication_factor=1 partitions=2\ncreate_topic c partitions=1 replication_factor=1
create_topic m replication_factor=2\nfail_log_dir 1\nshutdown 2\nstart 2\nsettle\ndisconnect 2 zookeeper\nstep 9
at_once '["delete_topic a","reassign '"'"'{\\"b-1\\":[1]}'"'"'"]'\nrun_for 0.0033\nheal\nsettle""",
        {("I14", "KAFKA-10314"), ("I19", "KAFKA-10314")}),
    "a broker starts that a reassignment of a deleted topic waits for": (
        f"0.10 brokers=[1,2,3] seed=81800445 config={DELETING}", """
create_topic b replication_factor=3 partitions=1\ncreate_topic c partitions=1 replication_factor=1\nsettle
delete_topic c\nkill 3\nstart 3\nreassign '{"c-0":[1,2,3]}'\nshutdown 2\ndelete_topic b\nstart 2\nsettle""",
        {("I19", STARTED)}),
    "the same, and another broker is gone": ("2.0 brokers=[1,2,3,4] seed=0", """
create_topic c assignment='{"0":[1]}'\ncreate_topic d assignment='{"0":[2,1]}'\nsettle\nkill 3\nsettle
reassign '{"c-0":[1,2,3]}'\ndelete_topic c\nsettle\nstart 3\nsettle\nkill 3\nsettle\nkill 2\nrun_for 4\npause 4 4
start 3\nsettle""", {("I19", STARTED), ("I21", STARTED)}),
    "a disk's failure is heard of after a restart that nobody notices": ("2.0 brokers=[1,2] seed=2", """
create_topic c partitions=1 replication_factor=1\nsettle\nfail_log_dir 1
at_once '["elect_preferred","add_partitions b 3","delete_topic a"]'\ndelay zookeeper 2 1\nrun_for 0.0085\nbounce 1\nheal
settle""", {("I19", "KAFKA-7235")}),
    "a request is looked at once more before the controller knows of a broker that has registered": (
        "2.0 brokers=[1,2] seed=0", """
shutdown 2\nrun_for 0.0023\npause 1 1\ncreate_topic a partitions=1 replication_factor=1
reassign '{"a-0":[2,3,1]}'\nstart 2\nsettle""", {("I14", TWICE), ("I18", "KAFKA-9212")}),
    "a topic is deleted while its broker has a new disk, and nobody notices": ("2.0 brokers=[1,2] seed=2", """
create_topic c partitions=1 replication_factor=1\nsettle\nfail_log_dir 1
at_once '["elect_preferred","add_partitions b 3","delete_topic a"]'\ndelete_topic c\nbounce 1\nsettle""",
        {("I9", "KAFKA-7235"), ("I19", "KAFKA-7235")}),
    "a topic is made again while a broker has a copy of the old one": (
        f"0.10 brokers=[1,2,3,4] seed=0 config={DELETING}", """
create_topic a replication_factor=4 partitions=1\nsettle\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'
delete_topic a\nsettle\ncreate_topic a assignment='{"0":[4,1]}'\nheal\nsettle""", {("I14", "KAFKA-7362")}),
    "a follower that a leader has added so stays while the topic is deleted": (
        f"0.10 brokers=[1,2] seed=1 config={DELETING}", """
create_topic b partitions=2 replication_factor=2\nsettle\ndisconnect zookeeper 2\nstep 24\ndisconnect 1 zookeeper
reassign '{"b-0":[1]}'\ndelay zookeeper 1 0.0827\ndelete_topic b\nsettle\nheal\nsettle""",
        {("I12", "Partition.maybeExpandIsr")}),
    "a disk refuses a replica, takes it as new, and no election follows": (
        """2.4 brokers=[1,2,3] seed=2 config='{"unclean.leader.election.enable":true}'""", """
fail_log_dir 2\ncreate_topic c replication_factor=1 partitions=1\nshutdown 1\nfail_log_dir 3
reassign '{"c-0":[3,2,1]}'\nsettle""", {("I19", "KAFKA-10314")}),
    "a broker that was killed as it stopped is asked to leave at that moment": ("0.10 brokers=[1,2,3] seed=13426", """
shutdown 3\nkill 1\nstep 5\nstop_zookeeper\nbounce 2\nheal\nshutdown 2\nsettle""", set()),
    "the same where the broker is told to make the old copy when the new topic is there": (
        f"0.10 brokers=[1,2,3,4] seed=1 config={DELETING}", """
create_topic a replication_factor=4 partitions=1\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'\ndelete_topic a
settle\ncreate_topic a assignment='{"0":[4,1]}'\nheal\nsettle""", {("I14", "KAFKA-7362")}),
    "who led the old copy overwrites the new topic's state": (f"0.10 brokers=[1,2,3,4] seed=0 config={DELETING}", """
create_topic a replication_factor=4 partitions=1\nsettle\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'
delete_topic a\nsettle\ncreate_topic a assignment='{"0":[4,1]}'\nheal\nshutdown 2\nsettle""",
        {("I10", "KAFKA-7362"), ("I14", "KAFKA-7362")}),
    "the same, told to make the copy when the new topic is there": ("2.0 brokers=[1,2,3,4] seed=1", """
create_topic a replication_factor=4 partitions=1\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'\ndelete_topic a
settle\nkill 3\ncreate_topic a assignment='{"0":[4,1]}'\nheal\nsettle""",
        {("I10", "KAFKA-7362"), ("I14", "KAFKA-7362")}),
    "an old copy's leader has overwritten a state, and who is not assigned stays in the ISR": (
        "2.0 brokers=[1,2,3,4] seed=1", """
create_topic a replication_factor=4 partitions=1\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'\ndelete_topic a
settle\nkill 3\ncreate_topic a assignment='{"0":[4,1]}'\nheal\nsettle\nelect_preferred\nsettle""",
        {("I12", "KAFKA-7362")}),
    "an old copy's leader overwrites a state before it has registered again": (
        f"0.10 brokers=[1,2,3,4] seed=0 config={DELETING}", """
create_topic a replication_factor=4 partitions=1\nsettle\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'
delete_topic a\nsettle\ncreate_topic a assignment='{"0":[4,1]}'\nshutdown 2\nsettle\nheal\nsettle""",
        {("I15", "KAFKA-7362")}),
    "a follower that has caught up in an older epoch goes on fetching, and joins as it leaves": (
        "2.0 brokers=[1,2] seed=1", """
delay 1 2 0.5245\ncreate_topic b replication_factor=2 partitions=1\nsettle\nexpire_session 2\nrun_for 0.9631
shutdown 2""", {("I15", "KAFKA-14140")}),
    "a broker is asked to leave when the command to stop it has just been given up": (
        "0.10 brokers=[1,2,3] seed=999280", """
shutdown 3\nkill 1\nstep 5\nstop_zookeeper\nstep 3\nbounce 2\nheal\nshutdown 2\nsettle""", set()),
    "a controller that finds itself replaced forgets nothing, and is elected again": ("2.4 brokers=[1,2,3] seed=0", """
delay zookeeper 2 0.3744\nshutdown 1\ndisconnect 3 zookeeper\nsettle
create_topic b replication_factor=1 partitions=1\ndisconnect zookeeper 2\nelect_preferred\nsettle\nstart 1
run_for 0.0927\ndelete_controller\nheal\nsettle limit=5""", set()),
    "a topic is deleted though a broker is gone that had deleted its copy, and then another of that name": (
        "2.4 brokers=[1,2,3,4] seed=2", """
create_topic b partitions=1 replication_factor=4\nkill 1\ndelete_topic b\nsettle\ndisconnect 4 zookeeper\nsettle
start 1\nsettle\nheal\ncreate_topic b partitions=1 replication_factor=1\ndelete_topic b\nsettle""",
        {("I19", "TopicDeletionManager.completeDeleteTopic")}),
    "who leads dies, and the controller takes the state for another's": ("2.0 brokers=[1,2,3] seed=0", """
create_topic a partitions=1 replication_factor=2\nstep 6\nstop_zookeeper\nkill 2\nheal\nsettle""",
        {("I14", CREATED), ("I18", CREATED), ("I19", CREATED), ("I21", CREATED)}),
    "who has won dies before who has lost looks at the znode again": ("2.0 brokers=[1,2,3] seed=0", """
shutdown 3\nsettle\ndelete_controller\nstep 10\nbounce 1\nkill 1\nsettle""", {("I19", "KAFKA-13407")}),
    "a partition without a leader moves, and its new replica does not lead": ("2.0 brokers=[1,2,3] seed=35", """
kill 1\ncreate_topic a partitions=1 replication_factor=1\nreassign '{"a-0":[1,2]}'\nsettle""",
        {("I23", "KafkaController.onPartitionReassignment")}),
    "a request is deleted by hand, and the partition's next is ignored": ("0.10 brokers=[1,2] seed=0", REMOVED,
        {("I19", "PartitionsReassignedListener.doHandleDataChange")}),
    "a request is deleted by hand, and nobody watches for the next": ("2.0 brokers=[1,2] seed=0", REMOVED,
        {("I19", UNWATCHED)}),
    "the same where a request can be made without the znode": ("2.4 brokers=[1,2,3] seed=0", """
create_topic a assignment='{"0":[1,2]}'\nsettle\nreassign '{"a-0":[1,3]}' through=zookeeper\nkill 3\nsettle
delete_znode /admin/reassign_partitions\nreassign '{"a-0":[1,2]}' through=zookeeper\nsettle""",
        {("I19", UNWATCHED)}),
    "a move goes on whose request was deleted by hand, and deletes what is to stay": ("2.4 brokers=[1,2,3] seed=0", """
create_topic a assignment='{"0":[1,2]}'\nreassign '{"a-0":[1,3]}' through=zookeeper\nrun_for 0.033
delete_znode /admin/reassign_partitions\nreassign '{"a-0":[1,2]}' through=zookeeper\nsettle""",
        {("I16", UNWATCHED), ("I19", UNWATCHED)}),
    "the same where it is moved already": ("0.10 brokers=[1,2,3] seed=0", """
create_topic a assignment='{"0":[1,2]}'\nreassign '{"a-0":[1,3]}'\nrun_for 0.033
delete_znode /admin/reassign_partitions\nreassign '{"a-0":[1,2]}'\nsettle""",
        {("I16", "PartitionsReassignedListener.doHandleDataChange")}),
    "partitions are added before the controller watches a topic that it has read": ("0.10 brokers=[1,2] seed=0", """
at_once '["create_topic b partitions=1 replication_factor=2","create_topic c partitions=1 replication_factor=2"]'
at_once '["add_partitions c 3","add_partitions a 2"]'\nsettle""", {("I23", "KafkaController.onNewTopicCreation")}),
    "a partition is marked online without a leader alive, and a replica leaves its ISR": (
        "0.10 brokers=[1,2,3,4] seed=91300229", """
create_topic b replication_factor=2 partitions=1\nsettle\ndelay zookeeper 1 0.8787\nkill 3\ndisconnect zookeeper 1
settle\nstart 3\nelect_preferred\nsettle\nexpire_session 3\nheal\nsettle""",
        {("I14", "PartitionStateMachine.electLeaderForPartition")}),
    "partitions are added to a topic that is deleted between reading and writing": ("2.4 brokers=[1,2] seed=0", """
kill 2\nsettle\ncreate_topic a partitions=2 replication_factor=1\nsettle\ndelete_topic a\nstep 23
add_partitions a 3\nsettle""", set()),
    "a restart that nobody noticed, and a topic whose only broker counts as leaving": (
        "2.0 brokers=[1,2,3] seed=92100183", """
delay 2 zookeeper 0.2703\nshutdown 3\nstart 3\nsettle\nheal\ncreate_topic c replication_factor=1 partitions=1
settle""", {("I23", "KAFKA-7235")}),
    "a reassignment outlives its topic, and gives the next one a partition": ("2.0 brokers=[1,2,3] seed=1", """
at_once '["reassign '"'"'{\\"c-1\\":[3,1]}'"'"'","create_topic c partitions=3 replication_factor=1","delete_topic a"]'
reassign '{"c-2":[1,2,3]}'\ndelete_topic c\nshutdown 3\ncreate_topic c partitions=1 replication_factor=1\nstart 3
settle""", {("I23", "KafkaController.TopicDeletion")}),
    "a deposed controller deletes a topic, and its successor knows the next one of that name": (
        """0.10 brokers=[1,2,3] seed=0 config='{"delete.topic.enable":true}'""", """
at_once '["elect_preferred","elect_preferred","create_topic c partitions=2 replication_factor=1"]'\nsettle
delete_topic c\nrun_for 0.0024\nexpire_session 3\nsettle\ncreate_topic c partitions=1 replication_factor=1\nsettle""",
        {("I8", "KAFKA-6082"), ("I12", "KAFKA-5083"), ("I23", "KAFKA-6082")}),
    "a move ends whose topic has been deleted meanwhile": ("2.4 brokers=[1,2,3,4] seed=92200405", """
create_topic m replication_factor=1\ncreate_topic c partitions=1 replication_factor=2\nshutdown 3
reassign '{"c-0":[2]}'\nshutdown 2\nreassign '{"c-0":[1]}'\nrefused delete_topic c
at_once '["elect_leaders unclean partitions='"'"'[\\"a-1\\"]'"'"'","create_topic a partitions=1 replication_factor=2"]'
shutdown 1\nstart 1\nstart 2\nsettle""", set()),
    "the same where a new controller reads a topic and watches it later": ("0.10 brokers=[1,2,3] seed=91200613", """
shutdown 1\nat_once '["create_topic a partitions=1 replication_factor=1","add_partitions a 3"]'\nkill 2\nstep 16
step 8\nat_once '["create_topic b partitions=3 replication_factor=1","add_partitions a 2","delete_topic c"]'
settle""", {("I23", "KafkaController.onNewTopicCreation")}),
    "the same where nothing is asked for anew": ("2.0 brokers=[1,2,3] seed=0", """
create_topic a assignment='{"0":[1,2]}'\nreassign '{"a-0":[1,3]}'\nrun_for 0.033
delete_znode /admin/reassign_partitions\nsettle""", {("I16", UNWATCHED)}),
    "an old request waits for the configuration of a topic that is deleted": ("2.4 brokers=[1,2,3,4] seed=1", """
create_topic a partitions=1 replication_factor=2\ndisconnect 4 zookeeper\nreassign '{"a-0":[2,3]}'\nsettle
delete_topic a\nheal\nsettle""", {("I9", "KafkaApis.handleLeaderAndIsrRequest")}),
    "a topic is deleted though it moves, and the controller goes on waiting for the move": (
        """2.4 brokers=[1,2] seed=0 config='{"leader.imbalance.check.interval.seconds":10}'""", """
create_topic a partitions=2 replication_factor=2\ncreate_topic b replication_factor=2 partitions=1\nshutdown 2
at_once '["reassign '"'"'{\\"c-2\\":[1,2]}'"'"'","reassign '"'"'{\\"a-1\\":[2]}'"'"'"]'\ndelete_topic a\nstart 2\nsettle
run_for 40""", {("I20", "ControllerContext.removeTopic")}),
    "a reassignment failed half-way, and its new replica leads and dies": ("0.10 brokers=[1,2,3] seed=46", """
create_topic a replication_factor=1 partitions=2\nfail_log_dir 2\nreassign '{"a-1":[2,1]}'\nsettle
at_once '["elect_preferred","delete_topic c"]'\nkill 1\nsettle""",
        {("I21", "KafkaController.onPartitionReassignment")}),
    "a preferred election fails over a partition without a leader, and counts as under way for ever": (
        """0.10 brokers=[1,2] seed=92100058 config='{"leader.imbalance.check.interval.seconds":10}'""", """
refused create_topic c partitions=1 replication_factor=2\ndisconnect zookeeper 2
create_topic b partitions=2 replication_factor=1\nsettle\nreassign '{"b-1":[2,1]}'\nkill 2\nelect_preferred\nheal
start 2\nsettle\ncreate_topic m replication_factor=2\nlag 2 m 0\nsettle""",
        {("I20", "KafkaController.removePartitionsFromPreferredReplicaElection")}),
}  # fmt: skip
"""What walks have found, and what explains it."""


def reported(text: str) -> Walk:
    """A walk from a story's text."""
    lines = list(story.parse(text))
    return Walk(lines[0], tuple(lines[1:]))


@pytest.mark.parametrize("name", STORIES)
def test_what_walks_have_found_is_explained(name: str) -> None:
    opening, lines, wanted = STORIES[name]
    outcome = play(reported(f"lab generation={opening}\n{lines}\n"))
    broken = {(b.name.split()[0], b.known) for b in outcome.broken}
    assert wanted <= broken
    assert None not in {known for _, known in broken}, outcome.broken


def test_the_damage_of_a_deposed_controller_has_its_ticket() -> None:
    """It goes on creating the states of new partitions; its successor knows nothing of them."""
    with Lab(brokers=3, seed=1, config={"zookeeper.max.in.flight.requests": 1}) as lab:
        lab.create_topic("orders", partitions=48, replication_factor=3)
        lab.run_for(0.0035)
        lab.delete_controller()
        lab.settle()
        assert {v.known for v in lab.violations} == {"KAFKA-6082"}
        assert {v.invariant for v in lab.violations} == {"I8", "I14", "I18"}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_answer_to_a_creation_is_lost(generation: str) -> None:
    """The controller asks again, takes the znode for another's, and its partition stays New."""
    seen = set()
    for steps in range(12):
        with Lab(brokers=3, generation=generation, seed=1) as lab:
            lab.create_topic("orders", partitions=1, replication_factor=2)
            if steps:
                lab.step(steps)
            lab.lose(lab.controller.id, "zookeeper", applied=True)
            lab.settle()
            seen |= {(v.invariant, v.known) for v in lab.violations}
    assert seen == {("I14", CREATED), ("I18", CREATED)}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_what_follows_where_the_answer_to_a_creation_is_lost(generation: str) -> None:
    """Whatever happens to the partition then is explained by it."""
    occasions: dict[str, Callable[[Lab], object]] = {
        "moves": lambda lab: lab.reassign({("orders", 0): [1, 2]}),
        "dies": lambda lab: lab.kill(2),
        "leaves": lambda lab: lab.shutdown(2),
        "goes": lambda lab: lab.delete_topic("orders"),
        "grows": lambda lab: lab.add_partitions("orders", 3),
    }
    seen: dict[str, set[tuple[str, str | None]]] = {}
    for name, occasion in occasions.items():
        with Lab(brokers=3, generation=generation, seed=1, config={"delete.topic.enable": True}) as lab:
            lab.create_topic("orders", assignment={0: [2, 3]})
            begun = {"kind": "zk", "action": "create", "path": "/brokers/topics/orders/partitions/0"}
            lab.run_until(lambda now, begun=begun: bool(now.trace.slice(**begun)))
            lab.lose(lab.controller.id, "zookeeper", applied=True)
            lab.settle()
            occasion(lab)
            lab.settle()
            seen[name] = {(v.invariant, v.known) for v in lab.violations} - {("I14", CREATED), ("I18", CREATED)}
    moves = {("I19", CREATED)} if generation != "2.4" else set()
    goes = {("I19", CREATED)} if generation == "0.10" else set()
    dies = {("I19", CREATED), ("I21", CREATED)}
    assert seen == {"moves": moves, "dies": dies, "leaves": dies, "goes": goes, "grows": set()}


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_follower_slower_than_its_limit_is_no_livelock(generation: str) -> None:
    """It leaves the ISR and comes back as long as it is slow, and comes to rest when that is over."""
    lines = "create_topic b replication_factor=2 partitions=1\nsettle\nproduce b 0\nslow 2 14.4\nsettle limit=300\n"
    slow = play(reported(f"lab brokers=[1,2] generation={generation} seed=1\n{lines}"))
    assert slow.broken == ()
    lines = lines.replace("settle limit=300", "run_for 120")
    with Lab.replay(f"lab brokers=[1,2] generation={generation} seed=1\n{lines}") as lab:
        assert len([r for r in lab.trace if r.action == "shrink-isr"]) > 2
        lab.heal()
        lab.settle()


def test_what_goes_on_beside_a_slow_follower_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else who leaves and comes back for ever is not excused by it."""
    monkeypatch.setattr("kafka_ctl.explore.play.replicas_of_change", lambda record: {1, 2})
    lines = "create_topic b replication_factor=2 partitions=1\nsettle\nproduce b 0\nslow 2 14.4\nsettle limit=300\n"
    outcome = play(reported(f"lab brokers=[1,2] generation=2.4 seed=1\n{lines}"))
    assert [b.name for b in outcome.broken] == [DOES_NOT_QUIESCE]


def test_checks_that_are_made_up_for_are_no_livelock() -> None:
    """0.10 looks at the balance at fixed times: after an hour without ZooKeeper, some thousand times at once."""
    lines = (
        "create_topic a partitions=3 replication_factor=3\nsettle\nrun_for 10\nkill 2\nsettle\nstart 2\nrun_for 0.1\n"
    )
    lines += "stop_zookeeper\n" + "settle limit=300\n" * 10 + "start_zookeeper\nsettle limit=300\nrun_for 10\nsettle\n"
    config = """config='{"leader.imbalance.check.interval.seconds":1}'"""
    outcome = play(reported(f"lab brokers=[1,2,3] generation=0.10 seed=0 {config}\n{lines}"))
    assert outcome.records > 20_000 and outcome.broken == ()


@pytest.mark.parametrize("budget", [2100, 3150, 6300])
def test_checks_that_have_just_been_made_up_for_count_as_little(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of them comes just before so many records are there."""
    monkeypatch.setattr(playing, "BUDGET", budget)
    lines = (
        "create_topic a partitions=3 replication_factor=3\nsettle\nrun_for 10\nkill 2\nsettle\nstart 2\nrun_for 0.1\n"
    )
    lines += "stop_zookeeper\n" + "settle limit=300\n" * 3 + "start_zookeeper\nsettle limit=300\nrun_for 10\nsettle\n"
    config = """config='{"leader.imbalance.check.interval.seconds":1}'"""
    outcome = play(reported(f"lab brokers=[1,2,3] generation=0.10 seed=0 {config}\n{lines}"))
    assert outcome.records > 6800 and outcome.broken == ()


def test_a_slow_follower_may_be_the_preferred_leader() -> None:
    """It is elected when it comes back into an ISR, and leaves and enters the other ones as before."""
    lines = (
        "create_topic c partitions=2 replication_factor=2\nslow 3 12.1342\nsettle\nproduce c 0 records=2\npause 3 10\n"
    )
    outcome = play(reported(f"lab brokers=[1,2,3] generation=2.4 seed=1\n{lines}settle limit=300\n"))
    assert outcome.broken == ()


# What a mechanism does not explain


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
@pytest.mark.parametrize("name", ["followers-untold", "cache-never-updated"])
def test_a_defect_is_not_taken_for_a_bug_that_has_happened_elsewhere(name: str, generation: str) -> None:
    """A reassignment makes the cache stale for one partition (KAFKA-9212); the other partition is not excused by it."""
    with Lab(brokers=3, generation=generation, seed=0, config={"auto.leader.rebalance.enable": False}) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [1, 2]})
        lab.settle()
        lab.reassign({("orders", 0): [1, 2, 3]})
        lab.settle()
        assert {v.known for v in lab.violations} <= {"KAFKA-9212"}
        with mutant(name):
            lab.kill(1)
            lab.settle()
            lab.start(1)
            lab.settle()
            lab.kill(2)
            lab.settle()
        assert "orders-1" in {v.text.partition(" of ")[2][:8] for v in lab.violations if not v.known}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_controller_written_by_hand_is_no_bug_of_kafka(generation: str) -> None:
    """Who was controller resigns, and nobody competes while the znode is there: KAFKA-13407 is where it is not."""
    with Lab(brokers=3, generation=generation, seed=1) as lab:
        lab.write_znode("/controller", '{"version":1,"brokerid":9,"timestamp":"1"}')
        lab.settle()
        assert [(v.invariant, v.known) for v in lab.violations] == [("I19", None)]


def test_every_mechanism_says_what_it_is_and_breaks_invariants_there_are() -> None:
    known = {invariant.id for invariant in INVARIANTS}
    for mechanism in MECHANISMS:
        assert set(mechanism.breaks) <= known and mechanism.breaks
        assert "\n\n" in mechanism.sentence and "Kafka " in mechanism.sentence
        assert mechanism.ticket


ELSEWHERE = {
    "acks=1", "KIP-106", "KAFKA-14424", "KAFKA-9672", "KafkaController.maybeTriggerPartitionReassignment",
    "KAFKA-9038", "KAFKA-13407",
}  # fmt: skip
"""Seen in the tests of the invariants, of orders, and of walks."""
IN_WALKS = {4: {"KAFKA-14140"}, 11: {"KIP-101"}, 27: {"KAFKA-5083"}}
"""Seen in walks of a cluster of 0.10 that is in use, by seed."""
UNSEEN = {"KAFKA-7128"}
"""Told by Kafka's source; no walk has come to it by itself yet, for KIP-101 loses the same records first."""


@pytest.mark.parametrize("seed", IN_WALKS)
def test_what_is_seen_in_walks(seed: int) -> None:
    broken = {b.known for b in play(busy("0.10", seed)).broken}
    assert None not in broken and broken >= IN_WALKS[seed]


def test_every_mechanism_has_been_seen() -> None:
    """In a story here, in another test, in the museum, or in a walk."""
    seen = {ticket for _, _, wanted in STORIES.values() for _, ticket in wanted} | {CREATED} | ELSEWHERE
    seen |= {exhibit.ticket for exhibit in EXHIBITS}.union(*IN_WALKS.values())
    assert {mechanism.ticket for mechanism in MECHANISMS} - seen == UNSEEN
