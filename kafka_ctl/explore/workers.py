"""The processes that explore, and the seeded defect that they explore with."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.pool import Pool

from kafka_ctl.errors import Unavailable
from kafka_ctl.paths import import_from_checkout

SPAWN = multiprocessing.get_context("spawn")


def cores() -> int:
    """The number of processes that can work at the same time."""
    return os.cpu_count() or 1


def processes(jobs: int | None) -> AbstractContextManager[Pool | None]:
    """So many processes, one for each core if None; no pool where this process does all of the work.

    Raises Unavailable in a script that cannot be imported by them.
    """
    number = jobs or cores()
    if number == 1:
        return nullcontext()
    _check_script()
    return SPAWN.Pool(number, signal.signal, (signal.SIGINT, signal.SIG_IGN))


def _check_script() -> None:
    """Start one process first: it imports the script. A pool would start others for those that fail, and never end."""
    main = sys.modules["__main__"]
    if "__mp_main__" not in sys.modules and (main.__spec__ is not None or not hasattr(main, "__file__")):
        return  # a module, or a notebook
    first = SPAWN.Process()
    try:
        first.start()
    except RuntimeError:  # this is that process, and the script calls us while it is imported, as `__mp_main__`
        sys.exit(1)
    first.join()
    if first.exitcode:
        raise Unavailable(
            "other processes cannot import this script; put its calls below `if __name__ == '__main__':`, save it as a "
            "file, or give jobs=1"
        )


def defect(name: str | None) -> AbstractContextManager[object]:
    """Switch a seeded defect of `tests/mutants` on for a while; none if there is no name."""
    return nullcontext() if name is None else import_from_checkout("tests.mutants").mutant(name)
