"""The types of every public call, as an editor sees them: mypy reads this file, and Python never runs it.

`tests/setup/test_tidy.py` holds that each public name of `Lab` has a line here.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from kafka_ctl import Lab, assignment, election, side_by_side
from kafka_ctl.balance import BrokerBalance
from kafka_ctl.brokers.broker import ShutdownReport
from kafka_ctl.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.display import Rows
from kafka_ctl.election import Election
from kafka_ctl.generation import Config
from kafka_ctl.invariants import Checker, Violation
from kafka_ctl.lab import view
from kafka_ctl.lab.commands import Elections
from kafka_ctl.lab.foreign import Origin
from kafka_ctl.lab.metrics import MetricValue
from kafka_ctl.lab.producer import Produced
from kafka_ctl.lab.story import Command, Opening
from kafka_ctl.lab.view import LogDirView, ReassignmentView
from kafka_ctl.partition import PARTITION
from kafka_ctl.plugins import Plugins
from kafka_ctl.replica import REPLICA
from kafka_ctl.simulation.world import World
from kafka_ctl.table import TransitionTable
from kafka_ctl.trace import Record, Trace
from kafka_ctl.views.explain.why import Why
from kafka_ctl.views.widget.live import Live
from kafka_ctl.views.widget.player import Player
from kafka_ctl.views.widget.side_by_side import SideBySide
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.store import Stat


def commands(lab: Lab) -> None:
    """Commands of a lab that return no value: a call is a statement."""
    lab.create_topic("orders", partitions=6, replication_factor=3)
    lab.add_partitions("orders", 9)
    lab.alter_config("topics", "orders", {"retention.ms": 1})
    lab.kill(1)
    lab.start(1)
    lab.bounce(1)
    lab.expire_session(3)
    lab.pause(3, seconds=20)
    lab.disconnect(1, 2)
    lab.heal()
    lab.delay(1, "zookeeper", 2.0)
    lab.lose(1, 2)
    lab.slow(1, 2.0)
    lab.lag(3, "orders", 0)
    lab.catch_up(3)
    lab.fail_log_dir(2)
    lab.add_broker(4, rack="a")
    lab.set_broker_id(1, 4)
    lab.set_meta(1, "/d0", 1)
    lab.delete_controller()
    lab.write_znode("/controller_epoch", 7)
    lab.delete_znode("/controller")
    lab.stop_zookeeper()
    lab.start_zookeeper()
    lab.order([1, 0])
    lab.settle()
    lab.run_for(seconds=30)
    lab.step(n=1)
    lab.run_until(lambda: True)
    lab.back()
    lab.close()


def answers(lab: Lab) -> None:
    """Commands that return a value."""
    assert_type(lab.delete_topic("orders"), str | None)
    assert_type(lab.shutdown(2), ShutdownReport | None)
    assert_type(lab.reassign({("orders", 0): [2, 3, 4]}), dict[str, str] | None)
    assert_type(lab.cancel_reassignment(), dict[str, str] | None)
    assert_type(lab.list_reassignments(), str)
    assert_type(lab.generate_reassignment(["orders"], [1, 2]), dict[TopicPartition, tuple[int, ...]])
    assert_type(lab.execute_reassignment({}), str)
    assert_type(lab.verify_reassignment({}), str)
    assert_type(lab.elect_preferred([("orders", 0)]), Elections | None)
    assert_type(lab.elect_leaders("preferred"), Elections)
    assert_type(lab.at_once(["kill 1"]), list[str | None])
    assert_type(lab.produce("orders", 0), Produced | None)
    assert_type(lab.run_until_violation(), Violation | None)
    assert_type(lab.do("kill 1"), object)


def sights(lab: Lab) -> None:
    """The state of a lab."""
    assert_type(lab.controller, view.ControllerView | None)
    assert_type(lab.controller_memory(), view.ControllerMemory | None)
    assert_type(lab.controller_leadership("orders", 0), LeaderAndIsr | None)
    assert_type(lab.partition("orders", 0), view.PartitionView)
    assert_type(lab.partitions(), Rows[view.PartitionView])
    assert_type(lab.replicas(), Rows[view.ReplicaView])
    assert_type(lab.brokers, view.BrokerTable)
    assert_type(lab.balance(), Rows[BrokerBalance])
    assert_type(lab.reassignments(), Rows[ReassignmentView])
    assert_type(lab.znodes(), view.ZnodeTable)
    assert_type(lab.stat("/controller"), Stat)
    assert_type(lab.log("orders", 0), Rows[view.LogView])
    assert_type(lab.logs(), Rows[view.LogView])
    assert_type(lab.log_dirs(), Rows[LogDirView])
    assert_type(lab.identity(1), view.IdentityView)
    assert_type(lab.metrics(1), dict[str, MetricValue])
    assert_type(lab.violations, tuple[Violation, ...])
    assert_type(lab.now, float)
    assert_type(lab.quiet, bool | None)
    assert_type(lab.config, Config)
    assert_type(lab.checker, Checker | None)
    assert_type(lab.commands, list[Command])
    assert_type(lab.plugins, Plugins)
    assert_type(lab.world, World)
    assert_type(lab.bootstrap_servers, str)
    assert_type(lab.zookeeper_address, str | None)
    assert_type(lab.zookeeper_server, EmbeddedServer | None)


def time_travel(lab: Lab) -> None:
    """Stories, replays and forks."""
    assert_type(lab.story, str)
    assert_type(lab.opening, Opening)
    assert_type(lab.link(), str)
    assert_type(Lab.replay(lab.story, until=3), Lab)
    assert_type(lab.fork(at=3, generation="2.4"), Lab)
    assert_type(Lab.from_description("Topic: orders"), Lab)
    assert_type(Lab.from_zookeeper("127.0.0.1:2181/kafka"), Lab)
    assert_type(lab.origin, Origin | None)


def pictures(lab: Lab) -> None:
    """Widgets, films and explanations."""
    assert_type(lab.live(), Live)
    assert_type(lab.player(view="partition"), Player)
    assert_type(lab.why(3), Why)
    assert_type(lab.export("failover.svg"), Path)
    assert_type(side_by_side(lab, lab), SideBySide)


def trace(lab: Lab) -> None:
    """A trace and its forms."""
    assert_type(lab.trace, Trace)
    records = lab.trace
    assert_type(records[0], Record)
    assert_type(records.text(), str)
    assert_type(records.kafka_log("state-change"), str)
    assert_type(records.player(), Player)


def decisions() -> None:
    """The pure functions and the tables."""
    assert_type(election.offline_leader([1], [1], [1], unclean=False), Election | None)
    assert_type(election.reassigned_leader([1], [1], [1]), Election | None)
    assert_type(election.preferred_leader([1], [1], [1]), Election | None)
    assert_type(election.controlled_shutdown_leader([1], [1], [1], [2]), Election | None)
    assert_type(assignment.assign([1, 2], 3, 2), dict[int, list[int]])
    assert_type(ReplicaAssignment((1, 2)).target, tuple[int, ...])
    assert_type(ReplicaAssignment((1, 2)).reassign_to((2, 3)), ReplicaAssignment)
    assert_type(PARTITION["2.0"], TransitionTable)
    assert_type(REPLICA["2.0"].previous("OnlineReplica"), tuple[str, ...])
