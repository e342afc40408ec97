"""The order of events, given by hand: other runs, the same each time, and nothing that cannot be."""

import pytest

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command

TOOLS = ["add_partitions t 3", str(Command("reassign", ({"t-0": [1, 3]},), {}))]
RACE = f"""lab brokers=[1,2,3] generation=%s seed=0
create_topic t partitions=1 replication_factor=1
settle
order %s
{Command("at_once", (TOOLS,), {})}
settle
"""


def test_an_order_makes_another_run_the_same_each_time() -> None:
    usual, other, again = (Lab.replay(RACE % ("2.4", numbers)) for numbers in ("[]", "[1,1,1,1]", "[1,1,1,1]"))
    assert usual.trace.records != other.trace.records == again.trace.records
    assert "order [1,1,1,1]\n" in other.story == again.story
    for lab in (usual, other, again):
        lab.close()


def test_a_tool_that_adds_partitions_undoes_a_move_and_that_is_known() -> None:
    """It had read the assignment before the controller wrote what is added and removed, and writes after it.

    Kafka 2.4.1: server/AdminManager.scala, createPartitions, says so; the tool that goes to ZooKeeper does not look.
    """
    with Lab.replay(RACE % ("2.4", "[1,1,1,1]")) as lab:
        assert {(v.invariant, v.known) for v in lab.violations} == {("I12", "KAFKA-9038"), ("I16", "KAFKA-9038")}
    for generation, numbers in (("2.4", "[0]"), ("2.0", "[1,1,1,1]"), ("0.10", "[1,1,1,1]")):
        with Lab.replay(RACE % (generation, numbers)) as lab:
            assert [v for v in lab.violations if v.invariant in ("I12", "I16")] == []


def test_time_travel_knows_orders() -> None:
    """Back and forth over moments whose order was given, and into another generation."""
    with Lab.replay(RACE % ("2.4", "[1,1,1,1]")) as lab:
        records, story = lab.trace.records[:], lab.story
        lab.back(5)
        assert lab.trace.records == records[: len(lab.trace)] and len(lab.trace) < len(records)
        lab.settle()
        assert lab.trace.records == records and lab.story != story
        with lab.fork(at=len(records) - 20) as fork, lab.fork(generation="2.0") as older:
            assert fork.trace.records == records[: len(fork.trace)]
            assert "order [1,1,1,1]\n" in older.story


def test_numbers_that_are_too_large_are_the_last() -> None:
    """And what is used up, or taken away, leaves the usual order."""
    with Lab.replay(RACE % ("2.4", "[99,99,99,99]")) as lab, Lab.replay(RACE % ("2.4", "[]")) as usual:
        assert lab.trace.records != usual.trace.records
        lab.order([5] * 1000)
        lab.order([])
        loop = lab.world.clock.loop
        assert loop.choose is None
        lab.order([1])
        lab.run_for(1)
        before = lab.now
        lab.bounce(1)
        lab.run_for(0.001)
        assert lab.now >= before + 0.001


@pytest.mark.parametrize("numbers", [None, 1, "1,2", [-1], [1.5], [True], ["1"], {"a": 1}])
def test_an_order_is_a_list_of_numbers(numbers: object) -> None:
    with Lab() as lab:
        story = lab.story
        with pytest.raises(BadInput, match="order"):
            lab.order(numbers)
        assert lab.story == story
