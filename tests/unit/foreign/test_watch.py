"""A watch of a cluster that a lab plays: what it shows and records is what happened, and it writes nothing."""

from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from foreign import read, watched
from labs import by_hand, play, until_quiet
from prose import Prose, refuses

from kafka_ctl import BadInput, Lab, Trace, Unavailable
from kafka_ctl.cli.commands import app
from kafka_ctl.foreign import watch as module
from kafka_ctl.foreign.read_only import ReadOnlySession
from kafka_ctl.foreign.watch import OFFLINE
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.zookeeper.store import Create, Delete, Exists, Multi, Op, Set

STATE = "/brokers/topics/orders/partitions/0/state"


def played(generation: str = "2.4", **options: object) -> Lab:
    """A cluster with three brokers and a topic."""
    lab = Lab(brokers=3, generation=generation, seed=1, **options)
    play(lab, "create_topic orders partitions=6 replication_factor=3; settle")
    return lab


def elections(trace: Trace) -> set[tuple[object, ...]]:
    """The leaders that came of elections, in a lab's own trace or a watched one; not where the leader stayed."""
    led = {}
    found = set()
    for r in trace.slice(kind="partition", error=None):
        if r.leader is not None and r.leader >= 0:
            if r.action == "elect" and led.get(r.tp) != r.leader:
                found.add((r.tp, r.leader, r.isr, r.leader_epoch, r.controller_epoch))
            led[r.tp] = r.leader
    return found


def test_what_is_inferred_is_what_happened(generation: str) -> None:
    """A failover, a return, a controlled shutdown, a preferred election: the lab's own trace has the same elections."""
    with played(generation) as lab, watched(lab) as watch:
        earlier = elections(lab.trace)
        first = lab.controller.id
        until_quiet(lab.kill, first)
        until_quiet(lab.start, first)
        until_quiet(lab.shutdown, lab.controller.id)
        until_quiet(lab.elect_preferred)
        watch.settle()
        seen = watch.trace[watch.opened :]
        assert elections(watch.trace) == elections(lab.trace) - earlier
        offices = [(r.broker, r.controller_epoch) for r in seen.slice(kind="controller", action="elected")]
        assert offices[-1] == (lab.controller.id, lab.controller.epoch)
        assert next(r.broker for r in seen.slice(kind="broker", action={"lost", "controlled-shutdown"})) == first
        assert seen.slice(kind="broker", action="controlled-shutdown")
        assert not seen.slice(action="gap")


def test_a_broker_that_crashed_had_no_controlled_shutdown() -> None:
    """It is in no ISR when it goes: as it has only just come back, or as its leaders took it out before."""
    with Lab(brokers=3, generation="2.0", seed=1, config={"zookeeper.session.timeout.ms": 40_000}) as lab:
        until_quiet(lab.create_topic, "o", assignment={0: [1, 3], 1: [2, 3]})
        with watched(lab) as watch:
            play(lab, "kill 3; run_for 60")
            watch.settle()
            assert watch.trace.slice(action="shrink-isr")
            lab.start(3)
            while not watch.trace.slice(start=watch.opened, action="registered"):
                lab.run_for(0.001)
            assert watch.summary.under_replicated == 2
            play(lab, "kill 3; run_for 60")
            watch.settle()
            went = watch.trace.slice(kind="broker", action={"lost", "controlled-shutdown"})
            assert [r.action for r in went] == ["lost", "lost"]


def test_the_picture_and_the_tables_are_those_of_the_cluster() -> None:
    """The model that is folded from the records, and the rows, have what the znodes have."""
    with played() as lab, watched(lab) as watch:
        play(lab, "kill 2; settle; create_topic more partitions=2 replication_factor=2; settle")
        until_quiet(lab.delete_topic, "more")
        watch.settle()
        rows = {(p.topic, p.partition): (p.leader, p.isr, p.replicas, p.zk_version) for p in lab.partitions()}
        assert {r[:2]: (r.leader, r.isr, r.replicas, r.zk_version) for r in watch.partitions()} == rows
        model = ClusterModel().apply_all(watch.trace)
        assert {k: (p.leader, p.isr) for k, p in model.partitions.items() if p.stored} == {
            key: row[:2] for key, row in rows.items()
        }
        assert (model.controller, model.controller_epoch) == lab.controller
        assert watch.controller[:2] == lab.controller
        assert sorted(watch.brokers) == [1, 3] == sorted(b for b, seen in model.brokers.items() if seen.registered)
        assert watch.summary.under_replicated == 6
        assert watch.live().live_film.frames[-1]["seqs"]


def test_facts_and_causes_differ_by_kind() -> None:
    """Every record that is not one of ZooKeeper's names the one that it is inferred from."""
    with played() as lab, watched(lab) as watch:
        until_quiet(lab.kill, lab.controller.id)
        watch.settle()
        for record in watch.trace[watch.opened :]:
            if record.kind in ("zk", "watch"):
                assert record.cause is None
            else:
                assert watch.trace[record.cause].kind == "zk"


def test_an_id_that_is_no_number_is_no_broker() -> None:
    """Nor are the other znodes of its session those of broker 0."""
    with played() as lab:
        by_hand(lab, Create("/brokers/ids/foo", b"{}", ephemeral=True), Create("/mine", b"", ephemeral=True))
        with watched(lab) as watch:
            assert 0 not in watch.brokers
            assert {r.actor for r in watch.trace.slice(kind="zk") if "foo" in (r.path or "")} <= {"zookeeper"}


def test_nothing_is_written() -> None:
    """The lab's ZooKeeper has recorded what the watcher's session did: reads, and its end."""
    with played() as lab:
        with watched(lab) as watch:
            until_quiet(lab.kill, 2)
            watch.settle()
        done = {
            r.action for r in lab.trace.slice(kind="zk") if "watcher" in (r.actor, (r.detail or "").rpartition(" ")[2])
        }
        assert done == {"connect", "get", "exists", "children", "closed"}


@pytest.mark.parametrize("op", [Create("/x"), Set("/x", b""), Delete("/x"), Multi((Create("/x"),))])
def test_a_session_of_a_watch_refuses_writes(op: Op) -> None:
    """Nothing is sent, not even the reads beside the write."""
    with played() as lab:
        sent: list[object] = []

        class Session:
            id, actor = 1, "watcher"
            send = sent.append

        with pytest.raises(BadInput, match="only read"):
            lab.world.run(ReadOnlySession(Session()).send([Exists("/"), op]))  # type: ignore[arg-type]
        assert sent == []


@pytest.mark.parametrize("seconds", [3.0, 300.0])
def test_no_change_is_missed_silently(seconds: float) -> None:
    """After a lost connection all is known again; when the session has expired as well, the trace has a gap."""
    with played() as lab, watched(lab, seconds) as watch:
        lab.world.store.cut_off("watcher", False, False)
        play(lab, "create_topic new partitions=1 replication_factor=1; kill 3; run_for 10")
        lab.world.store.cut_off("watcher", True, True)
        lab.run_for(5)
        watch.settle()
        assert {path: node.data for path, node in watch.cluster.znodes.items()} == {
            path: node.data for path, node in read(lab).znodes.items()
        }
        noted = [r.action for r in watch.trace.slice(actor="watcher")]
        assert noted[1] == "disconnected"
        assert ("gap" in noted) == (seconds < 100)


def test_versions_that_nobody_saw_are_a_gap() -> None:
    """Two writes in one transaction fire one watch; the record says that a change was not seen."""
    with played() as lab, watched(lab) as watch:
        data = lab.znodes()[STATE][0]
        by_hand(lab, Multi((Set(STATE, data), Set(STATE, data))))  # type: ignore[arg-type]
        watch.settle()
        (gap,) = watch.trace.slice(action="gap")
        assert (gap.path, gap.detail) == (STATE, "changes=1")


@pytest.mark.parametrize(
    ("ops", "gap", "facts"),
    [
        ((Create("/config/topics/x", b"{}"), Set("/config/topics/x", b"{}")), ("/config/topics/x", "changes=1"), 1),
        ((Create("/feature"), Delete("/feature")), ("/feature", "changes=1"), 0),
        ((Create("/brokers/ids/9"), Delete("/brokers/ids/9")), ("/brokers/ids", "changes=2"), 0),
        ((Delete("/config/topics/orders"), Create("/config/topics/orders", b"{}")), None, 2),
    ],
)
def test_what_came_before_it_was_read_is_a_gap(ops: tuple[Op, ...], gap: tuple[str, str] | None, facts: int) -> None:
    """A znode that was written before it was read, or that is gone by then; one that was made again was seen."""
    with played() as lab, watched(lab) as watch:
        by_hand(lab, Multi(ops))  # type: ignore[arg-type]
        watch.settle()
        seen = watch.trace[watch.opened :]
        assert [(r.path, r.detail) for r in seen.slice(action="gap")] == ([gap] if gap else [])
        assert len(seen.slice(kind="zk")) == len(seen) - bool(gap) == facts


def test_risks_and_requests_that_wait() -> None:
    """Below the minimum, one left, offline; a deletion and a reassignment that wait for a dead broker."""
    with Lab(brokers=4, generation="2.4", seed=1) as lab:
        lab.create_topic("a", assignment={0: [1, 2], 1: [3, 2]}, config={"min.insync.replicas": 2})
        lab.create_topic("b", assignment={0: [2], 1: [4]})
        lab.create_topic("c", assignment={0: [1, 2]})
        until_quiet(lab.create_topic, "d", assignment={0: [2]})
        with watched(lab) as watch:
            until_quiet(lab.kill, 2)
            watch.settle()
            risks = {(row.topic, row.partition): row.risk for row in watch.partitions(at_risk=True)}
            assert risks["b", 0] == risks["d", 0] == OFFLINE
            before = watch.summary
            until_quiet(lab.delete_topic, "b")
            watch.settle()
            after = watch.summary
            assert (before.offline, before.preferred_imbalance) == (2, 2)
            assert (after.offline, after.preferred_imbalance) == (1, 1)
            assert after.under_replicated == before.under_replicated
            risks = {(row.topic, row.partition): row.risk for row in watch.partitions(at_risk=True)}
            assert ("b", 0) not in risks and risks["d", 0] == OFFLINE
            assert risks["a", 0].startswith("1 in sync")
            assert risks["c", 0].startswith("one in-sync")
            by_hand(lab, Set("/config/topics/c", b'{"version":1,"config":{"min.insync.replicas":" 2 "}}'))
            watch.settle()
            risks = {(row.topic, row.partition): row.risk for row in watch.partitions(at_risk=True)}
            assert risks["c", 0].startswith("1 in sync")  # Kafka 2.4.1: common/config/ConfigDef.java, parseType
            assert watch.summary.at_risk == len(risks)
            (waits,) = watch.stuck()
            assert "broker 2" in waits


def test_a_controller_that_nobody_elected_is_doubted() -> None:
    """The session behind `/controller` tells whether it is that of the broker that it names."""
    with played() as lab, watched(lab) as watch:
        by_hand(lab, Set("/controller", b'{"version":1,"brokerid":%d}' % (lab.controller.id % 3 + 1)))
        watch.settle()
        assert "session" in watch.controller.doubt


def test_a_lost_connection_is_named() -> None:
    """What was read before is still shown."""
    with played() as lab, watched(lab, seconds=5) as watch:
        assert "connection lost" not in repr(watch)
        lab.world.store.cut_off("watcher", False, False)
        lab.run_until(lambda _: watch.lost, limit=30)
        assert "zk:2181/kafka, connection lost: " in repr(watch)
        assert watch.summary.partitions == 6


def test_a_watch_that_is_closed_keeps_its_trace() -> None:
    with played() as lab:
        watch = watched(lab)
        watch.close()
        watch.close()
        assert len(watch.trace) == watch.opened > 0
        assert watch.summary.partitions == 6
        refuses(BadInput, "closed", watch.settle)


@pytest.mark.parametrize("failed", [None, Unavailable("no answer")])
def test_the_command_writes_the_trace_whatever_ends_the_watch(
    failed: Unavailable | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that cannot be written is an error at once; an error that ends the watch comes after table and file."""
    with played() as lab, watched(lab) as watch:
        monkeypatch.setattr(module, "watch", lambda *_: watch)
        watch.failed = failed
        with pytest.raises(BadInput, match="no/such"):
            app.main(["watch", "zk:2181", "--out", str(tmp_path / "no/such")], standalone_mode=False)
        arguments = ["watch", "zk:2181", "--seconds", "0" if failed is None else "60", "--out", str(tmp_path / "night")]
        with nullcontext() if failed is None else pytest.raises(Unavailable, match="no answer"):
            app.main(arguments, standalone_mode=False)
        assert pq.read_table(tmp_path / "night").num_rows == len(watch.trace)
        out = capsys.readouterr().out
        assert out.count("under-replicated") == 1 and " 0 records since " in out


def test_without_a_terminal_a_watch_has_an_end_or_a_file(prose: Prose) -> None:
    """Said before anything is connected to; nothing would be printed until Ctrl-C."""
    prose.refuses(BadInput, app.main, ["watch", "127.0.0.1:1"], standalone_mode=False)


def test_the_status_of_a_look_is_red_if_a_partition_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table does not count a partition whose state is not understood; settings do not matter."""
    with played() as lab, watched(lab) as watch:
        monkeypatch.setattr(module, "watch", lambda *_: watch)
        watch.cluster.problems["/config/brokers"] = "cannot be read"
        assert app.main(["watch", "zk:2181", "--once"], standalone_mode=False) == 0
        watch.cluster.problems[STATE] = "cannot be read"
        assert app.main(["watch", "zk:2181", "--once"], standalone_mode=False) == 1


@pytest.mark.parametrize(
    ("path", "data", "waits"),
    [
        (
            "/admin/reassign_partitions",
            b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1,9]}]}',
            "the reassignment of orders-0 to 1,9 waits: broker 9 is not registered",
        ),
        (
            "/admin/reassign_partitions",
            b'{"partitions":[{"topic":"orders","partition":77,"replicas":[1]}]}',
            "the reassignment of orders-77 to 1 waits: there is no such partition",
        ),
        (
            "/admin/preferred_replica_election",
            b'{"partitions":[{"topic":"orders","partition":0}]}',
            "the preferred election of 1 partitions waits: there is no controller",
        ),
        ("/admin/delete_topics/orders", b"", "the deletion of orders waits: there is no controller"),
    ],
)
def test_a_request_that_waits_is_reported_with_its_reason(path: str, data: bytes, waits: str) -> None:
    """A target that is down, a partition that does not exist, no controller."""
    with played() as lab:
        cluster = read(lab)
        node = cluster.znodes["/controller_epoch"]
        cluster.take(path, node._replace(data=data))
        if "controller" in waits:
            cluster.take("/controller", None)
        assert cluster.stuck() == [waits]


def test_the_controller_is_reported_with_the_time_of_its_election() -> None:
    """By the server's clock, that of the znode's creation; the zxid is the same as in ZooKeeper."""
    with played() as lab, watched(lab) as watch:
        until_quiet(lab.kill, lab.controller.id)
        watch.settle()
        stat = watch.cluster.znodes["/controller"].stat
        (made,) = watch.trace[watch.opened :].slice(action="create", kind="zk")
        assert (made.actor, made.path) == (f"controller-{lab.controller.id}", "/controller")
        assert (watch.controller.since_ms, watch.controller.czxid) == (stat.ctime, stat.czxid)
        assert watch.controller.since_ms > 0
