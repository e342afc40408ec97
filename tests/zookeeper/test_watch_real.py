"""A watch, and a lab that begins as a cluster, on a real ZooKeeper: what they show, and that they write nothing."""

import re
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl
from labs import until_quiet
from zookeepers import kazoo_at, started

import kafka_ctl
from kafka_ctl import BadInput, Lab, Unavailable
from kafka_ctl.cli.commands import status
from kafka_ctl.foreign.read_only import ReadOnlyStore
from kafka_ctl.foreign.watch import Watch
from kafka_ctl.simulation.clock import RealClock
from kafka_ctl.zookeeper.real.server import EmbeddedServer, four_letter_word
from kafka_ctl.zookeeper.real.store import BareStore

server = pytest.fixture(scope="module")(started)
SESSION = 2
"""Transactions of a session: it begins and ends."""
SHORT = {"zookeeper.session.timeout.ms": 3000}


def zxid(server: EmbeddedServer) -> int:
    """The number of transactions in the server's log so far."""
    found = re.search(r"Zxid: (0x[0-9a-f]+)", four_letter_word(server.port, "srvr"))
    return int(found[1], 16)


@pytest.fixture
def kazoo(server: EmbeddedServer) -> Iterator[KazooClient]:
    with kazoo_at(server.address) as client:
        yield client


def lay_out(kazoo: KazooClient, root: str) -> None:
    """The znodes of a cluster of two brokers, one of them with another rack."""
    ephemeral = ("/controller", "/brokers/ids/1", "/brokers/ids/2")
    for path, data in {
        "/controller": b'{"version":1,"brokerid":1,"timestamp":"1"}',
        "/controller_epoch": b"7",
        "/brokers/ids/1": b'{"version":4,"host":"h","port":9092,"rack":"a"}',
        "/brokers/ids/2": b'{"version":4,"host":"h","port":9093,"rack":"b"}',
        "/brokers/topics/t": b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}',
        "/brokers/topics/t/partitions/0/state": b'{"leader":1,"isr":[1,2],"leader_epoch":3,"controller_epoch":7}',
        "/config/topics/t": b'{"version":1,"config":{"min.insync.replicas":"2"}}',
        "/config/brokers/<default>": b'{"version":1,"config":{}}',
        "/admin/delete_topics": b"",
    }.items():
        kazoo.create(root + path, data, ephemeral=path in ephemeral, makepath=True)


def test_nothing_but_the_sessions_is_written(server: EmbeddedServer, kazoo: KazooClient) -> None:
    """ZooKeeper's log has the beginning and the end of each session, and no other transaction."""
    lay_out(kazoo, "/quiet")
    before = zxid(server)
    with kafka_ctl.watch(f"{server.address}/quiet") as watch:
        watch.settle()
        assert watch.summary.partitions == 1
    with Lab.from_zookeeper(f"{server.address}/quiet") as lab:
        assert (lab.partition("t", 0).leader_epoch, lab.brokers[2].rack) == (3, "b")
        assert lab.controller == (1, 7)
    found = kafka_ctl.drill(f"{server.address}/quiet", "any rack")
    assert {outcome.scenario.name: outcome.below_min_isr for outcome in found} == {"rack a dies": 1, "rack b dies": 1}
    assert "played by generation 2.4" in found.summary
    for wrong in (f"{server.address}/nothing", f"{server.address}"):
        with pytest.raises(Unavailable, match="/brokers/ids"):
            kafka_ctl.watch(wrong)
    assert zxid(server) - before == 5 * SESSION


def test_a_watch_keeps_current(server: EmbeddedServer) -> None:
    """A lab on the real ZooKeeper plays the cluster: a failover, a new topic."""
    with Lab(brokers=3, generation="2.4", zookeeper=f"{server.address}/current", config=SHORT) as lab:
        lab.create_topic("orders", partitions=4, replication_factor=3)
        lab.settle()
        with kafka_ctl.watch(f"{server.address}/current") as watch:
            until_quiet(lab.kill, lab.controller.id)
            until_quiet(lab.create_topic, "new", partitions=1, replication_factor=1)
            watch.settle()
            assert watch.controller[:2] == lab.controller
            rows = [(p.topic, p.partition, p.leader, p.isr, p.zk_version) for p in lab.partitions()]
            assert [(*r[:4], r.zk_version) for r in watch.partitions()] == rows
            elected = watch.trace[watch.opened :].slice(kind="controller", action="elected")
            assert [r.broker for r in elected] == [lab.controller.id]


def test_a_session_that_the_server_ends_is_a_gap(server: EmbeddedServer, kazoo: KazooClient) -> None:
    """The watch opens another one, reads everything again, and says for how long it saw nothing."""
    lay_out(kazoo, "/gap")
    clock = RealClock()
    store = BareStore(f"{server.address}/gap", clock)
    with Watch(ReadOnlyStore(store), clock, "gap") as watch:
        (session,) = store.sessions
        clock.call(lambda: store.expire(session))
        kazoo.set("/gap/controller_epoch", b"8")
        clock.wait(lambda: bool(watch.trace.slice(action="gap")), 60)
        watch.settle()
        assert watch.cluster.epoch == 8
        assert [r.action for r in watch.trace.slice(actor="watcher")][-3:] == ["expired", "connect", "gap"]


def test_missing_rights_and_addresses(server: EmbeddedServer, kazoo: KazooClient) -> None:
    """The znode and the right are named; what is not needed is only noted."""
    lay_out(kazoo, "/secured")
    kazoo.add_auth("digest", "kafka:secret")
    mine = [make_acl("auth", "", all=True)]
    kazoo.set_acls("/secured/config/brokers", mine)
    kazoo.set_acls("/secured/brokers/topics/t/partitions/0/state", mine)
    with kafka_ctl.watch(f"{server.address}/secured") as watch:
        assert [text.partition(" ")[0] for text in watch.problems] == [
            "/config/brokers",
            "/brokers/topics/t/partitions/0/state",
        ]
        assert watch.partitions() == []
    kazoo.set_acls("/secured/brokers/topics", mine)
    for refused in ({}, {"auth": ("digest", "kafka:wrong")}):
        with pytest.raises(Unavailable, match=r"/brokers/topics .*READ"):
            kafka_ctl.watch(f"{server.address}/secured", **refused)
        with pytest.raises(Unavailable, match=r"/brokers/topics .*READ"):
            Lab.from_zookeeper(f"{server.address}/secured", **refused)


def test_credentials_read_what_acls_protect(
    server: EmbeddedServer, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All sessions have them, also the next one after an expiry; no record and no message has the password."""
    lay_out(kazoo, "/protected")
    kazoo.add_auth("digest", "kafka:secret")
    for path in ("/brokers/topics", "/brokers/topics/t", "/config/brokers"):
        kazoo.set_acls(f"/protected{path}", [make_acl("auth", "", all=True)])
    address, auth = f"{server.address}/protected", ("digest", "kafka:secret")
    with Lab.from_zookeeper(address, auth=auth) as lab:
        assert lab.partition("t", 0).leader_epoch == 3
        assert "secret" not in lab.story
    clock = RealClock()
    store = BareStore(address, clock, (auth,))
    with Watch(ReadOnlyStore(store), clock, "protected") as watch:
        (session,) = store.sessions
        clock.call(lambda: store.expire(session))
        clock.wait(lambda: bool(watch.trace.slice(action="gap")), 60)
        watch.settle()
        assert (watch.problems, watch.summary.partitions) == ((), 1)
        assert not [record for record in watch.trace if "secret" in str(record)]
    assert status(["drill", address]) == 1
    assert "READ" in capsys.readouterr().err
    monkeypatch.setenv("KAFKA_CTL_AUTH", ":".join(auth))
    assert [status(["drill", address]), status(["watch", address, "--once"])] == [0, 0]
    assert "secret" not in "".join(capsys.readouterr())
    for wrong in (("digest", "secret"), ("sasl", "kafka:secret"), "digest:kafka:secret"):
        with pytest.raises(BadInput, match="digest") as refused:
            kafka_ctl.watch(address, auth=wrong)  # type: ignore[arg-type]
        assert "secret" not in str(refused.value)
    for nowhere in ("nowhere", "", 5, None):
        with pytest.raises(BadInput, match="address"):
            kafka_ctl.watch(nowhere)  # type: ignore[arg-type]
