"""One measured figure, and how several runs become one."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

from kafka_ctl.errors import Unavailable


class Figure(NamedTuple):
    """A measure, its result with its unit, and the figure that it is to be compared with."""

    name: str
    result: str
    beside: str = ""


def median(run: Callable[[], float], times: int) -> float:
    """The median of what several runs return."""
    return statistics.median(run() for _ in range(times))


def seconds(command: Sequence[str], **options: object) -> float:
    """The seconds of a whole process, from its start to its end. Raises CalledProcessError if it fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    return time.perf_counter() - began


def processor_seconds(work: Callable[[], object]) -> float:
    """The processor time that some work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def shorten(part: ModuleType) -> None:
    """Have a benchmark take seconds: what `QUICK` names, its sizes, become what is given there."""
    vars(part).update(part.QUICK)


def figures(part: ModuleType) -> Iterator[Figure]:
    """The figures of a benchmark, as they come; where something is missing, a figure that says so, and the end."""
    try:
        yield from part.measure()
    except Unavailable as missing:
        yield Figure(part.__name__.rpartition(".")[2], "not measured", str(missing))
