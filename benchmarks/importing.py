"""How long `import kafka_ctl` takes, as whole processes: with it, and without."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure, seconds
from kafka_ctl.paths import ROOT

TIMES = 21
QUICK = {"TIMES": 1}


def measure() -> Iterator[Figure]:
    """Processes that do nothing, import the package, and load the lab, in turn."""
    programs = ("pass", "import kafka_ctl", "from kafka_ctl import Lab")
    taken: dict[str, list[float]] = {program: [] for program in programs}
    for _ in range(TIMES):
        for program in programs:
            taken[program].append(1000 * seconds([sys.executable, "-c", program], cwd=ROOT))
    nothing, *others = (statistics.median(taken[program]) for program in programs)
    for program, whole in zip(programs[1:], others, strict=True):
        beside = f"{whole:.0f} ms for the process, {nothing:.0f} ms for one that does nothing"
        beside += "; aim: below 150 ms" if program == "import kafka_ctl" else ""
        yield Figure(program, f"{whole - nothing:.1f} ms", beside)
