"""One engine in a process of its own, so that its memory and its processor time are measured apart from the others'.

python -m benchmarks.engine spark|duckdb|polars PATH CORES

reads commands (`ask unavailability`, `digest unavailability`) from standard input and answers each with a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_ctl.paths import ROOT

QUESTIONS = (
    "departures unavailability shutdown_vs_failure rolling_restarts failover_time request_amplification reassignments "
    "deletions isr_states isr_churn unclean_exposure leader_churn imbalance transition_counts compare"
).split()
"""Those first that others build on."""
TICKS = os.sysconf("SC_CLK_TCK")
PAUSE = 0.1
"""Seconds between two looks at the memory."""


class Engine:
    """An engine's process as its user sees it. `peak` is the most memory that its whole tree of processes held."""

    def __init__(self, name: str, path: str, cores: int) -> None:
        command = [sys.executable, "-m", "benchmarks.engine", name, path, str(cores)]
        environment = os.environ | {"POLARS_MAX_THREADS": str(cores)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self, verb: str, question: str) -> tuple[float, float, Any]:
        """Seconds, seconds of processor time, and what the engine said."""
        assert self.process.stdin and self.process.stdout
        before, began = worked(self.process.pid), time.perf_counter()
        print(verb, question, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        taken = time.perf_counter() - began
        if not line:
            raise RuntimeError(f"{self.process.args}: ended at {verb} {question}")
        return taken, worked(self.process.pid) - before, json.loads(line)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def _watch(self) -> None:
        while self.process.poll() is None:
            pages = sum(int(stat[22]) for stat in map(_stat, tree(self.process.pid)) if stat)
            self.peak = max(self.peak, pages * os.sysconf("SC_PAGE_SIZE"))
            time.sleep(PAUSE)


def worked(pid: int, name: str = "") -> float:
    """Processor seconds of those in a process tree that have this in their names, and of their ended children."""
    return sum(sum(map(int, stat[12:16])) for stat in map(_stat, tree(pid)) if stat and name in stat[0]) / TICKS


def _stat(pid: int) -> list[str]:
    """The words of /proc/PID/stat from the name on; none when the process is gone."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
        return [name, *rest.split()]
    except OSError:
        return []


def tree(pid: int) -> list[int]:
    """A process and all that came of it."""
    children: list[int] = []
    with suppress(OSError):  # the process has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # this thread has
                children += map(int, (task / "children").read_text().split())
    return [pid, *(one for child in children for one in tree(child))]


def legal_moves() -> list[tuple]:
    """The transition tables as rows, for engines that know nothing of Kafka."""
    from kafka_ctl import PARTITION, REPLICA

    machines = {"partition": PARTITION, "replica": REPLICA}
    return [
        (name, str(move.source), str(move.target), move.action)
        for name, tables in machines.items()
        for move in tables["2.0"].rows
    ]


def main() -> None:
    from importlib import import_module

    name, path, cores = sys.argv[1:]
    engine = import_module(f"benchmarks.in_{name}").Engine(path, int(cores), legal_moves())
    for line in sys.stdin:
        verb, question = line.split()
        print(json.dumps(getattr(engine, verb)(question), default=float), flush=True)


if __name__ == "__main__":
    main()
