"""What every ZooKeeper must do, whether it is the one in memory or a real server."""

from collections.abc import Iterator

import pytest
from zookeepers import Client, MemoryWorld, RealWorld, World, started, story

from kafka_ctl import errors
from kafka_ctl.trace import CAUSE
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.store import Check, Children, Create, Delete, Exists, Get, Multi, Op, Set, WatchedEvent

server = pytest.fixture(scope="module")(started)


@pytest.fixture(params=["memory", "real"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        made: World = MemoryWorld()
    else:
        running: EmbeddedServer = request.getfixturevalue("server")
        made = RealWorld(f"{running.address}/{request.node.originalname}")
    yield made
    made.close()


async def refused(error: type[errors.ZooKeeperError], operation: object) -> None:
    with pytest.raises(error):
        await operation


# Znodes.


@story
async def test_what_was_written_is_read(world: World) -> None:
    a, b = await world.connect(), await world.connect()
    assert await a.create("/brokers", b"\x00\xff {}") == "/brokers"
    assert (await b.get("/brokers"))[0] == b"\x00\xff {}"
    await b.set("/brokers", b"")
    assert (await a.get("/brokers"))[0] == b""
    await a.delete("/brokers")
    assert await b.exists("/brokers") is None


@story
async def test_a_znode_needs_its_parent_and_a_free_name(world: World) -> None:
    a = await world.connect()
    await refused(errors.NoNode, a.create("/brokers/ids"))
    await a.create("/brokers")
    await refused(errors.NodeExists, a.create("/brokers"))
    await a.create("/brokers/ids")
    await refused(errors.NotEmpty, a.delete("/brokers"))


@story
async def test_what_is_not_there_cannot_be_read_or_changed(world: World) -> None:
    a = await world.connect()
    for operation in (a.get("/x"), a.children("/x"), a.set("/x", b""), a.delete("/x")):
        await refused(errors.NoNode, operation)
    answer = (await a.send([Exists("/x")]))[0]
    assert (answer.error, answer.stat) == ("NONODE", None)


@story
async def test_a_path_must_be_well_formed(world: World) -> None:
    a = await world.connect()
    for path in ("x", "/x//y", "/x/"):
        answer = (await a.send([Create(path)]))[0]
        assert answer.error in ("BADARGUMENTS", "NONODE")
    assert await world.store.dump() == {}


@story
async def test_a_write_can_ask_for_a_version(world: World) -> None:
    a = await world.connect()
    await a.create("/state", b"0")
    assert (await a.set("/state", b"1", 0)).version == 1
    await refused(errors.BadVersion, a.set("/state", b"2", 0))
    await refused(errors.BadVersion, a.delete("/state", 0))
    assert (await a.set("/state", b"3")).version == 2, "-1 stands for any version"
    assert (await a.get("/state"))[0] == b"3"
    await a.delete("/state", 2)
    await a.create("/state")
    assert (await a.get("/state"))[1].version == 0, "a new znode begins anew"


@story
async def test_versions_count_data_and_children_apart(world: World) -> None:
    a = await world.connect()
    await a.create("/topics")
    await a.create("/topics/a")
    await a.create("/topics/b")
    await a.delete("/topics/a")
    stat = (await a.get("/topics"))[1]
    assert (stat.version, stat.cversion, stat.num_children) == (0, 3, 1)
    await a.set("/topics", b"x")
    await a.set("/topics/b", b"x")
    stat = (await a.get("/topics"))[1]
    assert (stat.version, stat.cversion, stat.num_children) == (1, 3, 1)


@story
async def test_a_stat_has_every_field_of_zookeepers(world: World) -> None:
    """The store and a session read the same one; times do not go back, and zxids say what was last."""
    a = await world.connect()
    await a.create("/topics", b"abc")
    made = (await a.get("/topics"))[1]
    assert (made.mzxid, made.pzxid, made.mtime, made.data_length) == (made.czxid, made.czxid, made.ctime, 3)
    assert (made.ephemeral_owner, made.num_children, made.version, made.aversion) == (0, 0, 0, 0)
    await a.create("/topics/a", ephemeral=True)
    await a.set("/topics", b"abcde")
    await a.delete("/topics/a")
    (stat,) = [found] if (found := await a.exists("/topics")) else []
    assert made.czxid == stat.czxid < stat.mzxid < stat.pzxid
    assert made.ctime == stat.ctime <= stat.mtime
    assert (stat.data_length, stat.version, stat.cversion, stat.num_children) == (5, 1, 2, 0)
    assert await world.store.stat("/topics") == stat
    assert await world.store.stat("/nothing") is None


@story
async def test_a_transaction_that_is_refused_leaves_every_stat(world: World) -> None:
    a = await world.connect()
    await a.create("/topics", b"abc")
    before = await world.store.stat("/topics")
    answer = (await a.send([Multi((Set("/topics", b"x"), Create("/topics/a"), Check("/topics", 7)))]))[0]
    assert answer.error is not None
    assert await world.store.stat("/topics") == before


@story
async def test_zxids_tell_the_order_of_writes(world: World) -> None:
    a, b = await world.connect(), await world.connect()
    await a.create("/1")
    await b.create("/2")
    await a.create("/3")
    await b.set("/1", b"")
    one, two, three = [stat for path in ("/1", "/2", "/3") if (stat := await a.exists(path))]
    assert one.czxid < two.czxid < three.czxid < one.mzxid
    assert two.czxid == two.mzxid
    await a.create("/1/child")
    again = await a.exists("/1")
    assert again.mzxid == one.mzxid, "a child is no change of the data"
    await refused(errors.NodeExists, a.create("/1"))
    assert (await a.children("/1")) == ["child"]


@story
async def test_children_come_in_the_order_of_the_servers_hash_set(world: World) -> None:
    a = await world.connect()
    await a.create("/x")
    for name in ("alone", "orders", "payments", "users", "void", "empty"):
        await a.create(f"/x/{name}")
    await a.create("/x/alone/deeper")
    assert await a.children("/x") == ["alone", "orders", "void", "users", "payments", "empty"]
    for name in ("BB", "Aa"):
        await a.create(f"/x/{name}")
    assert await a.children("/x") == ["BB", "Aa", "alone", "void", "payments", "orders", "users", "empty"]
    await a.delete("/x/orders")
    await a.delete("/x/users")
    assert await a.children("/x") == ["BB", "Aa", "alone", "void", "payments", "empty"]
    answer = (await a.send([Children("/x/alone")]))[0]
    assert answer.value == ["deeper"]
    assert answer.stat.num_children == 1


@story
async def test_sequence_znodes_are_numbered_by_the_children_ever_made(world: World) -> None:
    a = await world.connect()
    await a.create("/q")
    assert await a.create("/q/n-", b"", sequence=True) == "/q/n-0000000000"
    await a.create("/q/plain")
    assert await a.create("/q/n-", b"", sequence=True) == "/q/n-0000000002"
    for name in await a.children("/q"):
        await a.delete(f"/q/{name}")
    assert await a.create("/q/m-", b"", sequence=True, ephemeral=True) == "/q/m-0000000003"


# Sessions and what they own.


@story
async def test_an_ephemeral_goes_when_its_session_is_closed(world: World) -> None:
    a, b = await world.connect("a"), await world.connect("b")
    await b.create("/ids")
    await a.create("/ids/1", b"", ephemeral=True)
    stat = await b.exists("/ids/1")
    assert stat.ephemeral_owner == a.session.id != b.id
    assert (await b.get("/ids"))[1].ephemeral_owner == 0
    await a.session.close()
    assert await b.children("/ids") == []
    assert a.states == [], "who closes a session need not be told"
    await refused(errors.SessionExpired, a.get("/ids"))


@story
async def test_nothing_lives_below_an_ephemeral(world: World) -> None:
    a = await world.connect()
    await a.create("/e", ephemeral=True)
    await refused(errors.NoChildrenForEphemerals, a.create("/e/child"))


@story
async def test_anybody_may_delete_an_ephemeral(world: World) -> None:
    a, b = await world.connect(), await world.connect()
    await a.create("/controller", b"1", ephemeral=True)
    await b.delete("/controller")
    await b.create("/controller", b"2")
    await a.close()
    assert (await b.get("/controller"))[0] == b"2", "the new one is not the closed session's"


@story
async def test_an_expired_session_is_reported_and_loses_its_ephemerals(world: World) -> None:
    a, b = await world.connect("a"), await world.connect("b")
    await a.create("/controller", b"", ephemeral=True)
    assert await b.session.exists("/controller", watch=True)
    world.store.expire(a.session)
    await world.until(lambda: "Expired" in a.states and b.events)
    assert a.states[-1] == "Expired"
    assert b.fired == [("NodeDeleted", "/controller")]
    assert await b.session.exists("/controller") is None
    await refused(errors.SessionExpired, a.create("/controller"))
    c = await world.connect("a")
    assert c.session.id != a.session.id
    await c.create("/controller", b"", ephemeral=True)


@story
async def test_the_server_notices_a_vanished_client_when_its_session_times_out(world: World) -> None:
    a, b = await world.connect("a", timeout=3), await world.connect("b")
    await a.create("/controller", b"", ephemeral=True)
    assert await b.session.exists("/controller", watch=True)
    gone = world.clock.now()
    a.session.abandon()
    assert await b.session.exists("/controller"), "it has not noticed yet"
    await world.until(lambda: b.events)
    assert b.fired == [("NodeDeleted", "/controller")]
    assert 0.5 <= world.clock.now() - gone < 10
    assert await b.session.exists("/controller") is None
    assert a.states == []


@story
async def test_a_session_that_ended_hears_nothing(world: World) -> None:
    a, b = await world.connect("a"), await world.connect("b")
    await a.session.exists("/x", watch=True)
    await a.session.close()
    await b.create("/x")
    await b.caught_up()
    assert a.events == []


# Watches.


async def watched(world: World) -> tuple[Client, Client]:
    """Two clients and a znode `/x`; the first will watch, the second will change."""
    a, b = await world.connect("a"), await world.connect("b")
    await b.create("/x", b"0")
    return a, b


async def reported(world: World, client: Client, *events: tuple[str, str]) -> None:
    """The client hears of exactly these."""
    await world.until(lambda: len(client.events) >= len(events))
    await client.caught_up()
    assert client.fired == list(events)


REPORTED: dict[str, tuple[list[Op], list[Op], list[tuple[str, str]]]] = {
    "a read without watch arms none": (
        [Get("/x"), Exists("/x"), Children("/x")],
        [Set("/x", b"1"), Create("/x/y")],
        [],
    ),
    "a data watch sees the deletion": ([Get("/x", True)], [Delete("/x")], [("NodeDeleted", "/x")]),
    "exists watches changes too": ([Exists("/x", True)], [Set("/x", b"1")], [("NodeDataChanged", "/x")]),
    "exists of a missing znode waits for its creation": (
        [Exists("/y", True)],
        [Create("/y"), Set("/y", b"1")],
        [("NodeCreated", "/y")],
    ),
    "a get of a missing znode arms nothing": ([Get("/y", True), Children("/y", True)], [Create("/y")], []),
    "a child watch sees the parent go": (
        [Children("/x", True), Children("/", True)],
        [Delete("/x")],
        [("NodeDeleted", "/x"), ("NodeChildrenChanged", "/")],
    ),
    "one deletion is reported once to a session with both watches": (
        [Get("/x", True), Children("/x", True)],
        [Delete("/x"), Create("/x"), Create("/x/y")],
        [("NodeDeleted", "/x")],
    ),
    "the creation of a child is no change of the parents data": ([Get("/x", True)], [Create("/x/y")], []),
    "a transaction fires the watches of its parts": (
        [Get("/x", True), Exists("/y", True), Children("/", True)],
        [Multi((Set("/x", b"1"), Create("/y"), Create("/z")))],
        [("NodeDataChanged", "/x"), ("NodeCreated", "/y"), ("NodeChildrenChanged", "/")],
    ),
}
"""What one session reads, what another one writes then, and the events that the first is notified of."""


@pytest.mark.parametrize(("reads", "writes", "events"), REPORTED.values(), ids=REPORTED)
@story
async def test_watches(world: World, reads: list[Op], writes: list[Op], events: list[tuple[str, str]]) -> None:
    a, b = await watched(world)
    missing = ["NONODE" if op.path == "/y" else None for op in reads]
    assert [answer.error for answer in await a.session.send(reads)] == missing
    assert not any(answer.error for answer in await b.session.send(writes))
    await reported(world, a, *events)


@story
async def test_a_watch_fires_once(world: World) -> None:
    a, b = await watched(world)
    await a.get("/x", watch=True)
    await b.set("/x", b"1")
    await b.set("/x", b"2")
    await reported(world, a, ("NodeDataChanged", "/x"))
    await a.get("/x", watch=True)
    await a.get("/x", watch=True)
    await b.set("/x", b"3")
    await b.set("/x", b"4")
    await reported(world, a, ("NodeDataChanged", "/x"), ("NodeDataChanged", "/x"))


@story
async def test_a_child_watch_sees_children_come_and_go_but_not_change(world: World) -> None:
    a, b = await watched(world)
    await a.children("/x", watch=True)
    await b.set("/x", b"1")
    await reported(world, a)
    await b.create("/x/y")
    await reported(world, a, ("NodeChildrenChanged", "/x"))
    await a.children("/x", watch=True)
    await b.set("/x/y", b"1")
    await reported(world, a, ("NodeChildrenChanged", "/x"))
    await b.delete("/x/y")
    await reported(world, a, *[("NodeChildrenChanged", "/x")] * 2)


@story
async def test_a_session_hears_of_its_own_writes(world: World) -> None:
    a, _ = await watched(world)
    await a.get("/x", watch=True)
    await a.set("/x", b"1")
    await reported(world, a, ("NodeDataChanged", "/x"))


@story
async def test_every_watching_session_is_reported(world: World) -> None:
    a, b = await watched(world)
    await a.get("/x", watch=True)
    await b.get("/x", watch=True)
    await b.set("/x", b"1")
    await reported(world, a, ("NodeDataChanged", "/x"))
    await reported(world, b, ("NodeDataChanged", "/x"))


@story
async def test_the_watch_is_seen_before_the_newer_data(world: World) -> None:
    a, b = await watched(world)
    for number in range(1, 21):
        await a.get("/x", watch=True)
        writing = world.clock.spawn(b.set("/x", b"%d" % number))
        while (await a.get("/x"))[0] != b"%d" % number:
            pass
        assert len(a.events) == number
        await writing


@story
async def test_a_closing_session_fires_the_watches_on_its_ephemerals(world: World) -> None:
    a, b = await watched(world)
    await b.create("/x/e", ephemeral=True)
    await a.session.exists("/x/e", watch=True)
    await a.children("/x", watch=True)
    await b.session.close()
    await reported(world, a, ("NodeDeleted", "/x/e"), ("NodeChildrenChanged", "/x"))


# Transactions and pipelines.


@story
async def test_a_transaction_does_all(world: World) -> None:
    a = await world.connect()
    await a.create("/old")
    await a.create("/x", b"0")
    parts = (Check("/x", 0), Set("/x", b"1", 0), Create("/x/y", b"new"), Create("/x/n-", sequence=True), Delete("/old"))
    answer = (await a.send([Multi(parts)]))[0]
    assert answer.error is None
    assert isinstance(answer.value, tuple)
    assert [part.error for part in answer.value] == [None] * 5
    assert [part.op for part in answer.value] == list(parts)
    assert [part.value for part in answer.value] == [None, None, "/x/y", "/x/n-0000000001", None]
    changed = answer.value[1].stat
    assert changed.version == 1
    assert await world.store.dump() == {"/x": (b"1", 1, 0), "/x/n-0000000001": (b"", 0, 0), "/x/y": (b"new", 0, 0)}
    made = await a.exists("/x/y")
    assert made.czxid == changed.mzxid, "one transaction, one zxid"


@story
async def test_a_transaction_does_nothing_if_one_part_fails(world: World) -> None:
    a, b = await watched(world)
    await b.create("/x/e", ephemeral=True)
    await a.get("/x", watch=True)
    await a.session.exists("/y", watch=True)
    before = await world.store.dump()
    parts = (Set("/x", b"1"), Create("/y"), Delete("/x/e"), Check("/x", 7), Create("/z"), Set("/x", b"2"))
    answer = (await b.session.send([Multi(parts)]))[0]
    assert isinstance(answer.value, tuple)
    assert [part.error for part in answer.value] == [
        "ROLLEDBACK",
        "ROLLEDBACK",
        "ROLLEDBACK",
        "BADVERSION",
        "RUNTIMEINCONSISTENCY",
        "RUNTIMEINCONSISTENCY",
    ]
    assert answer.error == "BADVERSION"
    with pytest.raises(errors.BadVersion):
        answer.checked()
    assert await world.store.dump() == before
    await reported(world, a)
    await b.session.close()
    assert await a.session.exists("/x/e") is None, "it still was the session's ephemeral"


@story
async def test_a_part_sees_what_the_parts_before_it_did(world: World) -> None:
    a = await world.connect()
    good = Multi((Create("/a"), Create("/a/b"), Set("/a", b"1", 0), Check("/a", 1), Delete("/a/b")))
    bad = Multi((Delete("/a"), Create("/a/b")))
    answers = await a.send([good, bad])
    assert [answer.error for answer in answers] == [None, "NONODE"]
    assert await world.store.dump() == {"/a": (b"1", 1, 0)}


@story
async def test_an_empty_transaction_is_no_trouble(world: World) -> None:
    a = await world.connect()
    assert [answer[1:3] for answer in await a.send([Multi(())])] == [(None, ())]
    assert await a.send([]) == []


@pytest.mark.parametrize("window", [1, 3, 10, 1000])
@story
async def test_answers_come_in_the_order_asked(world: World, window: int) -> None:
    a = await world.connect()
    await a.create("/x")
    ops = [op for n in range(50) for op in (Create(f"/x/{n}", b"%d" % n), Get(f"/x/{n}"), Create("/x"))]
    answers = await a.send(ops, window)
    assert [answer.op for answer in answers] == ops
    assert [answer.value for answer in answers[0::3]] == [f"/x/{n}" for n in range(50)]
    assert [answer.value for answer in answers[1::3]] == [b"%d" % n for n in range(50)]
    assert {answer.error for answer in answers[2::3]} == {"NODEEXISTS"}
    made = [stat.czxid for n in range(50) if (stat := await a.exists(f"/x/{n}"))]
    assert made == sorted(set(made))


@story
async def test_two_sends_of_one_session_keep_their_own_answers(world: World) -> None:
    a = await world.connect()
    await a.create("/x")
    first = world.clock.spawn(a.send([Create(f"/x/a{n}") for n in range(30)], 10))
    second = world.clock.spawn(a.send([Create(f"/x/b{n}") for n in range(30)], 3))
    assert [answer.value for answer in await first] == [f"/x/a{n}" for n in range(30)]
    assert [answer.value for answer in await second] == [f"/x/b{n}" for n in range(30)]


@story
async def test_a_dump_holds_every_znode(world: World) -> None:
    a = await world.connect()
    assert await world.store.dump() == {}
    await a.create("/brokers")
    await a.create("/brokers/ids")
    await a.create("/brokers/ids/1", b"{}", ephemeral=True)
    await a.set("/brokers", b"x")
    await a.create("/brokers-too")
    found = await world.store.dump()
    assert list(found) == ["/brokers", "/brokers-too", "/brokers/ids", "/brokers/ids/1"]
    assert found["/brokers"] == (b"x", 1, 0)
    assert found["/brokers/ids/1"] == (b"{}", 0, a.id)


# The trace.


@story
async def test_operations_and_watches_are_recorded_with_their_causes(world: World) -> None:
    a, b = await watched(world)
    seen: list[int | None] = []
    a.session.watcher = lambda event: seen.append(CAUSE.get())
    await a.get("/x", watch=True)
    await a.children("/x", watch=True)
    await b.set("/x", b"1")
    await world.until(lambda: len(seen) == 1)
    await b.create("/x/e", b"{}", ephemeral=True)
    await world.until(lambda: len(seen) == 2)
    await refused(errors.BadVersion, b.set("/x", b"2", 0))
    await b.session.send([Multi((Set("/x", b"3"), Check("/x", 9)))])
    await b.session.send([Multi((Check("/x", 1), Set("/x", b"4"), Delete("/x/e")))])
    await a.session.exists("/no")
    start = next(r.seq for r in world.trace if r.action == "get")
    reported = [
        (r.actor, r.kind, r.action, r.path, r.target, r.zk_version, r.error, r.detail) for r in world.trace.slice(start)
    ]
    assert reported == [
        ("a", "zk", "get", "/x", None, 0, None, None),
        ("a", "zk", "children", "/x", None, 0, None, None),
        ("b", "zk", "set", "/x", None, 1, None, "1"),
        ("a", "watch", "fired", "/x", "NodeDataChanged", None, None, None),
        ("b", "zk", "create", "/x/e", "ephemeral", 0, None, "{}"),
        ("a", "watch", "fired", "/x", "NodeChildrenChanged", None, None, None),
        ("b", "zk", "set", "/x", None, None, "BADVERSION", None),
        ("b", "zk", "multi", "/x", None, None, "BADVERSION", None),
        ("b", "zk", "set", "/x", None, 2, None, "4"),
        ("b", "zk", "delete", "/x/e", None, None, None, None),
        ("a", "zk", "exists", "/no", None, None, "NONODE", None),
    ]
    fired = [r for r in world.trace if r.kind == "watch"]
    assert [r.cause for r in fired] == [start + 2, start + 4]
    assert seen == [r.seq for r in fired]


@story
async def test_an_operation_is_recorded_with_the_cause_in_force_when_it_was_sent(world: World) -> None:
    a = await world.connect()
    token = CAUSE.set(7)
    await a.create("/x")
    CAUSE.reset(token)
    await a.set("/x", b"")
    assert [(r.action, r.cause) for r in world.trace.slice(path="/x")] == [("create", 7), ("set", None)]


@story
async def test_the_end_of_a_session_is_recorded_with_what_goes_along(world: World) -> None:
    a, b = await watched(world)
    await b.create("/x/e", ephemeral=True)
    await a.children("/x", watch=True)
    await b.session.close()
    await reported(world, a, ("NodeChildrenChanged", "/x"))
    end = next(r.seq for r in world.trace if r.action == "closed")
    records = [(r.actor, r.kind, r.action, r.path, r.cause) for r in world.trace.slice(end, end + 3)]
    assert records == [
        ("zookeeper", "zk", "closed", None, None),
        ("zookeeper", "zk", "delete", "/x/e", end),
        ("a", "watch", "fired", "/x", end + 1),
    ]


def test_an_error_is_raised_under_its_name() -> None:
    """No store is needed for this one."""
    from kafka_ctl.zookeeper.store import Result

    with pytest.raises(errors.NoNode, match="NONODE for /x"):
        Result(Get("/x"), "NONODE").checked()
    with pytest.raises(errors.ZooKeeperError, match="NOAUTH for /x") as raised:
        Result(Get("/x"), "NOAUTH").checked()
    assert raised.value.code == "NOAUTH"
    assert WatchedEvent("NodeCreated", "/x").path == "/x"


@story
async def test_an_expired_sessions_listener_learns_the_cause(world: World) -> None:
    a = await world.connect("a")
    seen: list[tuple[str, int | None]] = []
    a.session.listener = lambda state: seen.append((state, CAUSE.get()))
    world.store.expire(a.session)
    await world.until(lambda: seen and seen[-1][0] == "Expired")
    end = next(r for r in world.trace if r.action == "expired")
    assert seen[-1] == ("Expired", end.seq)
    assert end.actor == "zookeeper"
