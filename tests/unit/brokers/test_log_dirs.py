"""Copies that move between the log directories of a broker, asked for by Kafka's reassignment tool (KIP-113)."""

import json
from collections.abc import Iterator

import pytest
from labs import lab_of, process_of, until_quiet
from prose import Prose, refuses

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.errors import ApiException, BadInput
from kafka_ctl.views.captions import caption
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
able = pytest.mark.parametrize("generation", ["2.0", "2.4"])


def opened(generation: str = "2.0", **options: object) -> Lab:
    """Three brokers, and one partition whose copies lie in `/d0`."""
    return lab_of("orders", {0: [1, 2]}, brokers=3, generation=generation, seed=3, **options)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with opened() as made:
        yield made


def plan(replicas: list[int], log_dirs: list[str]) -> str:
    entry = {"topic": "orders", "partition": 0, "replicas": replicas, "log_dirs": log_dirs}
    return json.dumps({"version": 1, "partitions": [entry]})


def places(lab: Lab) -> dict[int, tuple[str | None, str | None]]:
    """By broker: where its copy lies, and where it is being moved to."""
    return {at.broker: (at.path, at.future) for at in lab.log_dirs()}


def steps(lab: Lab, broker: int) -> list[tuple[str, str | None, str | None]]:
    """What a broker did with log directories."""
    return [(r.action, r.error, r.detail) for r in lab.trace if r.broker == broker and r.action.startswith("log-dir-")]


def deaf_controller(lab: Lab) -> tuple[int, int]:
    """Cut the controller off from ZooKeeper, so that it hears of no request; a broker with a copy, and one without."""
    controller = lab.controller
    lab.disconnect(controller.id, "zookeeper")
    staying, gaining = lab.partition("orders", 0).replicas[0], 3
    assert controller.id != gaining
    return staying, gaining


def rates(lab: Lab) -> dict[int, str | None]:
    found = {}
    for broker in (1, 2, 3):
        znode = lab.znodes().get(ConfigEntityZNode.path("brokers", str(broker)))
        config = ConfigEntityZNode.decode(znode[0], "brokers", str(broker)) if znode else {}
        found[broker] = config.get(RATE)
    return found


@able
def test_a_copy_moves_to_the_other_directory_of_its_broker(generation: str) -> None:
    with opened(generation) as lab:
        assert places(lab) == {1: ("/d0", None), 2: ("/d0", None)}
        moved = plan([1, 2], ["/d1", "any"])
        assert lab.execute_reassignment(moved).endswith("Successfully started reassignment of partitions.")
        assert places(lab) == {1: ("/d0", "/d1"), 2: ("/d0", None)}
        assert "Reassignment of replica orders-0-1 is still in progress" in lab.verify_reassignment(moved).splitlines()
        lab.settle()
        assert places(lab) == {1: ("/d1", None), 2: ("/d0", None)}
        assert lab.verify_reassignment(moved).splitlines() == [
            "Status of partition reassignment: ",
            "Reassignment of partition orders-0 completed successfully",
            "Reassignment of replica orders-0-1 completed successfully",
        ]
        assert steps(lab, 1) == [
            ("log-dir-wanted", None, "path=/d1"),
            ("log-dir-copying", None, "path=/d1"),
            ("log-dir-wanted", None, "path=/d1"),
            ("log-dir-swapped", None, "path=/d1"),
        ]
        assert steps(lab, 2) == []
        assert lab.violations == ()


@able
def test_a_new_copy_is_made_in_the_directory_that_was_asked_for(generation: str) -> None:
    """The broker has no copy at first, and remembers the directory for the one that it will get."""
    with opened(generation) as lab:
        moved = plan([1, 3], ["any", "/d1"])
        assert "Successfully started" in lab.execute_reassignment(moved)
        lab.settle()
        assert places(lab) == {1: ("/d0", None), 3: ("/d1", None)}
        answers = steps(lab, 3)
        assert answers[0] == ("log-dir-wanted", "REPLICA_NOT_AVAILABLE", "path=/d1")
        assert answers[-1] == ("log-dir-wanted", None, "path=/d1")
        assert {action for action, *_ in answers} == {"log-dir-wanted"}  # made there at once, so nothing moves
        assert lab.verify_reassignment(moved).endswith("Reassignment of replica orders-0-3 completed successfully")


def test_each_step_has_its_cause(lab: Lab) -> None:
    until_quiet(lab.execute_reassignment, plan([1, 2], ["/d1", "any"]))
    records = lab.trace.records
    asked = [records[r.cause].action for r in records if r.action == "AlterReplicaLogDirs" and r.kind == "request"]
    assert asked == ["execute_reassignment"] * 2
    chain = lab.trace.causes(next(r.seq for r in records if r.action == "log-dir-swapped"))
    assert [r.action for r in chain] == [
        "execute_reassignment", "AlterReplicaLogDirs", "log-dir-copying", "log-dir-swapped"
    ]  # fmt: skip


def test_a_directory_that_is_none_is_refused_before_anything_is_written(lab: Lab) -> None:
    words = "Failed to alter dir for orders-0-1 to /d7: LOG_DIR_NOT_FOUND"
    refusal = refuses(ApiException, words, lab.execute_reassignment, plan([1, 3], ["/d7", "any"]))
    assert refusal.code == "LOG_DIR_NOT_FOUND"
    lab.settle()
    assert lab.partition("orders", 0).replicas == (1, 2)
    assert places(lab)[1] == ("/d0", None)


def test_a_directory_that_failed_takes_nothing_and_gives_nothing(lab: Lab) -> None:
    until_quiet(lab.fail_log_dir, 1)  # /d0, with the copy in it
    for path in ("/d0", "/d1"):
        refuses(ApiException, "KAFKA_STORAGE_ERROR", lab.execute_reassignment, plan([1, 2], [path, "any"]))
    assert lab.verify_reassignment(plan([1, 2], ["/d1", "any"])).splitlines() == [
        "Status of partition reassignment: ",
        "Partition orders-0 is not found in any live log dir on broker 1. "
        "There is likely offline log directory on the broker.",
        "Reassignment of partition orders-0 completed successfully",
        "Reassignment of replica orders-0-1 failed",
    ]
    assert places(lab)[1] == (None, None)
    lab.create_topic("late", assignment={0: [2, 3]})  # a copy that never was, refused since the directory failed
    until_quiet(lab.reassign, {("late", 0): [1, 2]})
    log_dirs = process_of(lab, 1).replicas.log_dirs
    assert log_dirs.alter({TopicPartition("late", 0): "/d1"}) == {TopicPartition("late", 0): "KAFKA_STORAGE_ERROR"}
    assert log_dirs.preferred == {}


def test_a_directory_that_fails_after_it_was_asked_for_gets_no_new_copy() -> None:
    """The other would do, but was not asked for; a new process has forgotten what was asked."""
    with opened(config={"zookeeper.session.timeout.ms": 60_000}) as lab:
        staying, gaining = deaf_controller(lab)
        lab.execute_reassignment(plan([staying, gaining], ["any", "/d0"]))
        lab.fail_log_dir(gaining)  # /d0
        until_quiet(lab.heal)
        assert gaining not in places(lab)
        refused = [r.error for r in lab.trace if r.broker == gaining and r.action == "ignored"]
        assert set(refused) == {"KAFKA_STORAGE_ERROR"}
        until_quiet(lab.kill, gaining)
        until_quiet(lab.start, gaining)
        assert gaining in places(lab) and gaining in lab.partition("orders", 0).isr


def test_a_move_can_be_taken_back_or_is_reported_of_as_another(lab: Lab) -> None:
    there, back = plan([1, 2], ["/d1", "any"]), plan([1, 2], ["/d0", "any"])
    lab.execute_reassignment(there)
    assert "Partition orders-0 on broker 1 is being moved to log dir /d1 instead of /d0" in (
        lab.verify_reassignment(back).splitlines()
    )
    lab.run_until(lambda: "/admin/reassign_partitions" not in lab.znodes())
    assert places(lab)[1] == ("/d0", "/d1")  # the assignment is as it was, so that request is fulfilled at once
    until_quiet(lab.execute_reassignment, back)
    assert places(lab)[1] == ("/d0", None)
    reported = lab.verify_reassignment(there).splitlines()
    assert "Partition orders-0 on broker 1 is not being moved from log dir /d0 to /d1" in reported
    assert reported[-1] == "Reassignment of replica orders-0-1 failed"


def test_a_broker_that_starts_again_goes_on_with_the_move(lab: Lab) -> None:
    """The future copy outlives the process."""
    lab.execute_reassignment(plan([1, 2], ["any", "/d1"]))
    until_quiet(lab.kill, 2)
    assert places(lab)[2] == ("/d0", "/d1")
    until_quiet(lab.start, 2)
    assert places(lab)[2] == ("/d1", None)
    assert [action for action, *_ in steps(lab, 2)].count("log-dir-copying") == 2


def test_a_move_ends_with_the_directory_it_goes_to(lab: Lab) -> None:
    until_quiet(lab.execute_reassignment, plan([1, 2], ["/d1", "any"]))
    lab.execute_reassignment(plan([1, 2], ["/d0", "any"]))
    until_quiet(lab.fail_log_dir, 1)  # /d0, where it goes
    assert places(lab)[1] == ("/d1", None)
    assert lab.partition("orders", 0).isr == (1, 2)


def test_a_deleted_copy_takes_its_future_copy_along(lab: Lab) -> None:
    lab.execute_reassignment(plan([1, 2], ["/d1", "/d1"]))
    until_quiet(lab.delete_topic, "orders")
    assert lab.log_dirs() == []
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    assert places(lab) == {1: ("/d0", None), 2: ("/d0", None)}


def test_what_does_not_start_in_time_is_reported_as_failed() -> None:
    """No controller has the copy made: the tool gives up after ten seconds."""
    with opened(config={"zookeeper.session.timeout.ms": 60_000}) as lab:
        staying, gaining = deaf_controller(lab)
        asked = lab.now
        reported = lab.execute_reassignment(plan([staying, gaining], ["any", "/d1"])).splitlines()
        assert reported[-1] == f"Failed to reassign partitions ListBuffer((orders-0,ArrayBuffer({staying}, {gaining})))"
        assert 10 <= lab.now - asked < 11
        until_quiet(lab.heal)
        assert places(lab)[gaining] == ("/d1", None)  # what was begun goes on without the tool


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_a_broker_that_does_not_answer_is_named(prose: Prose, fault: str) -> None:
    """One that stands still, and one that is gone but still registered; the tool gives up after ten seconds."""
    with opened(config={"zookeeper.session.timeout.ms": 60_000}) as lab:
        lab.pause(2, 50) if fault == "pause" else lab.kill(2)
        with prose.refused(ApiException) as refusal:
            lab.execute_reassignment(plan([1, 2], ["any", "/d1"]))
        assert refusal.value.code == "REQUEST_TIMED_OUT"


@able
def test_its_throttle_stands_in_the_brokers_configurations_until_all_is_done(generation: str) -> None:
    with opened(generation) as lab:
        moved = plan([1, 2], ["/d1", "any"])
        reported = lab.execute_reassignment(moved, replica_alter_log_dirs_throttle=5000).splitlines()
        assert "The replica-alter-dir throttle limit was set to 5000 B/s" in reported
        assert not any(line.startswith("The inter-broker") for line in reported)
        assert rates(lab) == {1: "5000", 2: "5000", 3: None}
        lab.run_until(lambda: "/admin/reassign_partitions" not in lab.znodes())
        assert "Throttle" not in lab.verify_reassignment(moved)  # the copy is still on its way
        lab.settle()
        assert lab.verify_reassignment(moved).endswith("Throttle was removed.")
        assert rates(lab) == {1: None, 2: None, 3: None}


def test_0_10_knows_nothing_of_it(prose: Prose) -> None:
    with opened("0.10") as lab:
        with prose.refused(BadInput):
            lab.execute_reassignment(plan([1, 2], ["any", "any"]), replica_alter_log_dirs_throttle=1)
        # its parser passes over what it does not know
        until_quiet(lab.execute_reassignment, plan([1, 2], ["/d1", "any"]))
        assert places(lab)[1] == ("/d0", None)


def test_a_story_with_moves_runs_again_the_same(lab: Lab) -> None:
    until_quiet(lab.execute_reassignment, plan([1, 3], ["/d1", "/d1"]), replica_alter_log_dirs_throttle=5)
    lab.verify_reassignment(plan([1, 3], ["/d1", "/d1"]))
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records
        assert again.log_dirs() == lab.log_dirs()


def test_moves_are_reported_in_sentences(lab: Lab, prose: Prose) -> None:
    until_quiet(lab.execute_reassignment, plan([1, 3], ["/d1", "/d1"]))
    prose(*(caption([r]) for r in lab.trace if r.action.startswith("log-dir-")))
