"""Broker ids: configured, remembered in meta.properties, drawn from ZooKeeper, and everything that does not match."""

from collections.abc import Callable

import pytest
from labs import play, process_of, until_quiet
from prose import Prose, refuses, source
from tables import tabled

from kafka_ctl import Generation, Lab
from kafka_ctl.brokers.identity import BrokerMetadata, check_configured, decide, remembered
from kafka_ctl.errors import BadInput, IdentityError, UnknownName
from kafka_ctl.generation import DEFAULTS
from kafka_ctl.views.frames import film
from kafka_ctl_course.figures.broker_identity import broker_identity

OLD, NEW = Generation("2.0"), Generation("2.4")
CLUSTER = "kafka-ctl-teaching-kit"


# Decisions


@tabled
def test_which_id_it_is(configured: int, stored: int | None, generated: bool, id: int | None) -> None:
    meta = None if stored is None else BrokerMetadata(stored)
    assert decide(configured, meta, CLUSTER, DEFAULTS | {"broker.id.generation.enable": generated}) == id


def test_configuration_and_disks_must_agree() -> None:
    with pytest.raises(IdentityError) as error:
        decide(5, BrokerMetadata(7), CLUSTER, DEFAULTS)
    assert error.value.code == "InconsistentBrokerId"
    assert str(error.value) == (
        "Configured broker.id 5 doesn't match stored broker.id 7 in meta.properties. If you moved your data, make sure "
        "your configured broker.id matches. If you intend to create a new broker, you should remove all data in your "
        "data directories (log.dirs)."
    )


def test_log_directories_must_agree() -> None:
    assert remembered({"/d0": None, "/d1": None}, OLD) is None
    assert remembered({"/d0": None, "/d1": BrokerMetadata(3)}, OLD) == BrokerMetadata(3)
    with pytest.raises(IdentityError) as error:
        remembered({"/d0": BrokerMetadata(1), "/d1": BrokerMetadata(2)}, OLD)
    assert error.value.code == "InconsistentBrokerId"
    assert str(error.value) == (
        "Failed to match broker.id across log.dirs. This could happen if multiple brokers shared a log directory "
        "(log.dirs) or partial data was manually copied from another broker. Found Set(1, 2)"
    )


def test_since_2_4_they_also_remember_the_cluster() -> None:
    """KAFKA-7335."""
    files = {"/d0": BrokerMetadata(1, "a"), "/d1": BrokerMetadata(1, "b")}
    with pytest.raises(IdentityError) as error:
        remembered(files, NEW)
    assert error.value.code == "InconsistentBrokerMetadata"
    assert str(error.value).endswith(
        "Found:\n- /d0 -> BrokerMetadata(brokerId=1, clusterId=a)\n- /d1 -> BrokerMetadata(brokerId=1, clusterId=b)\n"
    )
    with pytest.raises(IdentityError) as error:
        decide(1, BrokerMetadata(1, "another"), CLUSTER, DEFAULTS)
    assert error.value.code == "InconsistentClusterId"
    assert str(error.value).startswith(f"The Cluster ID {CLUSTER} doesn't match stored clusterId Some(another) in meta")


@tabled
def test_which_ids_a_configuration_may_have(id: int, settings: dict[str, object], reported: str | None) -> None:
    if reported is None:
        assert check_configured(id, DEFAULTS | settings) == id
    else:
        refuses(BadInput, rf"^requirement failed: .*{reported}", check_configured, id, DEFAULTS | settings)


# In a cluster


def test_brokers_without_an_id_get_the_next_numbers(generation: str) -> None:
    with Lab(brokers=[1, None, None], generation=generation, seed=3) as lab:
        assert sorted(lab.brokers) == [1, 1001, 1002]
        assert {"/brokers/ids/1001", "/brokers/ids/1002"} <= lab.znodes().keys()
        assert lab.znodes()["/brokers/seqid"][1] == 2  # the version is the sequence
        until_quiet(lab.create_topic, "orders", assignment={0: [1002, 1, 1001]})
        assert lab.partition("orders", 0).leader == 1002
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)


def test_a_generated_id_outlives_the_process(generation: str) -> None:
    with Lab(brokers=[1, None], generation=generation, seed=3) as lab:
        play(lab, "kill 1001; settle; start 1001; settle")
        assert sorted(lab.brokers) == [1, 1001]
        assert lab.brokers[1001].state == "running"
        assert lab.znodes()["/brokers/seqid"][1] == 1


def test_where_numbers_begin_is_configured() -> None:
    with Lab(brokers=[None], seed=3, config={"reserved.broker.max.id": 7}) as lab:
        assert sorted(lab.brokers) == [8]
    with pytest.raises(BadInput, match=r"broker.id must be equal or greater than 0$"):
        Lab(brokers=[1, None], config={"broker.id.generation.enable": False})


def test_the_file_is_written_after_registration_only() -> None:
    """A broker whose place is taken leaves no file behind."""
    with Lab(brokers=2, seed=3) as lab:
        assert process_of(lab, 1).disk.meta == {"/d0": BrokerMetadata(1), "/d1": BrokerMetadata(1)}
        lab.add_broker()
        process = process_of(lab, -1)
        lab.run_until(lambda lab: -1 not in lab.brokers, limit=1)
        assert process.disk.meta == {"/d0": None, "/d1": None}
        lab.settle()
        assert process.disk.meta == {"/d0": BrokerMetadata(1001), "/d1": BrokerMetadata(1001)}


def test_2_4_writes_the_cluster_too() -> None:
    with Lab(brokers=1, seed=3, generation="2.4") as lab:
        assert set(process_of(lab, 1).disk.meta.values()) == {BrokerMetadata(1, CLUSTER)}


def stopped(lab: Lab) -> tuple[str | None, str | None]:
    """Why the last process that stopped did so."""
    last = next(r for r in reversed(list(lab.trace)) if r.kind == "broker" and r.action == "stopped")
    return last.error, last.detail


def test_a_changed_configuration_keeps_a_broker_from_starting(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=3) as lab:
        play(lab, "shutdown 3; set_broker_id 3 7; start 3; settle")
        assert lab.brokers[3].state == "down"
        error, detail = stopped(lab)
        assert error == "InconsistentBrokerId"
        assert detail.startswith("Configured broker.id 7 doesn't match stored broker.id 3 in meta.properties.")
        assert lab.trace[-1].action == "closed"  # its session: Kafka shuts down as usual
        for directory in ("/d0", "/d1"):  # all data removed: a new broker
            lab.set_meta(3, directory, None)
        until_quiet(lab.start, 3)
        assert sorted(lab.brokers) == [1, 2, 7]
        assert "/brokers/ids/7" in lab.znodes()


def test_a_directory_of_another_broker_keeps_a_broker_from_starting(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=3) as lab:
        play(lab, "kill 3; settle; set_meta 3 /d1 2; start 3; settle")
        expected = "InconsistentBrokerMetadata" if generation == "2.4" else "InconsistentBrokerId"
        assert stopped(lab)[0] == expected
        lab.set_meta(3, "/d1", 3, CLUSTER if generation == "2.4" else None)
        until_quiet(lab.start, 3)
        assert lab.brokers[3].state == "running"


def test_another_clusters_disks_are_refused_by_2_4() -> None:
    with Lab(brokers=2, generation="2.4", seed=3) as lab:
        until_quiet(lab.kill, 2)
        for directory in ("/d0", "/d1"):
            lab.set_meta(2, directory, 2, "another")
        until_quiet(lab.start, 2)
        assert stopped(lab)[0] == "InconsistentClusterId"


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
@pytest.mark.parametrize("clusters", [("another", "another"), ("another", None), ("one", "two")])
def test_a_cluster_on_the_disks_is_not_read_before_2_4(generation: str, clusters: tuple[str | None, ...]) -> None:
    """KAFKA-7335. Kafka 2.0.1: server/BrokerMetadataCheckpoint.scala, read, knows `version` and `broker.id` only."""
    with Lab(brokers=2, generation=generation, seed=3) as lab:
        until_quiet(lab.kill, 2)
        for directory, cluster in zip(("/d0", "/d1"), clusters, strict=True):
            lab.set_meta(2, directory, 2, cluster)
        until_quiet(lab.start, 2)
        assert lab.brokers[2].state == "running"


def test_an_id_that_is_taken(prose: Prose) -> None:
    """The disks of 2 with the files of 1."""
    with Lab(brokers=2, seed=3) as lab:
        play(lab, "kill 2; settle; set_broker_id 2 null")
        for directory in ("/d0", "/d1"):
            lab.set_meta(2, directory, 1)
        until_quiet(lab.start, 2)
        error, detail = stopped(lab)
        assert error == "NodeExists"
        prose(detail)
        assert lab.brokers[1].state == "running"
        assert lab.brokers[2].state == "down"


def test_brokers_join_a_running_cluster(prose: Prose) -> None:
    with Lab(brokers=1, seed=3) as lab:
        play(lab, "add_broker broker=5 rack=r1; add_broker; settle")
        assert sorted(lab.brokers) == [1, 5, 1001]
        assert lab.brokers[5].rack == "r1"
        prose.refuses(BadInput, lab.add_broker, 5)
        refuses(BadInput, r"not greater than reserved.broker.max.id", lab.add_broker, 1001)


def test_it_is_reported_and_shown() -> None:
    with Lab(brokers=[1, None], seed=3) as lab:
        play(lab, "add_broker; settle; kill 1002; settle; set_broker_id 1002 null")
        play(lab, "set_meta 1002 /d1 5 cluster=elsewhere")
        faults = [(r.action, r.broker, r.detail) for r in lab.trace if r.kind == "fault"]
        assert faults == [
            ("add_broker", None, "broker.id=-1"),
            ("kill", 1002, None),
            ("set_broker_id", 1002, "broker.id=-1"),
            ("set_meta", 1002, "/d1: BrokerMetadata(brokerId=5, clusterId=elsewhere)"),
        ]
        captions = [frame.caption for frame in film(lab.trace).frames]
        assert any("A broker joins the cluster" in caption for caption in captions)


@pytest.mark.parametrize(
    "call",
    [
        lambda lab: lab.set_broker_id(2, 1),
        lambda lab: lab.set_broker_id(1, -5),
        lambda lab: lab.set_meta(1, "/d2", 1),
        lambda lab: lab.set_meta(1, "/d0", "one"),
        lambda lab: lab.set_meta(1, "/d0", 1, 5),
        lambda lab: lab.add_broker(4, rack=7),
    ],
    ids=source,
)
def test_what_is_no_id_is_refused(prose: Prose, call: Callable[[Lab], None]) -> None:
    with Lab(brokers=2, seed=3) as lab:
        lab.kill(1)
        before = lab.story
        prose.refuses(BadInput, call, lab)
        assert lab.story == before
        assert sorted(lab.brokers) == [1, 2]


def test_an_id_above_the_reserved_ones_was_generated_once() -> None:
    """So a described cluster may have such ids, and they are on the disks."""
    with Lab(brokers=[1, 1004], seed=3) as lab:
        assert sorted(lab.brokers) == [1, 1004]
        assert process_of(lab, 1004).configured == -1
        play(lab, "kill 1004; settle; start 1004; settle")
        assert lab.brokers[1004].state == "running"


def test_what_says_an_id_is_shown(prose: Prose) -> None:
    """Before the start: configuration, files, ids given out, and what contradicts; as a picture, too."""
    lab = Lab(brokers=3, generation="2.4", seed=7)
    until_quiet(lab.add_broker)
    assert lab.identity(1001)[1:4:2] == (-1, 1) and lab.identity(1001).problem is None
    prose(repr(broker_identity(lab.identity(1001))))
    play(lab, "kill 3; set_meta 3 /d0 null; set_meta 3 /d1 null")
    assert lab.identity(3).files == {"/d0": None, "/d1": None}
    lab.set_broker_id(3, None)
    prose(repr(broker_identity(lab.identity(3))))
    play(lab, "set_broker_id 3 3; set_meta 3 /d1 2")
    view = lab.identity(3)
    assert view.problem == decided(lab, 3) and view.files["/d1"].text == "version=0\nbroker.id=2\n"
    prose(repr(broker_identity(view)))
    refuses(UnknownName, "broker 9", lab.identity, 9)


def decided(lab: Lab, broker: int) -> str | None:
    """What the broker says when it is started."""
    until_quiet(lab.start, broker)
    return lab.trace.slice(kind="broker", action="stopped", broker=broker)[-1].detail
