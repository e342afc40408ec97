"""Who may live in a chroot of a real ZooKeeper: one lab at a time, where nothing is but what labs have made."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient
from kazoo.security import ACL, ANYONE_ID_UNSAFE, make_digest_acl
from labs import play, until_quiet
from prose import Prose, source
from tables import tabled
from waiting import eventually
from zookeepers import SHORT, kazoo_at, started

from kafka_ctl import BadInput, Lab
from kafka_ctl.cli.commands import app
from kafka_ctl.cluster import Broker, LeaderAndIsr, ReplicaAssignment
from kafka_ctl.paths import ROOT
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.real.chroot import LOCK
from kafka_ctl.zookeeper.real.server import CONFIG, EmbeddedServer

SETTINGS = SHORT | {"delete.topic.enable": True}
ID = "vQ0wAwXZSoWnW5yPVOWp2A"
server = pytest.fixture(scope="module")(started)


class Seen(NamedTuple):
    """All there is to know of a znode: also who made it and when, and how often its children have changed."""

    data: bytes
    stat: Any
    acls: Any


class Shared(NamedTuple):
    """A real ZooKeeper that others use, too, with a client of theirs."""

    address: str
    client: KazooClient

    def open_lab(self, chroot: str, **options: Any) -> Lab:
        options["config"] = SETTINGS | options.get("config", {})
        return Lab(**{"brokers": 1, "zookeeper": self.address + chroot, **options})

    def everything(self, path: str = "/") -> dict[str, Seen]:
        """Every znode from `path` down."""
        data, stat = self.client.get(path)
        found = {path: Seen(data, stat, self.client.get_acls(path)[0])}
        for name in self.client.get_children(path):
            if (path, name) != ("/", "zookeeper"):
                found |= self.everything(f"{path.rstrip('/')}/{name}")
        return found

    @contextlib.contextmanager
    def unchanged(self, path: str = "/", see: Callable[[dict[str, Seen]], object] = dict) -> Iterator[None]:
        """From `path` down all is afterwards as it was; with `see=set` this is asked of the paths alone."""
        before = see(self.everything(path))
        yield
        assert see(self.everything(path)) == before

    def write(self, path: str, data: bytes = b"", ephemeral: bool = False) -> None:
        if not self.client.exists(path):
            self.client.create(path, data, makepath=True, ephemeral=ephemeral)


@pytest.fixture
def zk(server: EmbeddedServer) -> Iterator[Shared]:
    """What the client finds in the end belongs to nobody."""
    with kazoo_at(server.address) as client:
        yield Shared(server.address, client)
        for name in client.get_children("/"):
            if name != "zookeeper":
                client.delete(f"/{name}", recursive=True)


def real_kafka(zk: Shared, root: str, generation: str, empty: bool = False) -> None:
    """What a real Kafka leaves that is switched off, with a topic to be deleted and one that moves."""
    modern = generation == "2.4"
    for path in znodes.PERSISTENT_PATHS:
        zk.write(root + path)
    zk.write(root + "/cluster/id", znodes.ClusterIdZNode.encode(ID))
    zk.write(root + "/controller_epoch", b"41")
    if empty:
        return
    moving = ReplicaAssignment((3, 1, 2), (3,), (2,)) if modern else (1, 2)
    for topic, assignment in (("payments", (1, 2)), ("obsolete", (2, 3)), ("moving", moving)):
        zk.write(root + f"/brokers/topics/{topic}", znodes.TopicZNode.encode({0: assignment}, 2 if modern else 1))
        isr = assignment.origin if isinstance(assignment, ReplicaAssignment) else assignment
        state = LeaderAndIsr(isr[0], isr, 7, 0, 41)
        where = znodes.TopicPartitionStateZNode.path((topic, 0))
        zk.write(root + where, znodes.TopicPartitionStateZNode.encode(state))
        zk.write(root + f"/config/topics/{topic}", b'{"version":1,"config":{}}')
    zk.write(root + "/admin/delete_topics/obsolete")
    plan = b'{"version":1,"partitions":[{"topic":"moving","partition":0,"replicas":[3,1]}]}'
    if not modern:
        zk.write(root + "/admin/reassign_partitions", plan)


# Somebody's Kafka


@pytest.mark.parametrize("chroot", ["", "/kafka"])
def test_a_kafka_that_is_switched_off_is_left_alone(generation: str, chroot: str, zk: Shared) -> None:
    """Its topic to be deleted stays, its partition does not move: nothing at all is written."""
    real_kafka(zk, chroot, generation)
    with zk.unchanged(), pytest.raises(BadInput) as refused:
        zk.open_lab(chroot, brokers=3, generation=generation)
    logged = str(refused.value)
    assert logged.startswith(f"Lab: ZooKeeper {zk.address}{chroot} has znodes")
    assert "/brokers/topics/payments" in logged and "join=True" in logged and "--join" in logged
    assert "such as host:port/kit" in logged


@pytest.mark.parametrize(
    "left",
    [
        "/cluster/id",
        "/controller_epoch",
        "/brokers/topics/orders",
        "/brokers/ids",
        "/admin/delete_topics/t",
        "/consumers",
        "/notes",
        "/isr_change_notification/isr_change_0000000003",
        LOCK,
        "/zookeeper",
    ],
)
def test_a_single_znode_of_somebody_is_named(prose: Prose, left: str, zk: Shared) -> None:
    """Also an empty folder: a Kafka that is just starting has no more yet, and no lab made it."""
    zk.write("/theirs" + left, b"7" if left == "/controller_epoch" else b"")
    with zk.unchanged("/theirs"), prose.refused(BadInput) as refused:
        zk.open_lab("/theirs")
    named = str(refused.value).partition("made: ")[2]
    assert left in named or left.startswith(named.partition(". ")[0])


def test_a_cluster_that_has_the_name_of_a_lab_is_not_a_labs(prose: Prose, zk: Shared) -> None:
    """As when a Kafka was started in what a lab had left: it takes the name that it finds."""
    zk.write("/named/cluster/id", znodes.ClusterIdZNode.encode("kafka-ctl-teaching-kit"))
    prose.refuses(BadInput, zk.open_lab, "/named")


def test_what_somebody_adds_to_a_labs_leftovers_is_named(prose: Prose, zk: Shared) -> None:
    """Deep inside, too."""
    with zk.open_lab("/shared") as lab:
        until_quiet(lab.create_topic, "orders")
        zk.client.create("/shared/brokers/topics/theirs", b'{"version":1,"partitions":{"0":[1]}}')
    assert set(zk.everything("/shared")) >= {"/shared/brokers/topics/theirs"}
    prose.refuses(BadInput, zk.open_lab, "/shared")


def test_what_may_not_be_read_is_somebodys(prose: Prose, zk: Shared) -> None:
    """A znode that is closed to us is no lab's."""
    zk.client.create("/secret")
    zk.client.create("/secret/brokers", b"", acl=[make_digest_acl("kafka", "pw", all=True)])
    try:
        prose.refuses(BadInput, zk.open_lab, "/secret")
    finally:
        zk.client.add_auth("digest", "kafka:pw")
        zk.client.delete("/secret", recursive=True)


@tabled
def test_a_chroot_that_is_closed_is_refused(
    prose: Prose, zk: Shared, closed: str, rights: int, chroot: str, join: bool
) -> None:
    """Nothing is written; the refusal names the znode whose ACL is in the way."""
    zk.client.add_auth("digest", "kafka:pw")
    acl = [make_digest_acl("kafka", "pw", all=True), ACL(rights, ANYONE_ID_UNSAFE)]
    zk.client.create(closed, b"", acl=acl[: 1 + bool(rights)], makepath=True)
    with zk.unchanged(), prose.refused(BadInput):
        zk.open_lab(chroot, join=join)


@pytest.mark.parametrize("chroot", ["", "/empty", "/not/there"])
def test_an_empty_chroot_or_none_is_free(chroot: str, zk: Shared) -> None:
    """What is at the root of a server is its own; afterwards all is as it was."""
    if chroot == "/empty":
        zk.client.create(chroot)
    with zk.unchanged(see=set), zk.open_lab(chroot) as lab:
        assert lab.controller == (1, 1)
        assert lab.zookeeper_address == zk.address + chroot and lab.zookeeper_server is None
        assert LOCK not in lab.znodes()


# Joining


def test_joining_is_asked_for_by_name(generation: str, zk: Shared) -> None:
    """Then the lab goes on with what it finds, under the cluster's name, and takes away what it made itself."""
    real_kafka(zk, "/kafka", generation)
    before = zk.everything("/kafka")
    with zk.open_lab("/kafka", brokers=3, generation=generation, join=True) as lab:
        assert lab.controller is not None and lab.controller.epoch == 42
        assert {p.topic for p in lab.partitions()} == {"payments", "moving"}
        assert lab.partition("moving", 0).replicas == (3, 1)
        until_quiet(lab.create_topic, "ours", partitions=2)
    after = zk.everything("/kafka")
    gone = {path for path in before if "obsolete" in path} | {"/kafka/admin/reassign_partitions"}
    assert set(after) == set(before) - gone
    assert all(after[path].stat.czxid == before[path].stat.czxid for path in after)
    assert after["/kafka/cluster/id"] == before["/kafka/cluster/id"]


def test_a_joined_cluster_keeps_what_it_has_written_to(zk: Shared) -> None:
    """What the lab made and somebody has changed since is theirs."""
    zk.write("/kafka/brokers/topics/theirs", b'{"version":1,"partitions":{"0":[1]}}')
    with zk.open_lab("/kafka", join=True) as lab:
        play(lab, "create_topic ours; create_topic taken; settle")
        for path in ("/controller_epoch", "/brokers/topics/taken"):
            zk.client.set(f"/kafka{path}", zk.client.get(f"/kafka{path}")[0])
    kept = ("", "/brokers", "/brokers/topics", "/brokers/topics/theirs", "/brokers/topics/taken", "/controller_epoch")
    assert set(zk.everything("/kafka")) == {f"/kafka{path}" for path in kept}


def test_brokers_that_have_come_meanwhile_keep_what_they_need(prose: Prose, zk: Shared) -> None:
    """A Kafka that lives where a lab is closed needs the folders that the lab made."""
    broker = znodes.BrokerIdZNode.encode(Broker(7, "h", 9092), 0)
    with zk.open_lab("/busy", settle=False) as lab:
        lab.run_until(lambda lab: lab.controller is not None)
        during = set(zk.everything("/busy")) - {f"/busy{LOCK}", "/busy/controller", "/busy/brokers/ids/1"}
        zk.client.create("/busy/brokers/ids/7", broker, ephemeral=True)
    assert set(zk.everything("/busy")) == during | {"/busy/brokers/ids/7"}
    prose.refuses(BadInput, zk.open_lab, "/busy")


def test_living_brokers_of_others_are_not_joined(prose: Prose, zk: Shared) -> None:
    """They could not talk to a lab's, nor a lab's to them; nothing is written."""
    real_kafka(zk, "/alive", "2.0", empty=True)
    broker = znodes.BrokerIdZNode.encode(Broker(7, "h", 9092), 0)
    zk.write("/alive/brokers/ids/7", broker, ephemeral=True)
    with zk.unchanged("/alive"), prose.refused(BadInput):
        zk.open_lab("/alive", join=True)


def test_two_labs_do_not_join_one_cluster(prose: Prose, zk: Shared) -> None:
    """The lock holds among those that join, too; the second changes nothing."""
    real_kafka(zk, "/kafka", "2.0", empty=True)
    with zk.open_lab("/kafka", join=True), zk.unchanged("/kafka"), prose.refused(BadInput):
        zk.open_lab("/kafka", join=True)


@tabled(ids=source)
def test_a_wrong_join_is_refused(prose: Prose, options: dict[str, Any]) -> None:
    prose.refuses(BadInput, Lab, **options)


def test_joining_on_the_command_line(zk: Shared, tmp_path: Any) -> None:
    """Where a command takes a ZooKeeper, `--join` is told of in the refusal and in the help."""
    real_kafka(zk, "/kafka", "2.0", empty=True)
    story = tmp_path / "story.txt"
    story.write_text(
        f"lab brokers=1 generation=2.0 seed=7 config='{json.dumps(SETTINGS)}'\ncreate_topic orders\nsettle\n"
    )
    run = ["run", str(story), "--zookeeper", f"{zk.address}/kafka"]
    with zk.unchanged("/kafka", see=set):
        refused = CliRunner().invoke(app, run)
        assert isinstance(refused.exception, BadInput) and "--join" in str(refused.exception)
        assert CliRunner().invoke(app, [*run, "--join"], catch_exceptions=False).exit_code == 0
    for command in ("run", "demo"):
        assert "--join" in CliRunner().invoke(app, [command, "--help"]).output


# Two labs


def outcomes(opened: list[Lab | BaseException]) -> tuple[Lab, list[BaseException]]:
    """The one that won, and what the others were told."""
    labs = [lab for lab in opened if isinstance(lab, Lab)]
    assert len(labs) == 1, opened
    return labs[0], [error for error in opened if isinstance(error, BaseException)]


def attempt(zk: Shared, chroot: str) -> Lab | BaseException:
    try:
        return zk.open_lab(chroot)
    except BadInput as refused:
        return refused


@pytest.mark.parametrize("chroot", ["", "/there", "/made/by/the/winner"])
def test_of_labs_that_start_at_once_one_wins(chroot: str, zk: Shared) -> None:
    """The other is refused and removes nothing; when the winner has closed, nothing is left."""
    if chroot == "/there":
        zk.client.create(chroot)
    barrier = threading.Barrier(3)

    def race() -> Lab | BaseException:
        barrier.wait()
        return attempt(zk, chroot)

    with ThreadPoolExecutor(3) as pool:
        for _ in range(8):
            with zk.unchanged(see=set):
                winner, refused = outcomes([made.result() for made in [pool.submit(race) for _ in range(3)]])
                with winner as lab:
                    assert all(f"another lab uses ZooKeeper {zk.address}{chroot}" in str(e) for e in refused)
                    until_quiet(lab.create_topic, "orders")
                    assert lab.partition("orders", 0).leader == 1


CHILD = """
import json, sys, threading
from kafka_ctl import BadInput, KafkaCtlError, Lab
labs = {}
def say(*words):
    print(" ".join(map(str, words)) + "\\n", end="", flush=True)  # in one piece: threads share the pipe
def start(address):
    try:
        labs[address] = Lab(brokers=1, zookeeper=address, config=json.loads(sys.argv[1]))
        labs[address].create_topic("orders")
        labs[address].settle()
        say(address, "open")
    except BadInput as refused:
        say(address, refused)
print("ready", flush=True)
for line in sys.stdin:
    verb, *addresses = line.split()
    if verb == "open":
        threads = [threading.Thread(target=start, args=(address,)) for address in addresses]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    elif verb == "create":
        for lab in labs.values():
            try:
                lab.create_topic(*addresses)
            except KafkaCtlError as refused:
                say(*addresses, refused)
    else:
        for address in list(labs):
            labs.pop(address).close()
    print("done", flush=True)
"""


class Child:
    """Another process that opens labs."""

    def __init__(self) -> None:
        code = [sys.executable, "-c", CHILD, json.dumps(SETTINGS)]
        self.process = subprocess.Popen(code, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._read() == "ready"

    def _read(self) -> str:
        limit = threading.Timer(60, self.process.kill)  # then the line is empty
        limit.start()
        try:
            return self.process.stdout.readline().strip()
        finally:
            limit.cancel()

    def tell(self, *words: str) -> None:
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def answers(self) -> dict[str, str]:
        """By address: `open`, or why not."""
        reported = {}
        while (line := self._read()) != "done":
            assert line, "the process has ended"
            address, _, answer = line.partition(" ")
            reported[address] = answer
        return reported

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def children() -> Iterator[Callable[[], Child]]:
    """Starts processes, which end with the test."""
    with contextlib.ExitStack() as ending:

        def start() -> Child:
            child = Child()
            ending.callback(child.kill)
            return child

        yield start


def test_of_labs_in_two_processes_one_wins(zk: Shared, children: Callable[[], Child]) -> None:
    """Twenty chroots, in each of which both open a lab at once; closing leaves nothing of either."""
    first, second = children(), children()
    for batch in range(4):
        addresses = [f"{zk.address}/both/{batch}{n}" for n in range(5)]
        for child in (first, second):
            child.tell("open", *addresses)
        reported = [child.answers() for child in (first, second)]
        for address in addresses:
            answers = [answer[address] for answer in reported]
            assert sorted(answer == "open" for answer in answers) == [False, True], answers
            assert any(f"another lab uses ZooKeeper {address}" in answer for answer in answers)
            chroot = address.partition("/")[2]
            assert zk.client.exists(f"/{chroot}/brokers/topics/orders/partitions/0/state"), "the loser left it alone"
        for child in (first, second):
            child.tell("close")
            child.answers()
    assert set(zk.everything()) - {"/both"} == {"/"}


def killed_at(children: Callable[[], Child], address: str) -> None:
    """Leave in a chroot what a lab leaves that is killed: a topic, an epoch, the folders, the chroot itself."""
    child = children()
    child.tell("open", address)
    assert child.answers() == {address: "open"}
    child.kill()


def test_what_a_killed_lab_left_is_taken_over(zk: Shared, children: Callable[[], Child]) -> None:
    """Its lock goes with its session; of two that wait for that, one wins, and takes away what was left at its end."""
    killed_at(children, f"{zk.address}/crashed")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(attempt, zk, "/crashed") for _ in range(2)]
        winner, refused = outcomes([made.result() for made in both])
    assert "another lab uses" in str(refused[0])
    assert "/crashed/brokers/topics/orders/partitions/0/state" in zk.everything("/crashed")
    with winner as lab:
        assert lab.controller is not None and lab.controller.epoch == 2
        assert lab.partition("orders", 0).state == "OnlinePartition"
        until_quiet(lab.create_topic, "more")
    assert set(zk.everything()) == {"/"}


def test_a_chroot_does_not_fill_up_with_killed_labs(zk: Shared, children: Callable[[], Child]) -> None:
    """However many were killed one after the other: the next one that is closed takes all away but what was there."""
    zk.client.create("/theirs")
    with zk.unchanged(see=set):
        for _ in range(3):
            killed_at(children, f"{zk.address}/theirs/deep/kit")
            zk.client.set("/theirs/deep/kit/brokers/topics/orders", b'{"version":1,"partitions":{}}')
            zk.client.delete("/theirs/deep/kit/brokers/topics/orders/partitions", recursive=True)
            zk.client.delete("/theirs/deep/kit/brokers/topics/orders")
        with zk.open_lab("/theirs/deep/kit") as lab:
            assert lab.controller is not None and lab.controller.epoch == 4


def test_a_fresh_lab_begins_with_an_empty_chroot(zk: Shared, children: Callable[[], Child]) -> None:
    """Also where a controller could not work with what was left; the chroot goes with the lab."""
    killed_at(children, f"{zk.address}/crashed")
    zk.client.set("/crashed/controller_epoch", b"garbage")
    with zk.open_lab("/crashed", fresh=True) as lab:
        assert lab.partitions() == [] and lab.controller == (1, 1)
        assert not zk.client.exists("/crashed/brokers/topics/orders")
        until_quiet(lab.create_topic, "orders")
        assert lab.partition("orders", 0).leader_epoch == 0
    assert set(zk.everything()) == {"/"}


def test_a_fresh_lab_removes_nothing_of_others(zk: Shared, children: Callable[[], Child]) -> None:
    """What others have is named, and nothing is removed: not even what the killed lab left beside it."""
    killed_at(children, f"{zk.address}/mixed")
    assert eventually(lambda: not zk.client.exists(f"/mixed{LOCK}"))
    assert eventually(
        lambda: not zk.client.get_children("/mixed/brokers/ids") and not zk.client.exists("/mixed/controller")
    )
    zk.client.create("/mixed/notes", b"ours")
    with zk.unchanged(), pytest.raises(BadInput, match=": /notes"):
        zk.open_lab("/mixed", fresh=True)


def test_a_fresh_lab_does_not_end_a_living_one(zk: Shared) -> None:
    with zk.open_lab("/living") as lab:
        with zk.unchanged("/living"), pytest.raises(BadInput, match="another lab uses"):
            zk.open_lab("/living", fresh=True)
        assert lab.controller == (1, 1)


def test_who_joins_takes_over_only_what_was_never_written_to(zk: Shared, children: Callable[[], Child]) -> None:
    """A topic of a killed lab whose state has changed since may be in use by the cluster that is joined."""
    killed_at(children, f"{zk.address}/both")
    zk.write("/both/brokers/topics/theirs", b'{"version":1,"partitions":{"0":[1]}}')
    zk.client.set("/both/brokers/topics/orders", zk.client.get("/both/brokers/topics/orders")[0])
    with zk.open_lab("/both", join=True) as lab:
        assert {p.topic for p in lab.partitions()} == {"orders", "theirs"}
    left = {path for path in zk.everything("/both") if "/orders" in path}
    assert "/both/brokers/topics/orders" in left
    assert zk.client.exists("/both/brokers/topics/theirs")
    assert not zk.client.exists("/both/config/topics/orders"), "never written to: it went with the lab"


@tabled(ids=source)
def test_a_wrong_fresh_is_refused(prose: Prose, options: dict[str, Any]) -> None:
    prose.refuses(BadInput, Lab, **options)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_a_process_that_stood_still_has_lost_its_chroot(zk: Shared, children: Callable[[], Child]) -> None:
    """Its sessions ended meanwhile and another lab came: it says so, writes nothing, and removes nothing."""
    child = children()
    child.tell("open", f"{zk.address}/slept")
    child.answers()
    child.process.send_signal(signal.SIGSTOP)
    with zk.open_lab("/slept") as lab, zk.unchanged("/slept"):
        child.process.send_signal(signal.SIGCONT)
        logged = ""
        while "this lab had lost its session, and meanwhile another lab uses" not in logged:
            child.tell("create", "late")
            logged = child.answers()["late"]  # an error in any case
        child.tell("close")
        child.answers()
        assert lab.partition("orders", 0).leader == 1 and lab.controller is not None


def test_a_lab_that_lost_its_session_takes_its_chroot_again(zk: Shared) -> None:
    """Where nobody came meanwhile, it goes on."""
    with zk.open_lab("/again") as lab:
        until_quiet(lab.create_topic, "orders")
        store = lab.world.store
        session = zk.client.exists(f"/again{LOCK}").ephemeralOwner
        store.tools.expire()
        assert eventually(lambda: (there := zk.client.exists(f"/again{LOCK}")) and there.ephemeralOwner != session)
        with pytest.raises(BadInput, match="another lab uses"):
            zk.open_lab("/again")
        until_quiet(lab.delete_topic, "orders")
        assert lab.partitions() == []
    assert not zk.client.exists("/again")


def test_no_session_outlives_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the server grants: a process that stands still loses its lock last."""
    for least, most, asked in ((4000, 40_000, 1000), (400, 9000, 20_000), (400, 86_400_000, 6000)):
        limits = CONFIG.replace("minSessionTimeout=400", f"minSessionTimeout={least}")
        limits = limits.replace("maxSessionTimeout=86400000", f"maxSessionTimeout={most}")
        monkeypatch.setattr("kafka_ctl.zookeeper.real.server.CONFIG", limits)
        timeout = {"zookeeper.session.timeout.ms": asked}
        with EmbeddedServer() as own, Lab(brokers=1, zookeeper=own.address, config=SETTINGS | timeout) as lab:
            lab.create_topic("orders")
            store = lab.world.store
            longest = max(session.granted for session in store.sessions)
            assert store.tools.granted * 2 / 3 >= longest >= least / 1000


def test_a_broker_that_was_killed_leaves_nothing(zk: Shared) -> None:
    """Its ephemeral znodes are the lab's, though the server believes it alive."""
    with zk.open_lab("/killed", brokers=2) as lab:
        lab.kill(1)
    assert set(zk.everything()) == {"/"}
