"""A story reopens exactly, whatever happened on the way: refusals, looking, conditions, interrupts, other costs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from labs import until_quiet
from prose import Prose

from kafka_ctl.errors import BadInput, ConditionNotMet, UnknownName
from kafka_ctl.lab.lab import Lab
from kafka_ctl.latencies import Costs


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(seed=3) as lab:
        until_quiet(lab.create_topic, "t", 3, 3)
        yield lab


def same_again(lab: Lab) -> Lab:
    """The replay of a lab's story; it is where the lab is, and goes on as the lab does."""
    again = Lab.replay(lab.story)
    assert again.story == lab.story
    for one in (lab, again):
        until_quiet(one.delete_controller)
    assert again.trace.records == lab.trace.records
    assert (again.now, again.znodes()) == (lab.now, lab.znodes())
    return again


def test_what_was_refused_after_zookeeper_was_asked_is_part_of_the_run(lab: Lab) -> None:
    before = len(lab.trace)
    with pytest.raises(BadInput, match="already exists"):
        lab.create_topic("t")
    assert len(lab.trace) > before
    assert lab.story.endswith("\nrefused create_topic t\n")
    same_again(lab).close()


def test_what_was_refused_at_once_is_not(lab: Lab) -> None:
    story = lab.story
    with pytest.raises(BadInput):
        lab.kill(9)
    assert lab.story == story


@pytest.mark.parametrize("words", ["refused", "refused explode"])
def test_refused_names_a_command(words: str) -> None:
    with pytest.raises(UnknownName, match=r"unknown command \(line 2\)"):
        Lab.replay(f"lab\n{words}\n")


def test_looking_changes_nothing(lab: Lab) -> None:
    """Also in the middle of a moment, where callbacks wait to be run."""
    lab.kill(1)
    for _ in range(30):
        lab.step()
        before = len(lab.trace), lab.now
        assert (lab.partitions(), lab.controller, lab.znodes(), lab.brokers, repr(lab)) is not None
        assert (len(lab.trace), lab.now) == before
    same_again(lab).close()


@pytest.mark.parametrize("limit", [3600, 0.01])
def test_a_condition_holds_at_the_same_point_again(lab: Lab, limit: float) -> None:
    """`run_until` stops between two callbacks; the story stops there too."""
    lab.kill(1)
    lab.step()
    for n in (3, 57, 0):
        wanted = (lab.world.callbacks_run or 0) + n
        with suppress(ConditionNotMet):
            lab.run_until(lambda: (lab.world.callbacks_run or 0) >= wanted, limit)  # noqa: B023
    same_again(lab).close()


def test_costs_are_part_of_the_story() -> None:
    with Lab(seed=3, costs=Costs(boot=0.0005, zookeeper_round_trip=0.01)) as lab:
        assert lab.story.splitlines()[0].endswith("""costs='{"zookeeper_round_trip":0.01,"boot":0.0005}'""")
        lab.create_topic("t", 3, 3)
        same_again(lab).close()
        with lab.fork(seed=4) as other:
            assert '"boot":0.0005' in other.story


@pytest.mark.parametrize("costs", ["""'{"lunch":1}'""", """'{"boot":"long"}'""", """'{"boot":-1}'""", "3"])
def test_costs_that_cannot_be(prose: Prose, costs: str) -> None:
    prose.refuses(BadInput, Lab.replay, f"lab costs={costs}\nsettle\n")


# Ctrl-C


@pytest.fixture(autouse=True)
def python_has_ctrl_c() -> Iterator[None]:
    """PySpark, once some test has started it in this process, has a handler of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_at(lab: Lab, size: int) -> None:
    """Ctrl-C arrives in the middle of a callback: while record `size` is being written."""

    def listen(record: object) -> None:
        if len(lab.trace) == size:
            signal.raise_signal(signal.SIGINT)

    lab.trace.listeners.append(listen)


@pytest.mark.parametrize("after", [1, 40, 90, 120])
def test_a_lab_survives_ctrl_c_in_a_long_settle(after: int) -> None:
    """No actor dies of it: the run goes on as it would have, and its story tells where it stopped."""
    with Lab(seed=3) as lab, Lab(seed=3) as whole:
        for one in (lab, whole):
            one.create_topic("t", 3, 3)
            one.kill(1)
        interrupt_at(lab, len(lab.trace) + after)
        with pytest.raises(KeyboardInterrupt):
            lab.settle()
        assert "\nsettle\nuntil " in lab.story
        lab.settle()
        whole.settle()
        assert lab.trace.records == whole.trace.records and not lab.violations
        same_again(lab).close()


def test_what_was_asked_goes_on_after_ctrl_c(lab: Lab) -> None:
    """A controlled shutdown nobody waits for any more, and a request that turns out to be refused."""
    interrupt_at(lab, len(lab.trace) + 20)
    with pytest.raises(KeyboardInterrupt):
        lab.shutdown(2)
    lab.settle()
    assert lab.brokers[2].state == "down"
    interrupt_at(lab, len(lab.trace) + 1)
    with pytest.raises(KeyboardInterrupt):
        lab.create_topic("t")
    lab.settle()
    same_again(lab).close()


def test_ctrl_c_belongs_to_python_again_afterwards(lab: Lab) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    lab.settle()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_handles_ctrl_c_keeps_it(lab: Lab) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        interrupt_at(lab, len(lab.trace) + 3)
        until_quiet(lab.kill, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_a_lab_runs_in_any_thread() -> None:
    """Where no signal can be handled."""
    ends: list[int] = []

    def run() -> None:
        with Lab(seed=3) as lab:
            until_quiet(lab.kill, 1)
            ends.append(len(lab.trace))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert ends and ends[0] > 100
