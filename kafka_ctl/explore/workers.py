"""The processes that explore, and the seeded defect that they explore with."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.pool import Pool

from kafka_ctl.paths import import_from_checkout


def cores() -> int:
    """The number of processes that can work at the same time."""
    return os.cpu_count() or 1


def processes(jobs: int | None) -> AbstractContextManager[Pool | None]:
    """So many processes, one for each core if None; no pool where this process does all of the work."""
    number = jobs or cores()
    if number == 1:
        return nullcontext()
    return multiprocessing.get_context("spawn").Pool(number, signal.signal, (signal.SIGINT, signal.SIG_IGN))


def defect(name: str | None) -> AbstractContextManager[object]:
    """Switch a seeded defect of `tests/mutants` on for a while; none if there is no name."""
    return nullcontext() if name is None else import_from_checkout("tests.mutants").mutant(name)
