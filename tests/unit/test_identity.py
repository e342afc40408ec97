"""Broker ids: configured, remembered in meta.properties, drawn from ZooKeeper, and everything that does not match."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from labs import process_of
from prose import Prose, source

from kafka_ctl import Generation, Lab
from kafka_ctl.brokers.identity import BrokerMetadata, check_configured, decide, remembered
from kafka_ctl.errors import BadInput, IdentityError, UnknownName
from kafka_ctl.generation import DEFAULTS
from kafka_ctl.views.figures.broker_identity import broker_identity
from kafka_ctl.views.frames import film

generations = pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])
OLD, NEW = Generation("2.0"), Generation("2.4")
CLUSTER = "kafka-ctl-teaching-kit"


# Decisions


@pytest.mark.parametrize(
    ("configured", "stored", "generated", "id"),
    [
        (5, None, True, 5),
        (5, 5, True, 5),
        (-1, 7, True, 7),
        (-1, None, True, None),  # to be generated
        (-1, 7, False, 7),
        (-1, None, False, -1),  # Kafka refuses this configuration before it comes to that
    ],
)
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


@pytest.mark.parametrize(
    ("id", "settings", "reported"),
    [
        (-1, {}, None),
        (1000, {}, None),
        (1001, {}, "equal or greater than -1 and not greater than reserved.broker.max.id"),
        (-2, {}, "equal or greater than -1 and not greater than reserved.broker.max.id"),
        (1001, {"broker.id.generation.enable": False}, None),
        (-1, {"broker.id.generation.enable": False}, "broker.id must be equal or greater than 0"),
        (3, {"reserved.broker.max.id": 2}, "not greater than reserved.broker.max.id"),
    ],
)
def test_which_ids_a_configuration_may_have(id: int, settings: dict[str, object], reported: str | None) -> None:
    if reported is None:
        assert check_configured(id, DEFAULTS | settings) == id
    else:
        with pytest.raises(BadInput, match=rf"^requirement failed: .*{reported}"):
            check_configured(id, DEFAULTS | settings)


# In a cluster


@generations
def test_brokers_without_an_id_get_the_next_numbers(generation: str) -> None:
    with Lab(brokers=[1, None, None], generation=generation, seed=3) as lab:
        assert sorted(lab.brokers) == [1, 1001, 1002]
        assert {"/brokers/ids/1001", "/brokers/ids/1002"} <= lab.znodes().keys()
        assert lab.znodes()["/brokers/seqid"][1] == 2  # the version is the sequence
        lab.create_topic("orders", assignment={0: [1002, 1, 1001]})
        lab.settle()
        assert lab.partition("orders", 0).leader == 1002
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)


@generations
def test_a_generated_id_outlives_the_process(generation: str) -> None:
    with Lab(brokers=[1, None], generation=generation, seed=3) as lab:
        lab.kill(1001)
        lab.settle()
        lab.start(1001)
        lab.settle()
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


@generations
def test_a_changed_configuration_keeps_a_broker_from_starting(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=3) as lab:
        lab.shutdown(3)
        lab.set_broker_id(3, 7)
        lab.start(3)
        lab.settle()
        assert lab.brokers[3].state == "down"
        error, detail = stopped(lab)
        assert error == "InconsistentBrokerId"
        assert detail is not None
        assert detail.startswith("Configured broker.id 7 doesn't match stored broker.id 3 in meta.properties.")
        for directory in ("/d0", "/d1"):  # all data removed: a new broker
            lab.set_meta(3, directory, None)
        lab.start(3)
        lab.settle()
        assert sorted(lab.brokers) == [1, 2, 7]
        assert "/brokers/ids/7" in lab.znodes()


@generations
def test_a_directory_of_another_broker_keeps_a_broker_from_starting(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=3) as lab:
        lab.kill(3)
        lab.settle()
        lab.set_meta(3, "/d1", 2)
        lab.start(3)
        lab.settle()
        expected = "InconsistentBrokerMetadata" if generation == "2.4" else "InconsistentBrokerId"
        assert stopped(lab)[0] == expected
        lab.set_meta(3, "/d1", 3, CLUSTER if generation == "2.4" else None)
        lab.start(3)
        lab.settle()
        assert lab.brokers[3].state == "running"


def test_another_clusters_disks_are_refused_by_2_4() -> None:
    with Lab(brokers=2, generation="2.4", seed=3) as lab:
        lab.kill(2)
        lab.settle()
        for directory in ("/d0", "/d1"):
            lab.set_meta(2, directory, 2, "another")
        lab.start(2)
        lab.settle()
        assert stopped(lab)[0] == "InconsistentClusterId"


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
@pytest.mark.parametrize("clusters", [("another", "another"), ("another", None), ("one", "two")])
def test_a_cluster_on_the_disks_is_not_read_before_2_4(generation: str, clusters: tuple[str | None, ...]) -> None:
    """KAFKA-7335. Kafka 2.0.1: server/BrokerMetadataCheckpoint.scala, read, knows `version` and `broker.id` only."""
    with Lab(brokers=2, generation=generation, seed=3) as lab:
        lab.kill(2)
        lab.settle()
        for directory, cluster in zip(("/d0", "/d1"), clusters, strict=True):
            lab.set_meta(2, directory, 2, cluster)
        lab.start(2)
        lab.settle()
        assert lab.brokers[2].state == "running"


def test_an_id_that_is_taken(prose: Prose) -> None:
    """The disks of 2 with the files of 1."""
    with Lab(brokers=2, seed=3) as lab:
        lab.kill(2)
        lab.settle()
        lab.set_broker_id(2, None)
        for directory in ("/d0", "/d1"):
            lab.set_meta(2, directory, 1)
        lab.start(2)
        lab.settle()
        error, detail = stopped(lab)
        assert error == "NodeExists"
        prose(detail)
        assert lab.brokers[1].state == "running"
        assert lab.brokers[2].state == "down"


def test_brokers_join_a_running_cluster(prose: Prose) -> None:
    with Lab(brokers=1, seed=3) as lab:
        lab.add_broker(5, rack="r1")
        lab.add_broker()
        lab.settle()
        assert sorted(lab.brokers) == [1, 5, 1001]
        assert lab.brokers[5].rack == "r1"
        with prose.refused(BadInput):
            lab.add_broker(5)
        with pytest.raises(BadInput, match=r"not greater than reserved.broker.max.id"):
            lab.add_broker(1001)


def test_it_is_reported_and_shown() -> None:
    with Lab(brokers=[1, None], seed=3) as lab:
        lab.add_broker()
        lab.settle()
        lab.kill(1002)
        lab.settle()
        lab.set_broker_id(1002, None)
        lab.set_meta(1002, "/d1", 5, "elsewhere")
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
        with prose.refused(BadInput):
            call(lab)
        assert lab.story == before
        assert sorted(lab.brokers) == [1, 2]


def test_an_id_above_the_reserved_ones_was_generated_once() -> None:
    """So a described cluster may have such ids, and they are on the disks."""
    with Lab(brokers=[1, 1004], seed=3) as lab:
        assert sorted(lab.brokers) == [1, 1004]
        assert process_of(lab, 1004).configured == -1
        lab.kill(1004)
        lab.settle()
        lab.start(1004)
        lab.settle()
        assert lab.brokers[1004].state == "running"


def test_what_says_an_id_is_shown(prose: Prose) -> None:
    """Before the start: configuration, files, ids given out, and what contradicts; as a picture, too."""
    lab = Lab(brokers=3, generation="2.4", seed=7)
    lab.add_broker()
    lab.settle()
    assert lab.identity(1001)[1:4:2] == (-1, 1) and lab.identity(1001).problem is None
    prose(repr(broker_identity(lab.identity(1001))))
    lab.kill(3)
    lab.set_meta(3, "/d0", None)
    lab.set_meta(3, "/d1", None)
    assert lab.identity(3).files == {"/d0": None, "/d1": None}
    lab.set_broker_id(3, None)
    prose(repr(broker_identity(lab.identity(3))))
    lab.set_broker_id(3, 3)
    lab.set_meta(3, "/d1", 2)
    view = lab.identity(3)
    assert view.problem == decided(lab, 3) and view.files["/d1"].text == "version=0\nbroker.id=2\n"
    prose(repr(broker_identity(view)))
    with pytest.raises(UnknownName, match="broker 9"):
        lab.identity(9)


def decided(lab: Lab, broker: int) -> str | None:
    """What the broker says when it is started."""
    lab.start(broker)
    lab.settle()
    return lab.trace.slice(kind="broker", action="stopped", broker=broker)[-1].detail
