"""Ctrl-C at any moment: a story replays to the same trace, wherever in a command the signal comes."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from prose import refuses

from kafka_ctl.errors import ConditionNotMet, KafkaCtlError, PluginFailed
from kafka_ctl.lab import commands, lab, recorded_run, story, time_travel, validate
from kafka_ctl.lab.lab import Lab
from kafka_ctl.simulation import clock, interrupt, loop, world

CLOSELY = {str(module.__file__) for module in (commands, recorded_run, validate, interrupt)}
"""Where a signal comes before every instruction; in the other files before every line."""
WATCHED = CLOSELY | {str(module.__file__) for module in (clock, lab, loop, story, time_travel, world)}


@pytest.fixture(autouse=True)
def python_has_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupter:
    """Sends this process SIGINT at the moments with these numbers, counted over lines and instructions."""

    def __init__(self, *moments: int) -> None:
        self.moments, self.count = frozenset(moments), 0

    def called(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in WATCHED and not name.endswith("contextlib.py"):
            return None
        frame.f_trace_opcodes = name not in WATCHED or name in CLOSELY
        return self.went

    def went(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.count += 1
        if self.count in self.moments:
            signal.raise_signal(signal.SIGINT)
        return self.went

    def during(self, act: Callable[[], object]) -> bool:
        """Whether the act was stopped by the signal."""
        sys.settrace(self.called)
        try:
            act()
        except KeyboardInterrupt:
            return True
        except KafkaCtlError:
            pass
        finally:
            sys.settrace(None)
        return False


def turn(lab: Lab) -> Callable[..., None]:
    """Kill a broker, or start it again."""
    return lab.start if lab.brokers[1].state == "down" else lab.kill


ACTS: dict[str, Callable[[Lab], object]] = {
    "produce": lambda lab: lab.produce("t", 0, 2),
    "produce without waiting": lambda lab: lab.produce("t", 0, wait=False),
    "process": lambda lab: turn(lab)(1),
    "settle": lambda lab: lab.settle(),
    "run_for": lambda lab: lab.run_for(0.7),
    "step": lambda lab: lab.step(3),
    "create_topic": lambda lab: lab.create_topic(f"t{len(lab.commands)}", 1, 1),
    "refused": lambda lab: lab.create_topic("t"),
    "refused at once": lambda lab: lab.kill(9),
    "write_znode": lambda lab: lab.write_znode("/x", "y"),
    "condition": lambda lab: lab.run_until(lambda: len(lab.trace) % 7 == 0, 1),
    "reassign": lambda lab: lab.reassign({("t", 0): [2, 3] if len(lab.commands) % 2 else [2, 1]}),
    "tool": lambda lab: lab.generate_reassignment(["t"], [1, 2, 3]),
    "several": lambda lab: lab.at_once(["elect_preferred", "write_znode /x z"]),
    "back": lambda lab: lab.back(1),
    "undo": recorded_run.undo,
}
MOMENTS = 50
"""Interrupts for each act, spread over all of its moments."""


def check_replay(lab: Lab) -> None:
    """The story of a lab plays to the same run."""
    with Lab.replay(lab.story) as again:
        assert again.story == lab.story
        assert again.trace.records == lab.trace.records
        assert (again.now, again.znodes(), again.violations) == (lab.now, lab.znodes(), lab.violations)


@pytest.mark.parametrize("name", ACTS)
def test_a_story_replays_whenever_the_interrupt_comes(name: str) -> None:
    """Real signals, at moments spread evenly over a command; the lab goes on after each of them."""
    act = ACTS[name]
    with Lab(brokers=3, seed=3) as lab:
        lab.create_topic("t", assignment={0: [1, 2]})
        lab.settle()
        watched = Interrupter()
        watched.during(lambda: act(lab))
        moments = range(1, watched.count, max(1, watched.count // MOMENTS))
        assert sum([_interrupted(lab, act, moment) for moment in moments]) > len(moments) // 2
        check_replay(lab)


def _interrupted(lab: Lab, act: Callable[[Lab], object], moment: int) -> bool:
    """Whether the act was stopped at this moment, or soon after; the lab goes on from there a little."""
    stopped = Interrupter(moment, moment + 3).during(lambda: act(lab))
    with suppress(KafkaCtlError):
        lab.run_for(0.0007 * (moment % 5))
    if moment % 4 == 0:
        lab.settle()
    return stopped


def test_the_end_of_a_command_is_no_middle() -> None:
    """A signal that comes when all is done stops nothing: time has passed, and the command is whole in the story."""
    with Lab(brokers=1, seed=3) as lab:
        lab.settle()
        last = Interrupter()
        last.during(lambda: lab.run_for(5))
        while not Interrupter(last.count).during(lambda: lab.run_for(5)):
            last.count -= 1
        check_replay(lab)


def test_what_somebody_else_wrote_is_interrupted_at_once() -> None:
    """The condition of `run_until` may never come to an end."""

    def endless() -> bool:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was held back")

    with Lab(brokers=1, seed=3) as lab:
        with pytest.raises(KeyboardInterrupt):
            lab.run_until(endless)
        check_replay(lab)


def test_a_handler_that_raises_is_asked_between_callbacks() -> None:
    """As PySpark's, which cancels its jobs and raises KeyboardInterrupt; any other error stops a command as well."""

    class Stop(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Stop

    signal.signal(signal.SIGINT, handler)
    with Lab(brokers=2, seed=3) as lab:
        lab.kill(1)
        lab.trace.listeners.append(lambda record: signal.raise_signal(signal.SIGINT))
        with pytest.raises(Stop):
            lab.settle()
        lab.trace.listeners.pop()
        assert "\nsettle\nuntil " in lab.story
        lab.settle()
        check_replay(lab)


def test_an_interrupt_before_a_command_within_another_is_kept() -> None:
    """The command within, of another lab, begins anew to listen; what was pressed before it is not forgotten."""
    with Lab(brokers=1, seed=3) as lab, Lab(brokers=1) as other:

        def holds() -> bool:
            other.run_for(0.001)
            return False

        clock = lab.world.clock

        def pressed_before() -> None:
            with clock.uninterrupted():
                signal.raise_signal(signal.SIGINT)
                lab.run_for(1)

        with pytest.raises(KeyboardInterrupt):
            pressed_before()
        assert lab.now < 1
        moments: list[int] = []

        def pressed_after_a_command() -> bool:
            other.run_for(0.001)
            moments.append(1)
            if len(moments) == 3:
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("the signal was held back")
            return False

        with pytest.raises(KeyboardInterrupt):
            lab.run_until(pressed_after_a_command, 60)
        assert len(moments) == 3
        check_replay(lab)
        with pytest.raises(ConditionNotMet):
            lab.run_until(holds, 10)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_function_that_takes_part_is_interrupted_at_once(stop: type[BaseException]) -> None:
    """It may never end. The actor that called it goes on as after any error; SystemExit is one."""

    def endless(assignment: object, isr: object, live: object, unclean: object) -> None:
        if stop is SystemExit:
            raise SystemExit(3)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was held back")

    with Lab(brokers=2, seed=3, elections={"offline": endless}) as lab:
        lab.create_topic("t", assignment={0: [1, 2]})
        lab.settle()
        lab.kill(lab.partition("t", 0).leader)
        with pytest.raises(PluginFailed if stop is SystemExit else KeyboardInterrupt):
            lab.settle()
        if stop is KeyboardInterrupt:
            assert "\nsettle\nuntil " in lab.story
            refuses(PluginFailed, "was interrupted", lab.settle)
        assert len(lab.fork(elections={}).trace) > 100
