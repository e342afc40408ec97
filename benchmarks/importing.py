"""The start of processes that import the package, beside one that does nothing, in processor time."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure
from kafka_ctl.paths import ROOT

TIMES = 31
QUICK = {"TIMES": 1}
AIM = 8
"""The most that the start of the class or of a command may take, in starts of an empty Python."""
PROGRAMS = {
    "nothing": ["-c", "pass"],
    "import kafka_ctl": ["-c", "import kafka_ctl"],
    "from kafka_ctl import Lab": ["-c", "from kafka_ctl import Lab"],
    "kafka-ctl explore --help": ["-c", "from kafka_ctl.cli import main; main(['explore', '--help'])"],
}


def processor_ms(arguments: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of user and system time of a Python process, which a busy machine does not change much."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure() -> Iterator[Figure]:
    """All programs in turn, many times, with their bytecode written before."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for arguments in PROGRAMS.values():
        processor_ms(arguments, environment)
    taken: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for _ in range(TIMES):
        for program, arguments in PROGRAMS.items():
            taken[program].append(processor_ms(arguments, environment))
    nothing, *others = (statistics.median(taken[program]) for program in PROGRAMS)
    for program, whole in zip([*PROGRAMS][1:], others, strict=True):
        beside = f"{whole:.0f} ms, {nothing:.0f} ms for an empty Python; aim: at most {AIM} times"
        yield Figure(program, f"{whole / nothing:.1f} times", beside)
