"""The lab on a real ZooKeeper: the same outcomes as in memory, and what only a real server can do to it."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labs import until_quiet
from prose import Prose
from waiting import eventually
from zookeepers import SHORT, kazoo_at, needed, started

from kafka_ctl import BadInput, ConditionNotMet, Lab, TopicPartition, Unavailable, UnknownName
from kafka_ctl.lab.view import ControllerView, PartitionView
from kafka_ctl.paths import ROOT
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.znodes import ControllerZNode

OpenLab = Callable[..., Lab]
server = pytest.fixture(scope="module")(started)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that say nothing here are short: of leaders with news of an ISR, of the lab for a server it killed."""
    monkeypatch.setattr("kafka_ctl.brokers.leader.PROPAGATION_CHECK", 0.1)
    monkeypatch.setattr("kafka_ctl.brokers.leader.PROPAGATION_QUIET", 0.2)
    monkeypatch.setattr("kafka_ctl.simulation.real_world.CERTAIN", 0.5)


@pytest.fixture(params=["memory", "real"])
def open_lab(request: pytest.FixtureRequest) -> Iterator[OpenLab]:
    """Opens labs in memory or below a chroot of a real server, and closes them after the test."""
    with contextlib.ExitStack() as opened:

        def opener(**options: object) -> Lab:
            options["config"] = {**SHORT, **options.get("config", {})}
            if request.param == "real":
                running: EmbeddedServer = request.getfixturevalue("server")
                options["zookeeper"] = f"{running.address}/{request.node.name.partition('[')[0]}"
            return opened.enter_context(Lab(**options))

        yield opener


def outcome(lab: Lab) -> dict[str, tuple[object, ...]]:
    """What a run comes to: who leads, who is in sync, the epochs; not who won a race."""
    return {
        f"{p.topic}-{p.partition}": (p.state, p.leader, p.isr, p.replicas, p.leader_epoch, p.zk_version)
        for p in lab.partitions()
    }


def bystander(lab: Lab) -> int:
    """A broker that is not the controller and leads something."""
    return next(id for id, b in lab.brokers.items() if not b.is_controller and b.leads)


# The same suite in both worlds.


def test_brokers_register_and_one_becomes_controller(open_lab: OpenLab) -> None:
    """After opening, every broker is in ZooKeeper, runs, and knows the others."""
    lab = open_lab(brokers={1: "a", 2: "b", 5: "a"})
    assert lab.controller.epoch == 1
    znodes = lab.znodes()
    assert json.loads(znodes["/controller"][0])["brokerid"] == lab.controller.id
    assert [p for p in znodes if p.startswith("/brokers/ids/")] == [f"/brokers/ids/{b}" for b in (1, 2, 5)]
    assert {b.state for b in lab.brokers.values()} == {"running"}
    assert {b.live_brokers for b in lab.brokers.values()} == {(1, 2, 5)}


def test_a_topic_gets_leaders(open_lab: OpenLab) -> None:
    """The first replica leads, all are in sync, every broker was told."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1]} | {2: [3, 1, 2]})
    assert outcome(lab) == {
        "orders-0": ("OnlinePartition", 1, (1, 2, 3), (1, 2, 3), 0, 0),
        "orders-1": ("OnlinePartition", 2, (2, 3, 1), (2, 3, 1), 0, 0),
        "orders-2": ("OnlinePartition", 3, (3, 1, 2), (3, 1, 2), 0, 0),
    }
    for id, broker in lab.brokers.items():
        assert broker.leads == (TopicPartition("orders", id - 1),)
        assert len(broker.metadata) == 3
    assert {r.state for r in lab.replicas()} == {"OnlineReplica"}


def test_partitions_are_added(open_lab: OpenLab) -> None:
    """More partitions appear; the old ones stay as they were."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    until_quiet(lab.add_partitions, "orders", 3)
    assert [(p.partition, p.state, len(p.isr)) for p in lab.partitions()] == [
        (n, "OnlinePartition", 2) for n in range(3)
    ]
    assert lab.partition("orders", 0).leader_epoch == 0


def test_a_broker_fails_and_returns(open_lab: OpenLab) -> None:
    """Its partition gets the next leader and a smaller ISR; when it returns it joins at the end."""
    lab = open_lab()
    controller = lab.controller.id
    dead, *others = [b for b in (1, 2, 3) if b != controller] + [controller]
    until_quiet(
        lab.create_topic, "orders", assignment={0: [dead, *others], 1: [others[0], dead]} | {1: [*others, dead]}
    )
    until_quiet(lab.kill, dead)
    assert lab.brokers[dead].state == "down"
    assert outcome(lab) == {
        "orders-0": ("OnlinePartition", others[0], tuple(others), (dead, *others), 1, 1),
        "orders-1": ("OnlinePartition", others[0], tuple(others), (*others, dead), 1, 1),
    }
    assert {r.broker for r in lab.replicas() if r.state == "OfflineReplica"} == {dead}
    until_quiet(lab.start, dead)
    assert [p.isr for p in lab.partitions()] == [(*others, dead)] * 2
    assert [p.leader for p in lab.partitions()] == [others[0]] * 2


def test_the_controller_fails(open_lab: OpenLab) -> None:
    """Another broker takes over with the next epoch, and repairs what the dead one led."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=6, replication_factor=3)
    before = lab.controller
    until_quiet(lab.kill, before.id)
    after = lab.controller
    assert after is not None and after.id != before.id and after.epoch == 2
    for p in lab.partitions():
        assert p.state == "OnlinePartition" and p.leader != before.id and before.id not in p.isr
        moved = p.replicas[0] == before.id
        assert (p.leader_epoch, p.controller_epoch) == ((1, 2) if moved else (0, 1))


def test_a_broker_leaves_in_good_order(open_lab: OpenLab) -> None:
    """A controlled shutdown succeeds at the first attempt and leaves no partition without a leader."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=6, replication_factor=3)
    leaving, before = bystander(lab), len(lab.trace)
    assert lab.shutdown(leaving) == (1, (), None)
    lab.settle()
    assert lab.brokers[leaving].state == "down"
    for p in lab.partitions():
        assert p.state == "OnlinePartition" and p.leader != leaving and leaving not in p.isr
        assert p.leader_epoch == 1
    assert not lab.trace.slice(start=before, kind="partition", target="OfflinePartition")


def test_the_controller_leaves_in_good_order(open_lab: OpenLab) -> None:
    """It moves its own leaderships away, then another broker becomes controller."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=3)
    before = lab.controller
    assert lab.shutdown(before.id) == (1, (), None)
    lab.settle()
    after = lab.controller
    assert after is not None and after.id != before.id and after.epoch == 2
    assert all(before.id not in p.isr for p in lab.partitions())


def test_a_partition_with_one_replica_waits_for_it(open_lab: OpenLab) -> None:
    """Nobody else may lead; the last ISR member stays in ZooKeeper and leads again when it returns."""
    lab = open_lab()
    controller = lab.controller.id
    alone = next(b for b in (1, 2, 3) if b != controller)
    until_quiet(lab.create_topic, "lonely", assignment={0: [alone]})
    until_quiet(lab.kill, alone)
    assert outcome(lab) == {"lonely-0": ("OfflinePartition", -1, (alone,), (alone,), 1, 1)}
    until_quiet(lab.start, alone)
    assert outcome(lab) == {"lonely-0": ("OnlinePartition", alone, (alone,), (alone,), 2, 2)}


def test_the_controllers_session_expires(open_lab: OpenLab) -> None:
    """The old controller resigns and registers again; somebody, perhaps the same, has the next epoch."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=3)
    before = lab.controller
    until_quiet(lab.expire_session, before.id)
    after = lab.controller
    assert after is not None and after.epoch == 2
    assert sorted(b.id for b in lab.brokers.values() if b.state == "running") == [1, 2, 3]
    assert sum(b.is_controller for b in lab.brokers.values()) == 1
    assert {p.state for p in lab.partitions()} == {"OnlinePartition"}
    assert len(lab.trace.slice(kind="controller", action="resigned", broker=before.id)) >= 1


def test_a_brokers_session_expires(open_lab: OpenLab) -> None:
    """To the controller it died and came back: leadership moves, it joins the ISR again."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=3)
    gone = bystander(lab)
    until_quiet(lab.expire_session, gone)
    assert lab.brokers[gone].state == "running"
    assert {p.state for p in lab.partitions()} == {"OnlinePartition"}
    assert all(sorted(p.isr) == [1, 2, 3] for p in lab.partitions())
    assert lab.controller.epoch == 1


def test_an_id_from_zookeeper(open_lab: OpenLab) -> None:
    """Whoever has none gets the next number, also later."""
    lab = open_lab(brokers=[1, None])
    until_quiet(lab.add_broker)
    assert list(lab.brokers) == [1, 1001, 1002]
    assert lab.znodes()["/brokers/seqid"][1] == 2


def test_a_broker_bounces(open_lab: OpenLab) -> None:
    """After a quick restart everything is led and in sync."""
    lab = open_lab()
    until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=3)
    until_quiet(lab.bounce, bystander(lab))
    assert {p.state for p in lab.partitions()} == {"OnlinePartition"}
    assert {b.state for b in lab.brokers.values()} == {"running"}


def test_the_controller_znode_is_deleted(open_lab: OpenLab) -> None:
    """All compete again."""
    lab = open_lab()
    until_quiet(lab.delete_controller)
    assert lab.controller.epoch == 2


def test_the_epoch_is_read_and_only_the_first_election_creates_it(open_lab: OpenLab) -> None:
    """In 2.4 each election reads the epoch, and raises it in the transaction that creates `/controller`.

    Kafka 2.4.1: zk/KafkaZkClient.scala, registerControllerAndIncrementControllerEpoch
    """
    lab = open_lab(generation="2.4", brokers=1)
    election, since = {"kind": "zk", "actor": "broker-1", "path": {"/controller_epoch", "/controller"}}, 0
    raised = [("create", "/controller", None), ("set", "/controller_epoch", None)]
    missing, created = ("get", "/controller_epoch", "NONODE"), ("create", "/controller_epoch", None)
    for expected in ([missing, created, *raised], [("get", "/controller_epoch", None), *raised]):
        records = [(r.action, r.path, r.error) for r in lab.trace.slice(since, **election)]
        first = next(n for n, (_, path, _) in enumerate(records) if path == "/controller_epoch")
        assert records[first : first + len(expected)] == expected
        since = len(lab.trace)
        until_quiet(lab.delete_controller)
    assert lab.controller is not None and lab.controller.epoch == 3


def test_a_controller_written_by_hand_does_not_act(generation: str, open_lab: OpenLab) -> None:
    """Whoever is only named has won no race and has no epoch; the one that had resigns."""
    lab = open_lab(generation=generation, brokers=2)
    before = lab.controller
    for named in (3 - before.id, before.id, 9):
        until_quiet(lab.write_znode, "/controller", ControllerZNode.encode(named, 0).decode())
        assert lab.controller is None
        assert f"/controller names broker {named}" in repr(lab)
        assert [id for id, broker in lab.brokers.items() if broker.is_controller] == []
    until_quiet(lab.create_topic, "orders")
    assert lab.partition("orders", 0).leader == -1
    until_quiet(lab.delete_controller)
    assert lab.controller is not None and lab.controller.epoch == 2
    assert lab.partition("orders", 0).leader != -1
    assert f"controller {lab.controller.id} epoch 2," in repr(lab)


def test_no_epoch_is_reported_before_there_is_one(open_lab: OpenLab) -> None:
    """While a broker takes over, `/controller` names it already."""
    lab = open_lab(settle=False)
    seen: set[ControllerView | None] = set()

    def elected(epoch: int) -> bool:
        view = lab.controller
        seen.add(view)
        return view is not None and view.epoch == epoch

    lab.run_until(lambda: elected(1))
    lab.settle()
    lab.delete_controller()
    lab.run_until(lambda: elected(2))
    assert {view.epoch for view in seen if view is not None} == {1, 2}


def test_everybody_dies_and_somebody_returns(open_lab: OpenLab) -> None:
    """Without brokers the lab settles; the first to return leads what it may."""
    lab = open_lab(brokers=2)
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2], 1: [2]} | {1: [2, 1]})
    for broker in (1, 2):
        lab.kill(broker)
    lab.settle()
    assert lab.controller is None and "/controller" not in lab.znodes()
    until_quiet(lab.start, 2)
    assert lab.controller is not None
    assert [(p.state, p.leader) for p in lab.partitions()] == [("OnlinePartition", 2)] * 2


def test_run_until_looks_at_the_lab(open_lab: OpenLab) -> None:
    """The condition may ask for anything, while the brokers are at work."""
    lab = open_lab(settle=False)
    lab.run_until(lambda lab: lab.controller is not None and len(lab.brokers[1].live_brokers) == 3)
    lab.create_topic("orders", partitions=2, replication_factor=2)

    def online(lab: Lab) -> bool:
        found: list[PartitionView] = lab.partitions()
        return len(found) == 2 and {p.state for p in found} == {"OnlinePartition"}

    lab.run_until(online)
    assert online(lab)


def test_wrong_calls_are_refused(prose: Prose, open_lab: OpenLab) -> None:
    """The same clear errors in both worlds."""
    lab = open_lab()
    with pytest.raises(UnknownName, match=r"unknown broker 9; known: 1, 2, 3"):
        lab.kill(9)
    prose.refuses(BadInput, lab.start, 1)
    lab.create_topic("orders")
    with pytest.raises(BadInput, match="Topic 'orders' already exists"):
        lab.create_topic("orders")


def test_a_run_tells_the_same_story(open_lab: OpenLab) -> None:
    """Its commands are remembered as text."""
    lab = open_lab(seed=4)
    until_quiet(lab.create_topic, "orders", partitions=2)
    assert lab.story.splitlines()[1:] == ["create_topic orders partitions=2", "settle"]


# Only with a real server.


def threads() -> set[threading.Thread]:
    """Threads that live now: what an earlier test left may still be ending, so only new ones count."""
    return set(threading.enumerate())


def test_the_lab_stays_in_its_chroot(server: EmbeddedServer) -> None:
    """It leaves what was there, inside its chroot and outside, and takes away all that it made."""
    with kazoo_at(server.address) as outside:
        outside.create("/somebody/kit/notes", b"kept", makepath=True)
        outside.create("/brokers/topics/theirs", b"not json", makepath=True)
        before = {p: outside.get(p)[0] for p in ("/somebody/kit/notes", "/brokers/topics/theirs")}
        with Lab(zookeeper=f"{server.address}/somebody/kit", config=SHORT, join=True) as lab:
            until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=2)
            assert lab.zookeeper_address == f"{server.address}/somebody/kit"
            assert json.loads(outside.get("/somebody/kit/brokers/topics/orders")[0])["version"] == 1
            assert not outside.exists("/brokers/ids")
        assert {p: outside.get(p)[0] for p in before} == before
        assert outside.get_children("/somebody/kit") == ["notes"]
        assert outside.get_children("/brokers") == ["topics"]
        for path in ("/somebody", "/brokers"):
            outside.delete(path, recursive=True)


def test_an_outside_client_finds_kafkas_json() -> None:
    """What the embedded server holds is what Kafka would have written."""
    needed()
    with Lab(zookeeper="embedded", config=SHORT) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]}, config={"retention.ms": 1000})
        with kazoo_at(lab.zookeeper_address) as outside:

            def read(path: str) -> object:
                return json.loads(outside.get(path)[0])

            assert outside.get("/controller_epoch")[0] == b"1"
            controller, state = read("/controller"), outside.get("/controller")[1]
            assert isinstance(controller, dict) and state.ephemeralOwner
            assert (controller["version"], controller["brokerid"]) == (1, lab.controller.id)
            assert read("/brokers/topics/orders") == {"version": 1, "partitions": {"0": [1, 2]}}
            assert read("/brokers/topics/orders/partitions/0/state") == {
                "controller_epoch": 1,
                "leader": 1,
                "version": 1,
                "leader_epoch": 0,
                "isr": [1, 2],
            }
            assert read("/config/topics/orders") == {"version": 1, "config": {"retention.ms": "1000"}}
            broker = read("/brokers/ids/3")
            assert isinstance(broker, dict) and broker["endpoints"] == ["PLAINTEXT://127.0.0.1:9095"]


def test_a_killed_server_is_reported_and_its_return_noticed(prose: Prose) -> None:
    """Calls fail with the cure while it is gone; with its data back, the lab goes on where it was."""
    needed()
    with Lab(zookeeper="embedded") as lab:  # the usual session timeout: no session is to end here
        until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=3)
        before, server = lab.partitions(), lab.zookeeper_server
        server.kill()
        for call in (lab.znodes, lab.settle, lambda: lab.create_topic("late")):
            prose.refuses(Unavailable, call)
        assert "ZooKeeper does not answer" in repr(lab)
        server.restart()
        lab.settle()
        assert lab.controller is not None
        assert [(p.replicas, sorted(p.isr), p.state) for p in lab.partitions() if p.topic == "orders"] == [
            (p.replicas, [1, 2, 3], "OnlinePartition") for p in before
        ]
        until_quiet(lab.create_topic, "later", partitions=1, replication_factor=3)
        assert lab.partition("later", 0).state == "OnlinePartition"


def test_a_broker_started_without_a_server_is_down_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot start, says so, and may be started once more when the server is back."""
    needed()
    monkeypatch.setattr("kafka_ctl.simulation.real_world.CERTAIN", 60)
    monkeypatch.setattr("kafka_ctl.zookeeper.real.store.CONNECT_SECONDS", 1)
    with Lab(zookeeper="embedded", config=SHORT, brokers=2) as lab:
        server = lab.zookeeper_server
        until_quiet(lab.kill, 2)
        server.kill()
        lab.start(2)
        with pytest.raises(Unavailable, match="does not answer"):
            lab.settle()
        assert lab.brokers[2].state == "down"
        monkeypatch.undo()
        server.restart()
        until_quiet(lab.start, 2)
        assert {b.state for b in lab.brokers.values()} == {"running"}


def test_somebodys_server_that_returns_is_waited_for() -> None:
    """The lab cannot know whether it is gone for good, as it does of a server of its own."""
    needed()
    with EmbeddedServer() as theirs, Lab(zookeeper=f"{theirs.address}/kit", config=SHORT, brokers=2) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=2)
        theirs.kill()
        returned = threading.Timer(2.0, theirs.restart)
        returned.start()
        lab.settle()
        returned.join()
        assert {p.state for p in lab.partitions()} == {"OnlinePartition"}


GARBAGE = {
    "/controller_epoch": b"junk",
    "/controller": b"{}",
    "/brokers/ids/1": b"junk",
    "/brokers/ids/one": b"",
    "/brokers/topics/t": b'{"partitions":7}',
    "/brokers/topics/t/partitions/0/state": b"{}",
}
"""Znodes that somebody left."""


@pytest.mark.parametrize("path", GARBAGE)
def test_data_that_a_controller_cannot_use_is_refused_at_once(prose: Prose, path: str, server: EmbeddedServer) -> None:
    """No broker starts where no controller could work; the error names the znode, and what belongs there."""
    with kazoo_at(server.address) as outside:
        outside.create(f"/garbage{path}", GARBAGE[path], makepath=True)
        try:
            prose.refuses(BadInput, Lab, zookeeper=f"{server.address}/garbage", config=SHORT, join=True)
        finally:
            outside.delete("/garbage", recursive=True)


def test_garbage_that_comes_later_is_named_too(prose: Prose, server: EmbeddedServer) -> None:
    """The brokers go on electing, in vain; `settle` says why it need not wait for them.

    They may also stop: who hears of a new `/controller` only when it has gone again does not compete (as in Kafka).
    """
    with Lab(zookeeper=f"{server.address}/later", config=SHORT, brokers=2) as lab:
        lab.write_znode("/controller_epoch", "junk")
        lab.delete_controller()
        prose.refuses(ConditionNotMet, lab.settle)
        lab.write_znode("/controller_epoch", "7")
        until_quiet(lab.bounce, 1)
        assert lab.controller is not None and lab.controller.epoch > 7


def test_nothing_stays_behind() -> None:
    """After closing there is no thread, no process and no folder, also with the server dead or a broker down."""
    needed()
    before = threads()
    for how in ("alive", "dead"):
        lab = Lab(zookeeper="embedded", config=SHORT)
        server = lab.zookeeper_server
        folder = server.folder
        lab.kill(1)
        if how == "dead":
            server.kill()
        lab.close()
        lab.close()
        assert eventually(lambda: threads() <= before), threads() - before
        assert not server.running if server.folder else True
        assert folder is not None and not folder.exists()


def test_a_failed_opening_leaves_nothing(prose: Prose, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong is one clear error, without a thread or znode left."""
    monkeypatch.setattr("kafka_ctl.zookeeper.real.store.CONNECT_SECONDS", 2)
    before = threads()
    for address, error, logged in (
        ("127.0.0.1:1/kit", Unavailable, "127.0.0.1:1 does not answer; start one with `kafka-ctl zookeeper`"),
        ("nonsense", BadInput, "ZooKeeper address 'nonsense' cannot be read; write host:port"),
        ("127.0.0.1:99999", BadInput, "cannot be read"),
    ):
        with pytest.raises(error, match=logged):
            Lab(zookeeper=address)
    prose.refuses(BadInput, Lab, zookeeper=server.address, config={"zookeeper.session.timeout.ms": 10})
    assert eventually(lambda: threads() <= before), threads() - before


def test_an_exception_while_opening_closes_everything(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that had started already are stopped, and their znodes go."""
    before = threads()

    def interrupted(self: object, limit: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_ctl.simulation.real_world.RealWorld.settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Lab(zookeeper=f"{server.address}/interrupted", config=SHORT)
    assert eventually(lambda: threads() <= before), threads() - before
    with kazoo_at(server.address) as outside:
        assert not outside.exists("/interrupted")


def test_two_labs_cannot_share_a_chroot(prose: Prose, server: EmbeddedServer) -> None:
    """Brokers of another lab are not disturbed."""
    with Lab(zookeeper=f"{server.address}/shared", config=SHORT, brokers=1) as first:
        prose.refuses(BadInput, Lab, zookeeper=f"{server.address}/shared", config=SHORT, brokers=1)
        assert first.controller == (1, 1)
        with Lab(zookeeper=f"{server.address}/other", config=SHORT, brokers=1) as second:
            assert second.controller == (1, 1)


def test_a_lab_works_inside_a_running_loop(server: EmbeddedServer) -> None:
    """As in a notebook, whose own event loop is running."""

    async def cell() -> object:
        with Lab(zookeeper=f"{server.address}/notebook", config=SHORT) as lab:
            until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=2)
            return [p.state for p in lab.partitions()]

    assert asyncio.run(cell()) == ["OnlinePartition"] * 2


def test_a_killed_program_leaves_no_server() -> None:
    """kill -9 of a program with an embedded server: the server ends with it."""
    needed()
    code = (
        "import os, signal\n"
        "from kafka_ctl import Lab\n"
        "lab = Lab(zookeeper='embedded', brokers=1)\n"
        "print(lab.zookeeper_address, lab.zookeeper_server.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    reported = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    address, folder = reported.stdout.split()

    def unreachable() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 1).close()
            return False
        return True

    assert eventually(unreachable)
    assert eventually(lambda: not Path(folder).exists())


def test_a_closed_lab_says_so(prose: Prose, server: EmbeddedServer) -> None:
    """Looking at it or commanding it is refused; its trace stays."""
    with Lab(zookeeper=f"{server.address}/closed", config=SHORT, brokers=1) as lab:
        pass
    assert len(lab.trace) > 50
    for call in (lab.settle, lab.partitions, lambda: lab.brokers):
        prose.refuses(BadInput, call)
