"""Stories of what goes wrong: records lost, disks and networks that fail, sessions that end, znodes written by hand."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.story import CLEAN, SEED_OF_SIX, UNCLEAN, Story

LATER = ("2.0", "2.4")
BOTH = ("fetchers", "metadata")


def _text(content: Any) -> str:
    """JSON as the one word of a story that is a text."""
    return json.dumps(json.dumps(content, separators=(",", ":")))


def _state(leader: int, isr: list[int], leader_epoch: int = 0) -> str:
    return _text({"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": isr})


def _at_once(*lines: str) -> str:
    return "at_once " + json.dumps(lines, separators=(",", ":")).replace(" ", "\\u0020")


def _log_dirs(replicas: list[int], directories: list[str]) -> str:
    move = {"topic": "orders", "partition": 0, "replicas": replicas, "log_dirs": directories}
    return _text({"version": 1, "partitions": [move]})


PATIENT = 'lab brokers=3 config={"replica.lag.time.max.ms":60000}'
"""So that whoever stands still stays in the ISRs: whether a leader looks in time is a matter of chance."""
MANY = json.dumps({str(p): [p % 6 + 1, (p + 1 + p // 6 % 5) % 6 + 1] for p in range(60)}, separators=(",", ":"))

ELECTION = {"version": 1, "partitions": [{"topic": "orders", "partition": 0}]}
TOOLS = (
    "delete_topic old",
    """create_topic a assignment='{"0":[1,2]}'""",
    """create_topic b assignment='{"0":[2,3]}'""",
)
"""In the order in which they finish when they work side by side: a deletion is a single write."""

INCIDENTS = (
    Story("records_clean_election", "Records are written before, while and after their leader is dead.",
          "lab brokers=3", """
create_topic orders assignment={"0":[2,3,1]}
produce orders 0 records=3
kill 2
produce orders 0 records=2
start 2
produce orders 0
""", also=BOTH),
    Story("records_lost_unclean", "An unclean leader lacks records; who had them drops them when it returns.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {UNCLEAN}
produce orders 0 records=2
kill 3
produce orders 0 records=3 acks=1
kill 2
start 3
produce orders 0 acks=1
start 2
produce orders 0
"""),
    Story("records_diverge_unclean", "An unclean leader writes more records than it lacks.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {UNCLEAN}
produce orders 0 records=2
kill 3
produce orders 0 records=2 acks=1
kill 2
start 3
produce orders 0 records=4 acks=1
start 2
produce orders 0
"""),
    Story("records_two_unclean_leaders", "Two unclean leaders in a row write records; both old ones return (KIP-101).",
          "lab brokers=4", f"""
create_topic orders assignment={{"0":[2,3,4]}} {UNCLEAN}
produce orders 0 records=2
kill 3
kill 4
produce orders 0 records=2 acks=1
kill 2
start 3
produce orders 0 acks=1
kill 3
start 4
produce orders 0 records=3 acks=1
start 2
start 3
produce orders 0
"""),
    Story("records_kept_clean", "Without unclean election nobody leads until the last leader is back with its records.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {CLEAN}
produce orders 0 records=2
kill 3
produce orders 0 records=3 acks=1
kill 2
start 3
produce orders 0
start 2
produce orders 0
"""),
    Story("records_acks", "Each acks, with enough replicas in sync and with too few.",
          "lab brokers=3", """
create_topic orders assignment={"0":[2,3]} config={"min.insync.replicas":2}
produce orders 0 acks=0
produce orders 0 acks=1
produce orders 0 acks=all
kill 3
produce orders 0 acks=all
produce orders 0 acks=1
start 3
produce orders 0 acks=all
"""),
    Story("records_slow_follower", "A follower stands still: records are acknowledged when it has left the ISR.",
          'lab brokers=3 config={"replica.lag.time.max.ms":4000,"zookeeper.session.timeout.ms":60000}', """
create_topic orders assignment={"0":[1,2,3]}
produce orders 0
lag 3 orders 0 # meanwhile
produce orders 0 records=2
catch_up 3
produce orders 0
""", also=BOTH),
    Story("records_shutdown", "Records are written before, while and after their leader is shut down.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
produce orders 0 records=2
shutdown 3
produce orders 0
start 3
produce orders 0
""", also=BOTH),
    Story("controller_deleted", "An operator deletes /controller; all brokers compete again.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
delete_controller
create_topic other assignment={"0":[2,3]}
"""),
    Story("broker_expired", "The session of a broker that leads ends although its process is well.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
expire_session 3
""", also=BOTH),
    Story("controller_expired", "The session of the controller ends although its process is well.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
expire_session 1
create_topic other assignment={"0":[1,2]}
"""),
    Story("broker_paused", "A broker stands still for longer than its session lasts.",
          PATIENT, """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
pause 3 14
""", also=BOTH),
    Story("controller_paused", "The controller stands still for longer than its session lasts, and wakes up deposed.",
          PATIENT, """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
pause 1 14
create_topic other assignment={"0":[1,2]}
"""),
    Story("broker_bounced", "Brokers are replaced by new processes so fast that their old session hardly ends first.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
bounce 3
bounce 2
"""),
    Story("broker_bounced_unseen", "A broker is replaced while the controller stands still, which never saw it gone.",
          'lab brokers=3 config={"replica.lag.time.max.ms":60000,"zookeeper.session.timeout.ms":60000}', """
create_topic orders assignment={"0":[3,1,2],"1":[2,1,3]}
pause 1 20 # meanwhile
bounce 3
create_topic other assignment={"0":[3,2]}
""", also=BOTH),
    Story("controller_bounced", "The controller is replaced by a new process, which needs a second to start.",
          PATIENT, """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
bounce 1 seconds=1
"""),
    Story("racks", "Partitions are added to a topic whose brokers stand in racks.",
          'lab brokers={"1":"a","2":"b","3":"a","4":"b","5":"c"}', """
create_topic orders assignment={"0":[2,1]}
create_topic wide assignment={"0":[3,2,5],"1":[1,4,5]}
add_partitions orders 7
add_partitions wide 6
"""),
    Story("state_written_by_hand", "Somebody writes a state znode; the controller's next write meets another version.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[3,1,2],"1":[3,2,1],"2":[1,2,3]}}
write_znode /brokers/topics/orders/partitions/0/state {_state(3, [3, 1, 2])}
kill 3
start 3
"""),
    Story("isr_version_conflict", "Somebody writes a state znode; its leader can change the ISR no more.",
          'lab brokers=3 config={"replica.lag.time.max.ms":4000,"zookeeper.session.timeout.ms":60000}', f"""
create_topic orders assignment={{"0":[1,2,3]}}
write_znode /brokers/topics/orders/partitions/0/state {_state(1, [1, 2, 3])}
lag 3 orders 0
catch_up 3
"""),
    Story("epoch_written_by_hand", "Somebody writes /controller_epoch; a controller that fences its writes is stopped.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
write_znode /controller_epoch 8
create_topic other assignment={"0":[2,3]}
delete_controller
"""),
    Story("topic_written_by_hand", "Znodes are written and deleted by hand: a topic, an election, a state.",
          "lab brokers=3", f"""
write_znode /brokers/topics/orders {_text({"version": 1, "partitions": {"0": [2, 3], "1": [3, 1]}})}
write_znode /admin/preferred_replica_election {_text(ELECTION)}
delete_znode /brokers/topics/orders/partitions/1/state
kill 3
start 3
"""),
    Story("log_dir_fails", "A log directory fails; its broker lives on with the other one.",
          "lab brokers=3", """
create_topic a assignment={"0":[2,3]}
create_topic b assignment={"0":[2,1]}
create_topic c assignment={"0":[3,2]}
fail_log_dir 2
kill 2
start 2
""", LATER, BOTH),
    Story("log_dir_halts", "A log directory fails; a broker of 0.10 halts.",
          "lab brokers=3", """
create_topic a assignment={"0":[2,3]}
create_topic b assignment={"0":[2,1]}
create_topic c assignment={"0":[3,2]}
fail_log_dir 2
start 2
""", ("0.10",)),
    Story("log_dir_last", "The last log directory of a broker fails, too.",
          "lab brokers=3", """
create_topic a assignment={"0":[2,3]}
create_topic b assignment={"0":[2,1]}
create_topic c assignment={"0":[3,2]}
fail_log_dir 2
fail_log_dir 2
start 2
""", LATER),
    Story("log_dir_moved", "A copy moves to the other log directory of its broker.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}}
execute_reassignment {_log_dirs([2, 3], ["/d1", "any"])}
verify_reassignment {_log_dirs([2, 3], ["/d1", "any"])}
""", LATER),
    Story("reassign_throttled", "A throttled move; its throttles go when somebody verifies that it is done.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2],"1":[2,1]}
execute_reassignment {"orders-0":[2,3]} throttle=1000000
verify_reassignment {"orders-0":[2,3]}
"""),
    Story("reassign_api", "Moves through the controller's API; one replaces a move that waits in ZooKeeper.",
          "lab brokers=4", """
create_topic orders assignment={"0":[1,2],"1":[2,1]}
reassign {"orders-1":[3,2]} through=controller
kill 4
reassign {"orders-0":[3,4]}
reassign {"orders-0":[2,3]} through=controller
start 4
""", ("2.4",)),
    Story("elect_leaders", "A tool asks for preferred and for unclean leaders (KIP-460).",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,2],"1":[2,1]}
kill 2
elect_leaders preferred ["orders-1"]
kill 3
start 2
elect_leaders unclean ["orders-0","orders-1"]
start 3
elect_leaders preferred ["orders-0","orders-1"]
""", ("2.4",)),
    Story("at_once", "Topics are deleted and created while the controller looks away.",
          'lab brokers=3 config={"delete.topic.enable":true,"zookeeper.session.timeout.ms":60000}', f"""
create_topic old assignment={{"0":[1,2]}}
{_at_once(*TOOLS)}
"""),
    Story("zookeeper_outage", "ZooKeeper is down for a while: records go on, and nothing else changes.",
          "lab brokers=3", """
create_topic orders assignment={"0":[2,3,1]}
produce orders 0
stop_zookeeper
produce orders 0 records=2
start_zookeeper
produce orders 0
"""),
    Story("zookeeper_outage_death", "A broker dies while ZooKeeper is down; that is noticed when ZooKeeper is back.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
stop_zookeeper
kill 3
start_zookeeper
start 3
"""),
    Story("cut_between_brokers", "A leader and its follower cannot reach each other for a while.",
          "lab brokers=3", """
create_topic orders assignment={"0":[2,3],"1":[3,2],"2":[2,1]}
disconnect 2 3
heal
""", also=("metadata",)),
    Story("cut_from_zookeeper", "A broker that leads cannot reach ZooKeeper; it comes back.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
disconnect 3 zookeeper
heal
"""),
    Story("cut_controller_from_zookeeper", "The controller cannot reach ZooKeeper; another one follows it.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
disconnect 1 zookeeper
create_topic other assignment={"0":[2,3]}
heal
"""),
    Story("shutdown_racing_failover", "A broker asks to leave while the controller has just died.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,2],"1":[2,3],"2":[1,2]}
kill 1 # meanwhile
shutdown 3
start 1
start 3
"""),
    Story("rebalance_at_limit", "Half of a broker's leaders are elsewhere, and that is just allowed.",
          'lab brokers=3 config={"auto.leader.rebalance.enable":true,"leader.imbalance.check.interval.seconds":30,'
          '"leader.imbalance.per.broker.percentage":50}', """
create_topic orders assignment={"0":[3,1]}
create_topic alone assignment={"0":[3]}
kill 3
start 3
run_for 60
"""),
    Story("rebalance_over_limit", "Half of a broker's leaders are elsewhere, and less is allowed.",
          'lab brokers=3 config={"auto.leader.rebalance.enable":true,"leader.imbalance.check.interval.seconds":30,'
          '"leader.imbalance.per.broker.percentage":49}', """
create_topic orders assignment={"0":[3,1]}
create_topic alone assignment={"0":[3]}
kill 3
start 3
run_for 60
"""),
    Story("ids_generated", "A broker without an id gets one from ZooKeeper, and keeps it.",
          "lab brokers=[1,2,null]", """
create_topic orders assignment={"0":[1001,1],"1":[2,1001]}
kill 1001
start 1001
add_broker
"""),
    Story("ids_inconsistent", "A broker whose configuration and disk name different ids does not start.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
kill 3
set_broker_id 3 4
start 3
set_broker_id 3 3
start 3
"""),
    Story("ids_between_directories", "A broker whose log directories name different ids does not start.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
kill 3
set_meta 3 /d1 7
start 3
set_meta 3 /d1 3
start 3
"""),
    Story("ids_taken", "A broker whose disks name the id of another one that lives does not start.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
kill 3
set_broker_id 3 null
set_meta 3 /d0 2
set_meta 3 /d1 2
start 3
set_broker_id 3 3
set_meta 3 /d0 3
set_meta 3 /d1 3
start 3
"""),
    Story("ids_other_cluster", "A broker whose disks belong to another cluster does not start.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
kill 3
set_meta 3 /d0 3 cluster=another
set_meta 3 /d1 3 cluster=another
start 3
set_meta 3 /d0 3
set_meta 3 /d1 3
start 3
""", ("2.4",)),
    Story("ids_other_cluster_ignored", "Nobody looks to which cluster a broker's disks belong (before KAFKA-7335).",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1]}
kill 3
set_meta 3 /d0 3 cluster=another
set_meta 3 /d1 3 cluster=another
start 3
""", ("0.10", "2.0")),
    Story("described", "A cluster as it was described, with one broker dead.",
          'lab brokers=4 description={"orders":[[[1,2],1,[1,2]],[[2,4],2,[2]],[[4],null,[4]],[[3,1],1,[1,3]]]}', """
start 4
"""),
    Story("six_brokers", "Six brokers with sixty partitions; one dies, one leaves.",
          "lab brokers=6", f"""
create_topic orders assignment={MANY}
kill 4
start 4
shutdown 2
start 2
""", LATER, seed=SEED_OF_SIX),
    Story("six_brokers_killed", "Six brokers with sixty partitions; one dies and returns.",
          "lab brokers=6", f"""
create_topic orders assignment={MANY}
kill 4
start 4
""", ("0.10",), seed=SEED_OF_SIX),
)  # fmt: skip
"""In the order of the faults."""
