"""The embedded server, and what only a store on a real server must do: survive, tidy up, explain."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from kazoo.client import KazooClient
from prose import Prose
from tables import tabled
from waiting import eventually
from zookeepers import RealWorld, kazoo_at, started

from kafka_ctl import errors
from kafka_ctl.setup import java
from kafka_ctl.zookeeper.real import server as server_module
from kafka_ctl.zookeeper.real.server import EmbeddedServer, four_letter_word, zookeeper_jars
from kafka_ctl.zookeeper.real.store import RemoteStore, parse_address
from kafka_ctl.zookeeper.store import Create, Get

server = pytest.fixture(started)
shared = pytest.fixture(scope="module")(started)


@pytest.fixture
def world(shared: EmbeddedServer, request: pytest.FixtureRequest) -> Iterator[RealWorld]:
    with kazoo_at(shared.address) as client:  # an earlier test, or a failed run of this one, may have left znodes
        for name in set(client.get_children("/")) - {"zookeeper"}:
            client.delete(f"/{name}", recursive=True)
    made = RealWorld(f"{shared.address}/{request.node.name}")
    yield made
    made.close()


@pytest.fixture
def outsider(shared: EmbeddedServer) -> Iterator[KazooClient]:
    with kazoo_at(shared.address) as client:
        yield client


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent to notice does not."""
    state = Path(f"/proc/{pid}/stat")
    if state.parent.parent.joinpath("self").exists():
        try:
            return state.read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


# The server.


def test_it_answers_on_loopback_and_leaves_nothing(server: EmbeddedServer) -> None:
    assert server.address == f"127.0.0.1:{server.port}"
    assert four_letter_word(server.port, "ruok") == "imok"
    assert "version: 3.9" in four_letter_word(server.port, "srvr")
    assert "not executed" in four_letter_word(server.port, "conf"), "only three words are allowed"
    folder = server.folder
    assert (folder / "data").is_dir()
    assert server.start() is server, "a second start changes nothing"
    server.stop()
    server.stop()
    assert not folder.exists()
    assert not server.running
    assert four_letter_word(server.port, "ruok") == ""


@pytest.mark.parametrize("again", ["start", "restart"])
def test_data_survive_a_kill_on_the_same_port(server: EmbeddedServer, again: str) -> None:
    port = server.port
    with kazoo_at(server.address) as client:
        client.create("/brokers", b"kept")
    server.kill()
    assert not server.running
    assert four_letter_word(port, "ruok") == ""
    getattr(server, again)()
    assert server.port == port
    with kazoo_at(server.address) as client:
        assert client.get("/brokers")[0] == b"kept"


@pytest.mark.parametrize(("number", "again"), [(signal.SIGINT, "start"), (signal.SIGTERM, "restart")])
def test_a_server_is_started_again_after_its_supervisor_has_ended(tmp_path: Path, number: int, again: str) -> None:
    """What the error says to do can be done; the supervisor has ended its server, also if SIGINT is ignored here."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with EmbeddedServer(data=tmp_path / "znodes") as server:
        signal.signal(signal.SIGINT, before)
        server.supervisor.send_signal(number)
        server.supervisor.wait(30)
        assert four_letter_word(server.port, "ruok") == ""
        with pytest.raises(errors.Unavailable, match="start ZooKeeper again"):
            print(server.running)
        assert not server.running
        getattr(server, again)()
        assert four_letter_word(server.port, "ruok") == "imok"
    assert not server.running


def test_a_data_folder_of_your_own_is_kept(shared: EmbeddedServer, tmp_path: Path) -> None:
    for expected in (None, b"kept"):
        with EmbeddedServer(data=tmp_path / "znodes") as own, kazoo_at(own.address) as client:
            found = client.get("/x")[0] if client.exists("/x") else None
            assert found == expected
            client.ensure_path("/x")
            client.set("/x", b"kept")
    assert (tmp_path / "znodes" / "version-2").is_dir()


def test_a_taken_port_is_named(prose: Prose, shared: EmbeddedServer) -> None:
    prose.refuses(errors.Unavailable, EmbeddedServer(shared.port).start)


def test_a_server_that_dies_at_once_shows_its_log(shared: EmbeddedServer, tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("not a folder")
    with pytest.raises(errors.Unavailable, match="its process ended") as caught:
        EmbeddedServer(data=nothing).start()
    assert "DatadirException" in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_without_java_or_jars_the_cure_is_reported(
    prose: Prose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_java() -> Path:
        raise errors.Unavailable("no Java")

    monkeypatch.setattr(server_module, "java_executable", no_java)
    with pytest.raises(errors.Unavailable, match="no Java"):
        EmbeddedServer().start()
    monkeypatch.setattr(server_module, "JARS", ("zookeeper-3*", "no-such-jar-*"))
    prose.hide[str(Path(pyspark.__file__).parent)] = "PYSPARK"
    prose.refuses(errors.Unavailable, zookeeper_jars)
    monkeypatch.setattr(server_module.importlib.util, "find_spec", lambda name: None)
    prose.refuses(errors.Unavailable, zookeeper_jars)


PARENT = """
import sys, time
from kafka_ctl.zookeeper.real.server import EmbeddedServer, four_letter_word
server = EmbeddedServer().start()
print(server.folder, server.port, server.supervisor.pid, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["time.sleep(60)", "sys.exit()", "1 / 0", "del server; time.sleep(60)"])
def test_the_server_ends_with_its_parent(shared: EmbeddedServer, end: str) -> None:
    """However the parent goes: killed outright, at its end, by an error; or just forgets the server."""
    code = [sys.executable, "-c", PARENT.format(end=end)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        folder, port, supervisor = parent.stdout.readline().split()
        if end == "time.sleep(60)":
            assert four_letter_word(int(port), "ruok") == "imok"
            parent.kill()
        assert eventually(lambda: not Path(folder).exists())
        assert eventually(lambda: not alive(int(supervisor)))
        assert four_letter_word(int(port), "ruok") == ""
        parent.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks there")
def test_a_fork_of_the_parent_does_not_keep_the_server(shared: EmbeddedServer) -> None:
    """It holds the supervisor's pipe, and lives on when the parent is killed."""
    end = "import os\nif not os.fork(): print(os.getpid(), flush=True); time.sleep(600)\ntime.sleep(60)"
    code = [sys.executable, "-c", PARENT.format(end=end)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as parent:
        folder, port, supervisor = parent.stdout.readline().split()
        child = parent.stdout.readline()
        try:
            parent.kill()
            assert eventually(lambda: not Path(folder).exists())
            assert eventually(lambda: not alive(int(supervisor)))
            assert four_letter_word(int(port), "ruok") == ""
        finally:
            os.kill(int(child), signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent otherwise there")
def test_serving_in_the_foreground_ends_with_ctrl_c(shared: EmbeddedServer, tmp_path: Path) -> None:
    code = f"from kafka_ctl.zookeeper.real.server import serve; serve(data={str(tmp_path)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        reported = process.stdout.readline()
        assert reported.startswith("ZooKeeper listens on 127.0.0.1:")
        port = int(reported.split(";")[0].rpartition(":")[2])
        assert four_letter_word(port, "ruok") == "imok"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert four_letter_word(port, "ruok") == ""


# Java.


def test_java_is_found_or_the_cure_is_reported(prose: Prose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def home(name: str, version: str) -> Path:
        (tmp_path / name / "bin").mkdir(parents=True)
        program = tmp_path / name / "bin" / ("java.exe" if os.name == "nt" else "java")
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
        (tmp_path / name / "release").write_text(f'JAVA_VERSION="{version}"\n')
        return program

    old, new, newer = home("old", "1.8.0_402"), home("new", "17.0.15"), home("newer", "25")
    assert [java.java_version(program) for program in (old, new, newer)] == [8, 17, 25]
    assert java.java_version(home("own", "internal")) is None
    (gone := home("gone", "25")).unlink()
    assert java.java_version(gone) is None
    (new.parent.parent / "release").unlink()
    assert java.java_version(new) is None, "it does not work"
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    monkeypatch.setenv("PATH", str(newer.parent))
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    assert java.java_executable() == newer, "an old JAVA_HOME is passed over"
    monkeypatch.setenv("PATH", str(new.parent))
    prose.refuses(errors.Unavailable, java.java_executable)
    monkeypatch.setattr(java, "packaged_java", lambda: newer)
    java.find_java.cache_clear()
    assert java.java_executable() == newer


# A store on a real server.


def test_an_outsider_reads_what_was_written(world: RealWorld, outsider: KazooClient) -> None:
    async def write() -> None:
        a = await world.connect()
        await a.create("/brokers")
        await a.create("/brokers/1", "Zoë".encode(), ephemeral=True)

    world.run(write())
    chroot = world.store.chroot
    assert outsider.get(f"{chroot}/brokers/1")[0] == "Zoë".encode()
    seen = []
    outsider.exists(f"{chroot}/brokers/1", watch=seen.append)
    world.run(world.store.close())
    assert eventually(lambda: seen)
    assert not outsider.exists(chroot), "a chroot that the store made goes with it"


def test_long_and_short_answers_come_whole_and_in_order(world: RealWorld) -> None:
    """Sockets are read and written in blocks of 64 KB: one block holds many short messages, or a part of a long one."""
    a = world.run(world.connect("a"))
    sizes = [0, 1, 100_000, 7, 70_000, 65_536, 500_000] + [3] * 200
    data = [bytes([position % 256]) * size for position, size in enumerate(sizes)]
    made = world.run(a.session.send([Create(f"/{n}", each) for n, each in enumerate(data)], 50))
    assert [result.error for result in made] == [None] * len(data)
    found = world.run(a.session.send([Get(f"/{n}") for n in range(len(data))], 50))
    assert [(result.op.path, result.value) for result in found] == [(f"/{n}", each) for n, each in enumerate(data)]


def test_only_what_the_lab_made_is_removed(world: RealWorld, outsider: KazooClient) -> None:
    outsider.ensure_path("/mine/kit/topics")
    outsider.ensure_path("/mine/kitten")
    store = world.add_store(f"{world.address.partition('/')[0]}/mine/kit")

    async def write() -> None:
        a = await world.connect(store=store)
        made = ["/topics/a", "/topics/a/0", "/topics/b", "/gone", "/again", "/ids"]
        assert not [r.error for r in await a.send([Create(path) for path in made], 10) if r.error]
        await a.create("/ids/1", ephemeral=True)
        await a.delete("/gone")

    world.run(write())
    outsider.create("/mine/kit/gone", b"another one")
    outsider.delete("/mine/kit/again")
    outsider.create("/mine/kit/again", b"another one")
    outsider.create("/mine/kit/topics/b/not-yours")
    world.run(store.close())
    assert sorted(outsider.get_children("/mine")) == ["kit", "kitten"]
    assert sorted(outsider.get_children("/mine/kit")) == ["again", "gone", "topics"]
    assert outsider.get_children("/mine/kit/topics") == ["b"]


def test_without_a_chroot_the_root_is_cleared_of_our_znodes_only(world: RealWorld, outsider: KazooClient) -> None:
    outsider.create("/theirs")
    store = world.add_store(world.address.partition("/")[0])

    async def write() -> None:
        a = await world.connect(store=store)
        await a.create("/ours")
        await a.create("/ours/too")
        found = await store.dump()
        assert {"/ours", "/ours/too", "/theirs"} <= set(found)
        assert not [path for path in found if path.startswith("/zookeeper")]

    world.run(write())
    world.run(store.close())
    assert outsider.exists("/theirs")
    assert not outsider.exists("/ours")


def test_znodes_stay_when_asked_and_parents_of_the_chroot_go(world: RealWorld, outsider: KazooClient) -> None:
    host = world.address.partition("/")[0]
    for remove, left in ((False, True), (True, True)):
        store = world.add_store(f"{host}/deep/down")
        world.run(world.connect(store=store))
        world.run(store.close(remove=remove))
        assert bool(outsider.exists("/deep/down")) is left
    outsider.delete("/deep", recursive=True)
    store = world.add_store(f"{host}/deep/down")
    world.run(world.connect(store=store))
    world.run(store.close())
    assert not outsider.exists("/deep")


def test_a_session_outlives_a_restart_of_the_server(server: EmbeddedServer) -> None:
    world = RealWorld(f"{server.address}/kit")
    a = world.run(world.connect("a", timeout=15))
    world.run(a.create("/x", b"kept", ephemeral=True))
    world.run(a.get("/x", watch=True))
    world.run(a.session.exists("/y", watch=True))
    world.run(a.children("/", watch=True))
    server.kill()
    world.clock.wait(lambda: a.states == ["Disconnected"], 20)
    with pytest.raises(errors.ConnectionLoss):  # at once: it does not wait until there is a server again
        world.run(a.session.send([Get("/x")] * 5, 2))
    server.restart()
    world.clock.wait(lambda: a.states == ["Disconnected", "Connected"], 20)
    data, stat = world.run(a.get("/x"))
    assert data == b"kept"
    assert stat.ephemeral_owner == a.session.id
    assert a.events == [], "nothing has changed"
    world.run(a.create("/y"))
    world.run(a.set("/x", b"new"))
    world.run(a.caught_up())
    assert a.fired == [("NodeCreated", "/y"), ("NodeChildrenChanged", "/"), ("NodeDataChanged", "/x")]
    world.close()


def test_what_changed_while_the_connection_was_broken_is_reported(world: RealWorld) -> None:
    async def tell() -> None:
        a, b = await world.connect("a", timeout=10), await world.connect("b")
        for path in ("/set", "/deleted", "/parent", "/same"):
            await b.create(path)
        for path in ("/set", "/deleted", "/same"):
            await a.get(path, watch=True)
        await a.session.exists("/created", watch=True)
        await a.session.exists("/never", watch=True)
        await a.children("/parent", watch=True)
        a.session.connection.cut()
        await b.set("/set", b"1")
        await b.delete("/deleted")
        await b.create("/created")
        await b.create("/parent/child")
        await world.until(lambda: a.states == ["Disconnected", "Connected"])
        await world.until(lambda: len(a.events) >= 4)
        await a.caught_up()
        assert sorted(a.fired) == [
            ("NodeChildrenChanged", "/parent"),
            ("NodeCreated", "/created"),
            ("NodeDataChanged", "/set"),
            ("NodeDeleted", "/deleted"),
        ]
        await b.set("/same", b"1")
        await b.create("/never")
        await world.until(lambda: len(a.events) == 6)

    world.run(tell())


def test_an_error_in_a_watcher_reaches_whoever_drives_the_clock(world: RealWorld) -> None:
    def fail(event: object) -> None:
        raise ZeroDivisionError

    async def watch() -> None:
        a = await world.connect("a")
        await a.create("/x")
        await a.session.exists("/x", watch=True)
        a.session.watcher = fail
        await a.set("/x", b"")
        assert (await a.get("/x"))[1].version == 1, "the answers after it are heard all the same"

    with pytest.raises(ZeroDivisionError):
        world.run(watch())


def test_what_is_under_way_fails_when_the_server_dies(server: EmbeddedServer) -> None:
    world = RealWorld(f"{server.address}/kit")
    a = world.run(world.connect("a", timeout=3))
    world.run(a.create("/x"))
    flood = [Create(f"/x/{n}") for n in range(20_000)]

    async def lose() -> None:
        sending = asyncio.create_task(a.session.send(flood, 100))
        await world.until(lambda: len(world.store.created) > 100)
        server.kill()
        with pytest.raises(errors.ConnectionLoss):
            await sending

    world.run(lose())
    closing = threading.Thread(target=world.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive(), "closing waits for a dead server"


def test_operations_sent_again_while_the_connection_breaks_do_not_block(server: EmbeddedServer) -> None:
    """Kazoo fails what is under way before it reports the lost connection, and what is sent again meanwhile too.

    Each operation wrote a byte to a socket that nobody read any more: the 279th blocked the lab's thread.
    """
    world = RealWorld(f"{server.address}/kit")
    a = world.run(world.connect("a", timeout=15))
    fail_all, turns = a.session.connection._notify_pending, 0

    def fail_all_again_and_again(state: str) -> None:
        nonlocal turns
        while turns < 2000:
            fail_all(state)
            turned = threading.Event()
            world.clock.loop.call_soon_threadsafe(turned.set)
            if not turned.wait(10):
                return
            turns += 1

    async def insist() -> None:
        while True:
            try:
                await a.session.send([Get("/")])
            except errors.ConnectionLoss:
                await asyncio.sleep(0)

    a.session.connection._notify_pending = fail_all_again_and_again
    sender = asyncio.run_coroutine_threadsafe(insist(), world.clock.loop)
    server.kill()
    assert eventually(lambda: turns == 2000 and a.states == ["Disconnected"]), f"blocked after {turns} turns"
    sender.cancel()
    world.close()


def test_a_dead_address_is_named_with_the_cure(prose: Prose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_ctl.zookeeper.real.store.CONNECT_SECONDS", 1)
    world = RealWorld("127.0.0.1:1/kit")
    prose.refuses(errors.Unavailable, world.run, world.connect())
    world.close()


def test_a_store_stops_a_server_of_its_own(shared: EmbeddedServer) -> None:
    own = EmbeddedServer().start()
    world = RealWorld(own.address)
    store = RemoteStore(f"{own.address}/kit", world.clock, server=own)
    a = world.run(world.connect(store=store))
    world.run(a.create("/x"))
    world.run(store.close())
    assert not own.running
    world.close()


@tabled
def test_addresses(address: str, read: tuple[str, str]) -> None:
    assert parse_address(address) == read


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "a:b",
        "a:0",
        "a:1,,b:2",
        ":2181",
        "/kit",
        "a:1//kit",
        "a:99999",
        "a:1/..",
        "a:1/./b",
        "a:1/a\tb",
        "a b:1",
        "a..b:1",
        "\ud800:1",
    ],
)
def test_an_address_that_cannot_be_read_is_refused(prose: Prose, address: str) -> None:
    prose.refuses(errors.BadInput, RemoteStore, address)


def test_a_session_is_ended_when_the_server_is_back(server: EmbeddedServer) -> None:
    """Asked for while there is no server, its end comes with the server's return."""
    world = RealWorld(server.address)
    try:
        client = world.run(world.connect("broker-1", timeout=30))
        server.kill()
        world.run(world.until(lambda: client.states == ["Disconnected"]))
        client.session.expire()
        server.restart()
        world.run(world.until(lambda: client.states[-1] == "Expired"))
    finally:
        world.close()


def test_orders_may_come_from_several_threads(server: EmbeddedServer) -> None:
    """Each gets its own answer."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: server.running, range(40))) == [True] * 40
        list(pool.map(lambda _: server.kill(), range(4)))
    assert not server.running
