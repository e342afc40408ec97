"""A lab that begins as a real cluster has everything that ZooKeeper knows of it."""

import json

import pytest
from foreign import read, taken_over
from labs import by_hand, lab_of, play, until_quiet
from prose import Prose

from kafka_ctl import BadInput, Lab, Unavailable
from kafka_ctl.foreign.cluster import release_of
from kafka_ctl.lab.foreign import options_of
from kafka_ctl.zookeeper.store import Create, Delete, Set

LOG_DIRS, STATE = "/log_dir_event_notification", "/brokers/topics/t/partitions/0/state"


def eventful(generation: str) -> Lab:
    """Leaders have moved, a broker is down, and requests wait for it."""
    lab = Lab(brokers={1: "a", 2: "b", 3: "a", 4: "b"}, generation=generation, seed=5)
    lab.create_topic("orders", partitions=5, replication_factor=3, config={"min.insync.replicas": 2})
    until_quiet(lab.create_topic, "old", assignment={0: [4, 1], 1: [4, 2]})
    until_quiet(lab.kill, lab.controller.id)
    play(lab, "elect_preferred; settle; delete_topic old; settle")
    if generation == "0.10":
        by_hand(lab, Delete(LOG_DIRS))
    return lab


def test_the_lab_is_what_was_read(generation: str) -> None:
    """Partitions with their epochs and versions, racks, settings, the controller, and requests; and so is its story."""
    with eventful(generation) as real, taken_over(real) as lab:
        assert lab.generation.name == generation
        assert [p._replace(state="") for p in lab.partitions()] == [p._replace(state="") for p in real.partitions()]
        assert lab.controller == real.controller
        assert {id: broker.state for id, broker in lab.brokers.items()} == {
            id: broker.state for id, broker in real.brokers.items()
        }
        brokers = read(real).brokers
        assert {id: lab.brokers[id].rack for id in brokers} == {id: real.brokers[id].rack for id in brokers}
        asked = [path for path in real.znodes() if path.startswith(("/admin/", "/config/topics/orders"))]
        assert {path: lab.znodes()[path][0] for path in asked} == {path: real.znodes()[path][0] for path in asked}
        assert not lab.violations
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)


def test_the_lab_goes_on_from_the_versions() -> None:
    """The next write of a state has the next version, as in the real cluster."""
    with eventful("2.4") as real, taken_over(real) as lab:
        for each in (real, lab):
            until_quiet(each.kill, each.partition("orders", 0).leader)
        assert lab.partition("orders", 0) == real.partition("orders", 0)


NEWER = {
    "/brokers/topics/t": b'{"removing_replicas":{},"partitions":{"0":[1,2]},"topic_id":"x","version":3}',
    "/controller": b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}',
}
"""Znodes as Kafka 3.4 to 3.9 write them."""


def test_a_newer_cluster_is_played_by_the_nearest_generation() -> None:
    """The differences are named, and defaults that changed are those of the newer release."""
    with lab_of("t", {0: [1, 2]}, brokers=[1, 2], generation="2.4", seed=1) as real:
        by_hand(real, *(Set(path, data) for path, data in NEWER.items()))
        with taken_over(real, settle=False) as lab:
            assert lab.origin is not None
            assert lab.origin.release.oldest == (3, 4)
            assert lab.generation.name == "2.4"
            assert "AlterPartition" in str(lab.origin)
            assert lab.opening["config"]["zookeeper.session.timeout.ms"] == 18000
            assert "zookeeper.session.timeout.ms=18000" in lab.origin.notes[-1]


@pytest.mark.parametrize(
    ("generation", "controller", "bounds"),
    [
        ("2.0", True, ((1, 0), (2, 0), "2.0")),
        ("2.4", True, ((2, 1), (2, 6), "2.4")),
        ("2.4", False, ((1, 0), (2, 6), "2.0")),
    ],
)
def test_a_cluster_whose_topics_are_older(generation: str, controller: bool, bounds: tuple[object, ...]) -> None:
    """Topics that an older release made: one transaction with `/controller` and its epoch is a sign of 2.1."""
    with lab_of("t", {0: [1, 2]}, brokers=[1, 2], generation=generation, seed=1) as real:
        by_hand(real, Set("/brokers/topics/t", b'{"version":1,"partitions":{"0":[1,2]}}'))
        cluster = read(real)
        if not controller:
            del cluster.znodes["/controller"]
        found = release_of(cluster)
        assert (found.oldest, found.newest, found.generation) == bounds
        assert bool(found.differences) == (found.oldest == (2, 1))


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (Create("/migration", b'{"version":0}'), Unavailable),
        (Set("/controller", b'{"version":2,"brokerid":3000,"kraftControllerEpoch":5}'), Unavailable),
        (Set("/brokers/topics/t", b"{"), BadInput),
        (Set("/brokers/topics/t", b'{"version":99,"partitions":{}}'), BadInput),
        (Set(STATE, b"[1]"), BadInput),
        (Create("/brokers/topics/<b>", b'{"version":1,"partitions":{"0":[1]}}'), BadInput),
        (Set(STATE, b'{"leader":7,"isr":[7],"leader_epoch":0,"controller_epoch":1}'), BadInput),
    ],
)
def test_what_cannot_be_played_is_refused(op: Create | Set, error: type[Exception], prose: Prose) -> None:
    """Each in one sentence that names the znode."""
    with lab_of("t", {0: [1, 2]}, brokers=[1, 2], seed=1, settle=True) as real:
        by_hand(real, op)
        prose.refuses(error, options_of, "zk:2181/kafka", read(real), {})


def test_a_cluster_wide_setting_that_the_lab_cannot_have_is_a_note() -> None:
    """Out of range, far too long, of another type, or not obeyed: the cluster is taken over without it."""
    texts = {"num.partitions": "0", "min.insync.replicas": "9" * 5000, "delete.topic.enable": "1", "log.dirs": "/"}
    with Lab(brokers=2, seed=1) as lab:
        config = json.dumps({"version": 1, "config": texts | {"unclean.leader.election.enable": "TRUE"}})
        by_hand(lab, Create("/config/brokers/<default>", config.encode()))
        with taken_over(lab) as again:
            assert [key for key in texts if any(f" {key}=" in note for note in again.origin.notes)] == list(texts)
            assert again.world.config["unclean.leader.election.enable"] is True
