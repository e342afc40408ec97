"""A pytest plugin that runs the collected tests against mutants instead of once.

First every test runs in a forked process that notes which lines it executes and how long it takes. Then each mutant
gets a forked process of its own, in which everything is loaded already: the mutant is put in place, and the tests that
execute one of its lines run, those first that have killed mutants of the same file, then short ones, until one fails.
A mutant that takes far more processor time or memory than the tests do is killed as well.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol

from kafka_ctl.paths import ROOT
from tests.mutation.live import loaded, put
from tests.mutation.operators import Mutant

SECONDS, TIMES, MEMORY = 3, 4, 2 << 30
"""Processor time a test may take: so many seconds more, and so many times more, than it does without a mutant. Bytes of
memory for one process."""
IDLE = 60
"""Seconds of the wall clock that a test may take, where a mutant waits and so takes no processor time."""
SAME, TIME, NOT_RUN, SURVIVED = "same code", "time", "not run", "survived"
"""What can become of a mutant beside being killed by a test."""


class Measured(NamedTuple):
    """One test without a mutant: its processor time, and by file the lines that it executed."""

    seconds: float
    lines: dict[str, set[int]]


class Result(NamedTuple):
    """What became of a mutant: the tests that failed, in the order in which they ran, or one word instead."""

    mutant: Mutant
    killers: tuple[str, ...]
    outcome: str

    @property
    def killed(self) -> bool:
        return bool(self.killers) or self.outcome == TIME


class Mutation:
    """Runs the tests for each mutant, and hands each result to `told`; `killers` failing tests are enough."""

    def __init__(
        self, files: Iterable[str], mutants: Iterable[Mutant], reported: Callable[[Result], None], killers: int = 1
    ) -> None:
        self.files, self.mutants, self.reported, self.killers = list(files), list(mutants), reported, killers
        self.results: list[Result] = []
        self.broken: list[str] = []
        """Tests that fail without any mutant; nothing can be said then."""
        self._kills: Counter[tuple[str, str]] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for name in self.files:
            importlib.import_module(name.removesuffix(".py").replace("/", "."))
        functions = loaded(tuple({(ROOT / name).parent for name in self.files}))
        items = {item.nodeid: item for item in session.items}
        self.broken, measured = forked(lambda: measure(list(items.values()), self.files))
        print(f"{len(measured)} tests take {sum(test.seconds for test in measured.values()):.0f} s", file=sys.stderr)
        gc.freeze()
        for mutant in [] if self.broken else self.mutants:
            chosen = self._chosen(mutant, measured)

            def attempt(mutant: Mutant = mutant, chosen: list[str] = chosen) -> Any:
                return self._try(items, chosen, measured) if put(mutant, functions) else SAME

            answer = forked(attempt) if chosen else NOT_RUN
            killers = tuple(answer) if isinstance(answer, list) else ()
            outcome = answer if isinstance(answer, str) else SURVIVED if answer == [] else "killed"
            result = Result(mutant, killers, TIME if answer is None else outcome)
            self._kills.update((mutant.path, killer) for killer in killers)
            self.results.append(result)
            self.reported(result)
        return True

    def _chosen(self, mutant: Mutant, measured: dict[str, Measured]) -> list[str]:
        """The tests that execute a line of the mutant, in the order of their promise."""
        runs = [id for id, test in measured.items() if not test.lines.get(mutant.path, set()).isdisjoint(mutant.lines)]
        whole = {id: int(measured[id].seconds) for id in runs}  # so that a busy machine does not change the order
        return sorted(runs, key=lambda id: (-self._kills[mutant.path, id] / (1 + whole[id]), whole[id]))

    def _try(self, items: dict[str, pytest.Item], chosen: list[str], measured: dict[str, Measured]) -> list[str]:
        """The tests that fail, no more than are wanted; called in a process of its own."""
        failed: list[str] = []
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for id in chosen:
            limit = int(time.process_time() + SECONDS + TIMES * measured[id].seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, -1))
            signal.alarm(int(IDLE + IDLE * measured[id].seconds))
            if not passes(items[id]):
                failed.append(id)
                if len(failed) == self.killers:
                    break
        return failed


def passes(item: pytest.Item) -> bool:
    """Whether a test passes (or is skipped), with its fixtures."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def measure(items: list[pytest.Item], files: list[str]) -> tuple[list[str], dict[str, Measured]]:
    """The tests that fail, and what each of the others executes."""
    watched = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / name) for name in files])
    broken, seconds = [], {}
    watched.start()
    for item in items:
        watched.switch_context(item.nodeid)
        began = time.process_time()
        if not passes(item):
            broken.append(item.nodeid)
        seconds[item.nodeid] = time.process_time() - began
    watched.stop()
    lines: dict[str, dict[str, set[int]]] = {id: {} for id in seconds}
    data = watched.get_data()
    for name in files:
        for line, ids in data.contexts_by_lineno(str(ROOT / name)).items():
            for id in ids:
                if id in lines:
                    lines[id].setdefault(name, set()).add(line)
    return broken, {id: Measured(seconds[id], lines[id]) for id in seconds}


def forked(work: Callable[[], Any]) -> Any:
    """The result of a function that runs in a forked process; None if a signal ended that. An error is raised here."""
    with tempfile.TemporaryFile() as answer:
        process = os.fork()
        if process == 0:
            try:
                os.setpgid(0, 0)
                try:
                    reported = work(), ""
                except Exception:
                    reported = None, traceback.format_exc()
                pickle.dump(reported, answer)
                answer.flush()
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        answer.seek(0)
        written = answer.read()
    result, trouble = pickle.loads(written) if written else (None, "")
    if trouble:
        raise RuntimeError(trouble)
    return result
