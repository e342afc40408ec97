"""The start of a program: what `from kafka_ctl import Lab` and the command line load."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest
from labs import until_quiet
from prose import Prose

from kafka_ctl.errors import BadInput, PluginFailed
from kafka_ctl.lab.lab import Lab

LAB = "from kafka_ctl import Lab"
HELP = "from kafka_ctl.cli import main; main(['explore', '--help'])"
OF_BROKERS = {"asyncio", "kafka_ctl.brokers.broker", "kafka_ctl.controller.controller", "kafka_ctl.simulation.world"}


def loaded(program: str) -> set[str]:
    """The modules that a program has loaded when it ends."""
    watched = f"import atexit, sys\natexit.register(lambda: print('', *sys.modules, sep='\\n'))\n{program}"
    ended = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines())


@pytest.mark.parametrize("program", [LAB, HELP])
def test_no_broker_is_loaded_before_a_lab_is_opened(program: str) -> None:
    """asyncio alone takes several times as long as an empty Python."""
    assert not OF_BROKERS & loaded(program)


def test_a_lab_loads_its_brokers() -> None:
    """The modules that the test before looks for have these names."""
    assert loaded(f"{LAB}\nLab(brokers=1).close()") >= OF_BROKERS


def test_a_command_within_the_run_is_refused(prose: Prose) -> None:
    """It would not be where the story has it. Looking is allowed, and the lab goes on as its story says."""

    def offline(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> None:
        lab.shutdown(3)

    def given(command: Callable[[], object]) -> bool:
        return lab.partitions() == () or bool(command())

    with Lab(seed=4, elections={"offline": offline}) as lab:
        until_quiet(lab.create_topic, "o", 2, 2)
        for command in (lambda: lab.kill(3), lambda: lab.run_for(1), lambda: lab.back(), lambda: lab.run_until(bool)):
            with prose.refused(BadInput):
                lab.run_until(partial(given, command))
        with prose.refused(PluginFailed):
            until_quiet(lab.kill, lab.partition("o", 0).leader)
