"""The collection, in the order in which the bugs were fixed; what Apache Kafka has never fixed comes last."""

from __future__ import annotations

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.museum.exhibit import Exhibit
from kafka_ctl.museum.questions import (
    Question,
    double_leadership,
    fruitless_elections,
    in_sync,
    leader_epochs,
    leaders,
    replicas,
    requests,
)

EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "KAFKA-532", {"checks_controller_epoch": True},
        releases="none; fixed before 0.8.0, the first with replicas",
        caught_by="I9",
        decisive=r"fault |UpdateMetadata -> .*leader=|epoch_incremented +epoch=2|ignored +STALE|violation",
        visible=r"^disagree: .*; metadata of 3: leader 1, epoch 0",
        source="brokers/replica_manager.py",
    ),
    Exhibit(
        "KAFKA-708", {"resets_dead_leader": True},
        releases="none; fixed before 0.8.0",
        caught_by="I2",
        decisive=r"kill|start +broker|(set|create) .*/state|election +orders|become-leader",
        visible=r"^role:orders-0@2 .*leader not in ISR",
        source="controller/replica_machine.py",
    ),
    Exhibit(
        "KAFKA-1170", {"shrinks_stored_isr": True},
        releases="to 0.8.0; fixed in 0.8.1",
        caught_by=Question("Who is in sync in the end, of whom?", in_sync),
        decisive=r"fault |admin .*reassign |broker-1 .*set .*/state|(shrink|expand)-isr|set /brokers/topics/orders  ",
        visible=r"^role:orders-0@3 .*in ISR, not assigned",
        source="controller/replica_machine.py",
    ),
    Exhibit(
        "KAFKA-1382", {"accepts_own_isr": True},
        releases="to 0.8.1.1; fixed in 0.8.2.0",
        caught_by="I18",
        decisive=r"fault |broker-2 .*/state|shrink-isr|connected",
        visible=r"^role:orders-0@2 .*leads, ISR 2 3 1",
        source="brokers/leader.py",
    ),
    Exhibit(
        "KAFKA-2300", {"clears_batches": True},
        releases="to 0.8.2.2; fixed in 0.9.0.0. Its second way in, KAFKA-12315, from 2.1 on; never fixed",
        caught_by="I14",
        decisive=r"fault |delete_controller|controller_moved|error_moving|controller  ready|LeaderAndIsr -> 3 .*s-7 ",
        visible=r"^replica:orders-0@3 .*differs",
        source="controller/failover.py",
    ),
    Exhibit(
        "KAFKA-3085", {"reads_brokers_once": True},
        releases="to 0.9.0.1; fixed in 0.10.0.0",
        caught_by="I21",
        decisive=r"fault |delete /brokers/ids|brokers_changed .*live=1,2$|broker_failure|election +orders|violation",
        visible=r"^role:orders-0@3 .*leader not registered",
        source="controller/membership.py",
    ),
    Exhibit(
        "KAFKA-3670", {"shutdown_prefers_order": True},
        releases="to 0.9.0.1; fixed in 0.10.0.0",
        caught_by=Question("Who leads in the end?", leaders),
        decisive=r"admin .*shutdown|election ",
        visible=r"^replica:orders-0@3 .*leader",
        source="controller/partition_machine.py",
    ),
    Exhibit(
        "KAFKA-4214", {"waits_for_dead_targets": True},
        releases="to 0.10.0.1; fixed in 0.10.1.0",
        caught_by=Question("Which brokers hold the partition in the end?", replicas),
        decisive=r"fault |admin .*reassign|reassignment_(res|fail|wait|leader|rem)",
        visible=r"^replica:orders-0@3 .*insync",
        source="controller/reassignment.py",
    ),
    Exhibit(
        "KAFKA-4443", {"introduces_brokers_first": True},
        releases="to 0.10.1.1; fixed in 0.10.2.0",
        caught_by="I14",
        decisive=r"fault |controller-2 .*(request|  ready)|broker-3 .*become",
        visible=r"^role:orders-0@3 .*knows no leader",
        source="controller/failover.py",
    ),
    Exhibit(
        "KAFKA-4229", {"skips_own_reelection": True},
        releases="to 0.10.1.1; fixed in 0.10.2.0",
        caught_by="I19",
        decisive=r"fault |RegisterBrokerAndReelect|/controller .*brokerid|elected|resigned|skipped|violation",
        visible=r"^znode:/controller .*not acting",
        source="controller/failover.py",
    ),
    Exhibit(
        "KAFKA-5310", {"forgets_on_resignation": True},
        releases="to 0.10.2.2; fixed in 0.11.0.0",
        caught_by="I16",
        decisive=r"fault |admin .*(reassign|delete_znode) |handling_rea|r  elected|StopReplica -> 2|stop-rep|violat",
        visible=r"^replica:orders-0@3 .*insync",
        source="controller/failover.py",
    ),
    Exhibit(
        "KAFKA-1211", {"truncates_by_epoch": True},
        releases="to 0.10.2.2; fixed in 0.11.0.0, by KIP-101",
        caught_by="I4",
        decisive=r"fault |Produce|append|  copy|high-water|trunc|election .*orders|orders-0 +become-leader|violation",
        visible=r"^role:orders-0@2 .*leads, .*end 0",
        source="brokers/follower.py",
    ),
    Exhibit(
        "KAFKA-6879", {"fails_waiters_at_expiry": True},
        releases="1.1.0; fixed in 1.1.1",
        caught_by="I19",
        decisive=r"fault |expired|connected +sess|controller-1 .*(Expire|Shutdown|Register)|create /controller|violat",
        visible=r"^head:1 .*still acts",
        source="brokers/broker.py",
    ),
    Exhibit(
        "KAFKA-6612", {"restores_assignments": True},
        releases="to 1.1.1; fixed in 2.0.0",
        caught_by="I19",
        decisive=r"fault |admin  .*(delete_|add_)|partitions_not|restoring|s_to_be|deletion_(can|comp)|ion_del|violat",
        visible=r"^replica:orders-0@1 .*deleting",
        source="controller/topics.py",
    ),
    Exhibit(
        "KAFKA-6650", {"tolerates_missing_state": True},
        releases="to 1.1.1; fixed in 2.0.0",
        caught_by="I19",
        decisive=r"fault |delete .*/state|topics_to_be|refused|deletion_(compl|halt|inelig)|violation",
        visible=r"^replica:orders-2@2 .*deleting",
        source="controller/replica_machine.py",
    ),
    Exhibit(
        "KAFKA-6082", {"fences_writes": True},
        releases="to 2.0.1; fixed in 2.1.0",
        caught_by="I8",
        decisive=r"delete_contr|broker-. .*partitions/(8|9|10)/state|controller  elected|moved|resigned|violation",
        visible=r"^token .*stale controller",
        source="controller/failover.py",
    ),
    Exhibit(
        "KAFKA-7482", {"shutdown_tells_leaving_broker": True},
        releases="1.1.0 to 2.0.1; fixed in 2.1.0",
        caught_by=Question("For how long did two brokers lead the same partition?", double_leadership),
        decisive=r"admin .*shutdown|elect.*ord|LeaderAndIsr.*ord.*leader=2|orders-0 +become.*leader=2|shutting-down",
        visible=r"^role:orders-0@1 .*leads, epoch 0$(.|\n)*^role:orders-0@2 .*leads, epoch 1$",
        source="controller/partition_machine.py",
    ),
    Exhibit(
        "KAFKA-7235a", {"broker_epochs": True},
        releases="to 2.1.1; fixed in 2.2.0",
        caught_by="I14",
        decisive=r"fault |broker-3 .*registered|brokers_changed .*live=1,2,3|orders.*become|violation",
        visible=r"^role:orders-0@3 .*not notified",
        source="controller/membership.py",
    ),
    Exhibit(
        "KAFKA-7235b", {"broker_epochs": True},
        releases="to 2.1.1; fixed in 2.2.0",
        caught_by="I9",
        decisive=r"fault |broker-3 .*registered|ControlledShut|shutting_down_b|stale_c|election +.*prefer|violat",
        visible=r"^disagree: .*Broker 3: up; controller 1: shuts down",
        source="brokers/broker.py",
    ),
    Exhibit(
        "KAFKA-3143", {"stops_dead_replicas_at_startup": True},
        releases="to 2.2.2; fixed in 2.3.0",
        caught_by="I21",
        decisive=r"fault |Ineligible -> Offline|UpdateMetadata -> 3 |  ready|violation",
        visible=r"^role:orders-0@2 .*leader not registered",
        source="controller/replica_machine.py",
    ),
    Exhibit(
        "KAFKA-8294", {"groups_stop_replica": True},
        releases="1.1.0 to 2.2.2; fixed in 2.3.0",
        caught_by=Question("How many StopReplica requests were sent?", requests("StopReplica")),
        decisive=r"admin .*shutdown|StopReplica -> 2 |broker-2 .*orders-(0|11) +stop-replica|stopped",
        visible=r"^token .*StopReplica \(0\)",
        source="controller/batch.py",
    ),
    Exhibit(
        "KAFKA-8286", {"retries_whole_batch": False},
        releases="1.1.0 to 2.3.1; fixed in 2.4.0",
        caught_by=Question("Which leader epochs are there in the end?", leader_epochs),
        decisive=r"admin .*shutdown|expand-isr|election|BADVERSION",
        visible=r"^role:orders-1@2 .*leads, epoch 2",
        source="controller/partition_machine.py",
    ),
    Exhibit(
        "KAFKA-9089", {"takes_over_requests": True},
        releases="none; fixed before 2.4.0, the first with reassignments through the controller",
        caught_by=Question("Which brokers hold the partition in the end?", replicas),
        decisive=r"fault |admin .*reassign |reassign_partitions  |reassignment_(t|caught)|r  elected",
        visible=r"^replica:orders-0@4 .*insync",
        source="controller/reassignment_incremental.py",
    ),
    Exhibit(
        "KAFKA-9212", {"caches_bumped_epoch": True},
        releases="to 2.3.1; fixed in 2.4.0",
        caught_by="I18",
        decisive=r"fault |admin .*reassign |leader_epoch_upd|UpdateM.*offline=4|LeaderAndIsr .*_epoch|violation",
        visible=r"^differ:1 .*context 1",
        source="controller/reassignment.py",
    ),
    Exhibit(
        "KAFKA-9866", {"rebalances_to_in_sync": True},
        releases="to 2.5.1; fixed in 2.6.0",
        caught_by=Question("How many elections have found nobody?", fruitless_elections),
        decisive=r"fault |AutoPreferred|imbalance .*ratio|election .*preferred|refused",
        visible=r"^token .*orders-0: nobody",
        source="controller/rebalance.py",
    ),
    Exhibit(
        "KAFKA-10314", {"announces_new_replicas": True},
        releases="1.0 to 2.6; fixed in 2.7.0",
        caught_by="I19",
        decisive=r"fault |admin .*reassign|LeaderAndIsr.*-> .*4 .*epoch=1|broker-4 .*orders|_caught|cas_off|violat",
        visible=r"^replica:orders-0@4 .*offline",
        source="controller/reassignment.py",
    ),
    Exhibit(
        "LINKEDIN-14", {"deletion_waits_for_reassignment": True},
        releases="to 2.3.1, as in the story; the deletion of a topic that moves does not wait in any release",
        caught_by="I19",
        decisive=r"fault .*(kill|start)|admin .*(reassign |delete_t)|deletion_(h|can|compl)|startup.*=4$|error_pr|viol",
        visible=r"^replica:audit-0@4 .*lagging",
        source="controller/deletion.py",
    ),
)  # fmt: skip
"""All of them. They are known by their names, as `KAFKA-7482`, and by their numbers, from 1."""


def find(name: str) -> Exhibit:
    """The exhibit of that number or name; UnknownName, which lists all names, if there is none.

    The ticket will do, also without its `KAFKA-`. Raises BadInput if it has two exhibits.
    """
    given = name.strip().upper()
    if given.isdecimal() and 1 <= int(given) <= len(EXHIBITS):
        return EXHIBITS[int(given) - 1]
    wanted = given if given.startswith(("KAFKA-", "LINKEDIN")) else f"KAFKA-{given}"
    fitting = [e for e in EXHIBITS if wanted in (e.name.upper(), e.ticket.upper())]
    if len(fitting) > 1:
        raise BadInput(f"{wanted} has {len(fitting)} exhibits: {' and '.join(e.name for e in fitting)}")
    if not fitting:
        raise UnknownName("exhibit", name, [e.name for e in EXHIBITS])
    return fitting[0]
