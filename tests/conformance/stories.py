"""The stories that are compared: commands of `kafka_ctl.Lab`, one a line, with the first line left open.

Brokers start in ascending order, and after every command the cluster is left alone until it is quiet. When the
controller goes, the broker that has run longest follows it: in the kit by the order of its watches; a recording in
which another one was quicker is made again.
"""

from __future__ import annotations

from tests.conformance.story import CLEAN, SEED, UNCLEAN, Story
from tests.conformance.troubles import INCIDENTS

__all__ = ["CLEAN", "SEED", "STORIES", "UNCLEAN", "Story"]

MECHANISMS = (
    Story("first_election", "Three brokers start, the first becomes controller, and a topic gets leaders.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2,3],"1":[2,3,1],"2":[3,1,2]}
"""),
    Story("controller_killed", "The controller dies, and leaderships with it; it returns as an ordinary broker.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2,3],"1":[2,3,1],"2":[3,1,2]}
kill 1
start 1
"""),
    Story("broker_killed", "A broker dies that leads some partitions and follows in others, and returns.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3],"2":[2,3,1],"3":[3,2,1]}
kill 3
start 3
"""),
    Story("all_replicas_killed_clean", "Both replicas die; the one out of sync returns first, and must wait.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {CLEAN}
kill 2
kill 3
start 2
start 3
"""),
    Story("all_replicas_killed_clean_last_first", "Both replicas die; the last one in sync returns first, and leads.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {CLEAN}
kill 2
kill 3
start 3
start 2
"""),
    Story("all_replicas_killed_unclean", "With unclean election the replica out of sync leads as soon as it is back.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {UNCLEAN}
kill 2
kill 3
start 2
start 3
"""),
    Story("all_replicas_killed_unclean_last_first", "With unclean election, but the last one in sync returns first.",
          "lab brokers=3", f"""
create_topic orders assignment={{"0":[2,3]}} {UNCLEAN}
kill 2
kill 3
start 3
start 2
"""),
    Story("shutdown_follower", "Controlled shutdown of a broker that only follows.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,3],"1":[1,3]}
shutdown 3
start 3
"""),
    Story("shutdown_leader", "Controlled shutdown of a broker that leads and follows.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3],"2":[3,2,1]}
shutdown 3
start 3
"""),
    Story("shutdown_controller", "Controlled shutdown of the controller, which leads a partition too.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2,3],"1":[2,3,1]}
shutdown 1
start 1
"""),
    Story("shutdown_single_replica", "Controlled shutdown of a broker that holds the only replica of a partition.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3],"1":[1]}
shutdown 3
start 3
"""),
    Story("rolling_restart", "One broker after the other is shut down and started again, the controller last.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2],"1":[2,3],"2":[3,1]}
shutdown 2
start 2
shutdown 3
start 3
shutdown 1
start 1
"""),
    Story("create_with_dead_replica", "Topics are created while one of their brokers, or all of them, are dead.",
          "lab brokers=3", """
kill 3
create_topic orders assignment={"0":[3,1],"1":[1,3]}
create_topic alone assignment={"0":[3]}
start 3
"""),
    Story("partitions_added", "A topic gets more partitions.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2]}
add_partitions orders 4
"""),
    Story("slow_follower", "A follower falls behind, leaves the ISR, catches up and returns into it.",
          'lab brokers=3 config={"replica.lag.time.max.ms":4000,"zookeeper.session.timeout.ms":60000}', """
create_topic orders assignment={"0":[1,2,3]}
lag 3 orders 0
catch_up 3
"""),
    Story("delete_topic", "A topic is deleted while all its brokers are alive.",
          'lab brokers=3 config={"delete.topic.enable":true}', """
create_topic orders assignment={"0":[1,2,3],"1":[2,3,1]}
create_topic other assignment={"0":[1,2]}
delete_topic orders
"""),
    Story("delete_topic_broker_down", "A topic is deleted while a broker of it is down, and goes when that is back.",
          'lab brokers=3 config={"delete.topic.enable":true}', """
create_topic orders assignment={"0":[1,2,3],"1":[3,2,1]}
kill 3
delete_topic orders
start 3
"""),
    Story("delete_topic_failover", "The controller dies while a deletion waits; the next one completes it.",
          'lab brokers=4 config={"delete.topic.enable":true}', """
create_topic orders assignment={"0":[2,3,4],"1":[4,3,2]}
kill 4
delete_topic orders
kill 1
start 4
"""),
    Story("delete_topic_moving", "A topic is deleted while one of its partitions moves; the move does not halt that.",
          'lab brokers=4 config={"delete.topic.enable":true}', """
create_topic orders assignment={"0":[1,2],"1":[2,1]}
kill 4
reassign {"orders-0":[3,4]}
delete_topic orders
start 4
"""),
    Story("reassign_disjoint", "A partition moves to other brokers altogether.",
          "lab brokers=4", """
create_topic orders assignment={"0":[1,2]}
reassign {"orders-0":[3,4]}
"""),
    Story("reassign_overlapping", "A leader goes and a follower stays; then a follower goes and the leader stays.",
          "lab brokers=4", """
create_topic orders assignment={"0":[1,2],"1":[2,1]}
reassign {"orders-0":[2,3]}
reassign {"orders-1":[2,4]}
"""),
    Story("reassign_reordered", "Only the order of the replicas changes, and with it the preferred leader.",
          "lab brokers=3", """
create_topic orders assignment={"0":[1,2,3]}
reassign {"orders-0":[2,1,3]}
"""),
    Story("reassign_dead_target", "One of the new brokers is down; the move waits for it.",
          "lab brokers=4", """
create_topic orders assignment={"0":[1,2]}
kill 4
reassign {"orders-0":[3,4]}
start 4
"""),
    Story("reassign_cancelled", "A move that waits for a dead broker is cancelled.",
          "lab brokers=4", """
create_topic orders assignment={"0":[1,2]}
kill 4
reassign {"orders-0":[3,4]}
cancel_reassignment ["orders-0"]
start 4
""", ("2.4",)),
    Story("reassign_failover", "The controller dies while a move waits; the next one completes it.",
          "lab brokers=5", """
create_topic orders assignment={"0":[2,3]}
kill 5
reassign {"orders-0":[4,5]}
kill 1
start 5
"""),
    Story("preferred_wanted", "A broker returns and gets its leaderships back on demand.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
kill 3
start 3
elect_preferred ["orders-0"]
"""),
    Story("preferred_not_needed", "A preferred election where the preferred replica leads already.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
elect_preferred ["orders-0"]
"""),
    Story("preferred_dead", "A preferred election for a replica that is down.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3]}
kill 3
elect_preferred ["orders-0"]
"""),
    Story("shutdown_cannot_hand_over", "One broker is dead; another leaves that cannot hand over all that it leads.",
          "lab brokers=3", """
create_topic orders assignment={"0":[3,2],"1":[3,1]}
kill 2
shutdown 3
start 3
start 2
"""),
    Story("shutdown_several_topics", "A broker leaves again and again, as topics come and go and the controller dies.",
          'lab brokers=4 config={"delete.topic.enable":true}', """
create_topic orders assignment={"0":[3,2],"1":[3,2],"2":[3,2]}
create_topic payments assignment={"0":[3,2]}
shutdown 3
start 3
create_topic users assignment={"0":[4,1],"1":[1,4]}
elect_preferred ["orders-0","orders-1","orders-2","payments-0"]
shutdown 3
start 3
delete_topic users
elect_preferred ["orders-0","orders-1","orders-2","payments-0"]
shutdown 3
start 3
kill 1
elect_preferred ["orders-0","orders-1","orders-2","payments-0"]
shutdown 3
"""),
    Story("rebalance_several_topics", "A broker returns and gets the leaderships of several topics back, one by one.",
          'lab brokers=3 config={"auto.leader.rebalance.enable":true,"leader.imbalance.check.interval.seconds":60}', """
create_topic orders assignment={"0":[3,1],"1":[3,1],"2":[3,1],"3":[3,1],"4":[3,1],"5":[3,1]}
create_topic payments assignment={"0":[3,1],"1":[3,1],"2":[3,1]}
create_topic users assignment={"0":[1,2]}
kill 3
start 3
run_for 60
"""),
    Story("automatic_rebalance", "A broker returns and the controller gives its leaderships back by itself.",
          'lab brokers=3 config={"auto.leader.rebalance.enable":true,"leader.imbalance.check.interval.seconds":60}', """
create_topic orders assignment={"0":[3,1,2],"1":[1,2,3],"2":[3,2,1]}
kill 3
start 3
run_for 60
"""),
)  # fmt: skip
"""In the order in which the mechanisms are met."""

STORIES = {story.name: story for story in (*MECHANISMS, *INCIDENTS)}
"""By name."""
