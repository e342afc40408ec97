"""What others have written into znodes is understood, or named in one sentence and not shown."""

import pytest
from foreign import read, watched
from labs import by_hand, lab_of, play
from prose import Prose
from zookeepers import MemoryWorld

from kafka_ctl import BadInput, Lab, Unavailable
from kafka_ctl.cli.watch import rows
from kafka_ctl.foreign import reading
from kafka_ctl.foreign.read_only import ReadOnlyStore
from kafka_ctl.foreign.reading import Reader
from kafka_ctl.foreign.watch import Watch
from kafka_ctl.visible import visible
from kafka_ctl.zookeeper.store import Create, Delete, Exists, Op, Result, Set

TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"


def played() -> Lab:
    return lab_of("t", {0: [1, 2], 1: [2, 1]}, brokers=[1, 2], seed=1)


HOSTILE = (
    Set(TOPIC, b"{"),
    Set(TOPIC, b"\xff"),
    Set(TOPIC, b'{"version":9,"partitions":{"0":[1]}}'),
    Set(TOPIC, b'{"partitions":{"0":[true]}}'),
    Set(TOPIC, b"[" * 100_000),
    Set(STATE, b'{"leader":"<script>","isr":[1],"leader_epoch":0,"controller_epoch":1}'),
    Set(STATE, b'{"leader":1,"isr":[1],"leader_epoch":[0],"controller_epoch":1}'),
    Set("/controller_epoch", b"many"),
    Set("/controller", b'{"brokerid":1e99}'),
    Create("/admin/reassign_partitions", b'{"partitions":[{"topic":"t"}]}'),
    Create("/admin/preferred_replica_election", b"\x1b[2J"),
    Create("/brokers/topics/<img src=x onerror=alert(1)>", b'{"partitions":{"0":[1]}}'),
    Create("/brokers/topics/\u202ered", b'{"partitions":{"0":[1]}}'),
    Create("/brokers/ids/9", b'{"version":77}'),
    Create("/config/topics/t2", b'{"config":[]}'),
)


def test_a_znode_is_left_out_as_a_whole_and_named(prose: Prose) -> None:
    """One sentence each, in which no terminal finds an order; the watch goes on, also at the next good write."""
    with played() as lab:
        good = {path: data for path, (data, _, _) in lab.znodes().items()}
    world = MemoryWorld()  # without brokers: a controller of Kafka fails at most of these

    async def write(*ops: Op) -> None:
        for op in ops:
            await hand.ask(op)

    hand = world.run(world.connect())
    world.run(write(*(Create(path, data) for path, data in sorted(good.items()))))
    with Watch(ReadOnlyStore(world.store), world.clock, "zk:2181") as watch:
        for op in HOSTILE:
            world.run(write(op))
            watch.settle()
            (problem,) = watch.problems
            prose(visible(problem))
            assert ("not understood", problem) in rows(watch)
            watch.live()  # a picture of it can be drawn
            world.run(write(Set(op.path, good[op.path]) if op.path in good else Delete(op.path)))
            watch.settle()
            assert watch.problems == ()
        assert watch.failed is None
    world.close()


class Forbidding:
    """A session to which the ACLs of some znodes give no READ."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    async def send(self, ops: list[Op], window: int = 1) -> list[Result]:
        return [
            Result(op, "NOAUTH" if op.path in self.paths else None, [], None)
            if isinstance(op, Exists) or op.path in self.paths
            else Result(op, "NONODE")
            for op in ops
        ]


def test_missing_rights_are_named() -> None:
    """Without the brokers there is nothing to show; without settings of brokers there is, as in a secured cluster."""
    with played() as lab:
        for path in ("/brokers/ids", "/brokers/topics"):
            with pytest.raises(Unavailable, match=f"{path} .*NOAUTH.*READ"):
                lab.world.run(Reader("zk:2181").read(Forbidding(path), parents=[path]))  # type: ignore[arg-type]
        reader = Reader("zk:2181")
        lab.world.run(reader.read(Forbidding("/config/brokers"), parents=["/config/brokers"]))  # type: ignore[arg-type]
        assert "NOAUTH" in reader.cluster.problems["/config/brokers"]


def test_a_cluster_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of znodes is bounded, whatever lists of children there are."""
    monkeypatch.setattr(reading, "MOST_ZNODES", 15)
    with played() as lab, pytest.raises(BadInput, match="more than 15 znodes"):
        read(lab)


def test_where_no_kafka_is_nothing_is_shown() -> None:
    with Lab(brokers=1, settle=False) as lab, pytest.raises(Unavailable, match="no /brokers/ids at zk:2181/kafka: "):
        read(lab)


def test_nothing_is_inferred_while_a_cluster_migrates() -> None:
    """A KRaft controller acts then: facts go on, causes do not."""
    with played() as lab, watched(lab) as watch:
        by_hand(lab, Create("/migration", b'{"version":0}'))
        play(lab, "kill 2; settle")
        watch.settle()
        assert "KRaft" in watch.migrates
        assert {r.kind for r in watch.trace[watch.opened :]} == {"zk"}
        assert ("migration", "KRaft") in [(name, "KRaft" * ("KRaft" in text)) for name, text in rows(watch)]
        by_hand(lab, Delete("/migration"))
        watch.settle()
        after = len(watch.trace)
        play(lab, "start 2; settle")
        watch.settle()
        seen = watch.trace[after:]
        assert seen.slice(action="expand-isr")
        assert not seen.slice(kind={"election", "partition"}), "the elections in the migration are no news"
