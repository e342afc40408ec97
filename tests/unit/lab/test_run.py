"""The start of a program: what `from kafka_ctl import Lab` and the command line load."""

import subprocess
import sys

import pytest

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
