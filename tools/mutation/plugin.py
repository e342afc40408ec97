"""A pytest plugin that runs the collected tests against mutants instead of once.

First every test runs in a forked process that notes which lines it executes and how long it takes. Then each mutant
gets a forked process of its own, in which everything is loaded already: the mutant is put in place, and the tests that
execute one of its lines run, those first that have killed mutants of the same file, then short ones, until one fails.
It runs once more, in another process, and counts only if it fails again: tests with clocks and sockets may fail where
the machine is busy. A mutant that takes far more processor time or memory than the tests do is killed as well.
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
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol

from kafka_ctl.paths import ROOT
from tools.mutation import shared_java
from tools.mutation.live import Functions, loaded, put
from tools.mutation.operators import Mutant
from tools.mutation.targets import Target

SECONDS, TIMES, MEMORY = 3, 4, 6 << 30
"""Processor time a test may take: so many seconds more, and so many times more, than it does without a mutant. Bytes of
memory for one process."""
IDLE = 60
"""Seconds of the wall clock that a test may take, where a mutant waits and so takes no processor time."""
SAME, TIME, NOT_RUN, SURVIVED, KILLED = "same code", "time", "not run", "survived", "killed"
"""The possible ends of a mutant."""


class Measured(NamedTuple):
    """One test without a mutant: its processor time, its time, and by file the lines that it executed."""

    seconds: float
    waited: float
    lines: dict[str, set[int]]


class Result(NamedTuple):
    """The end of a mutant: the tests that failed, in the order in which they ran, or one word instead."""

    mutant: Mutant
    killers: tuple[str, ...]
    outcome: str

    @property
    def killed(self) -> bool:
        return bool(self.killers) or self.outcome == TIME


class Trial(NamedTuple):
    """All that a mutant of a target is tried with."""

    target: Target
    items: dict[str, pytest.Item]
    measured: dict[str, Measured]
    functions: Functions

    def first_failure(self, mutant: Mutant, chosen: list[str]) -> str:
        """The first test that fails with a mutant, SURVIVED or SAME; called in a process of its own."""
        if self.target.java:
            shared_java.connect()
        if not put(mutant, self.functions):
            return SAME
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for id in chosen:
            limit = int(time.process_time() + SECONDS + TIMES * self.measured[id].seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, -1))
            signal.alarm(int(IDLE + TIMES * self.measured[id].waited))
            if not passes(self.items[id]):
                return id
        return SURVIVED


class Mutation:
    """Runs the tests of each target for its mutants, in several processes, and hands on each result there.

    So many `killers` of a mutant are enough.
    """

    def __init__(
        self, work: dict[Target, list[Mutant]], reported: Callable[[Result], None], killers: int = 1, jobs: int = 1
    ) -> None:
        self.work, self.reported, self.killers, self.jobs = work, reported, killers, jobs
        self.broken: list[str] = []
        """Tests that fail without any mutant, which say nothing about one and are left out."""
        self._kills: Counter[tuple[str, str]] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own: all tests, in this process."""
        for target, mutants in self.work.items():
            files, left_out = {*target.test_files}, target.left_out.split()
            asked = [item for item in session.items if item.path in files and not any(w in item.name for w in left_out)]
            if target.java:
                shared_java.start()
            for name in target.files:
                importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
            functions = loaded(tuple({(ROOT / name).parent for name in target.files}))
            broken, measured = forked(measure, asked, target)
            self.broken += broken
            took = sum(test.seconds for test in measured.values()), sum(test.waited for test in measured.values())
            print(
                f"{target.name}: {len(measured)} tests, {took[0]:.0f} s of {took[1]:.0f} s", file=sys.stderr, flush=True
            )
            gc.freeze()
            trial = Trial(target, {item.nodeid: item for item in asked}, measured, functions)
            beside(self._share, [(trial, mutants[n :: self.jobs]) for n in range(self.jobs)])
        return True

    def _share(self, trial: Trial, mutants: list[Mutant]) -> None:
        for mutant in mutants:
            self.reported(self._result(mutant, trial))

    def _result(self, mutant: Mutant, trial: Trial) -> Result:
        chosen, killers = self._chosen(mutant, trial), list[str]()
        outcome = SURVIVED if chosen else NOT_RUN
        while chosen and len(killers) < self.killers:
            answer = forked(trial.first_failure, mutant, chosen)
            if answer in (None, SAME, SURVIVED):
                outcome = TIME if answer is None else answer
                break
            if forked(trial.first_failure, mutant, [answer]) in (answer, None):
                killers.append(answer)
            chosen = chosen[chosen.index(answer) + 1 :]
        self._kills.update((mutant.path, killer) for killer in killers)
        return Result(mutant, tuple(killers), KILLED if killers else outcome)

    def _chosen(self, mutant: Mutant, trial: Trial) -> list[str]:
        """The tests that execute a line of the mutant, in the order of their promise."""
        measured = trial.measured
        runs = [id for id, test in measured.items() if not test.lines.get(mutant.path, set()).isdisjoint(mutant.lines)]
        if not runs:  # what runs in Python's own trace function is not seen, but what it works with is
            runs = [id for id, test in measured.items() if mutant.path in test.lines]
        if trial.target.java and not runs:  # Spark's tasks may, in processes of theirs
            runs = [*measured]
        whole = {id: int(measured[id].waited / 2) for id in runs}  # a busy machine changes the order little
        return sorted(runs, key=lambda id: (-self._kills[mutant.path, id] / (1 + whole[id]), whole[id]))


def passes(item: pytest.Item) -> bool:
    """True if a test passes (or is skipped), with its fixtures."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def measure(items: list[pytest.Item], target: Target) -> tuple[list[str], dict[str, Measured]]:
    """The tests that fail, and what each of the others executes; under the same limits as with mutants."""
    files = target.files
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if target.java:
        shared_java.connect()
    watched = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / name) for name in files])
    broken, seconds = [], {}
    watched.start()
    for item in items:
        watched.switch_context(item.nodeid)
        began = time.process_time(), time.monotonic()
        if not passes(item) and not passes(item):
            broken.append(item.nodeid)
            continue
        seconds[item.nodeid] = time.process_time() - began[0], time.monotonic() - began[1]
    watched.stop()
    lines: dict[str, dict[str, set[int]]] = {id: {} for id in seconds}
    data = watched.get_data()
    for name in files:
        for line, ids in data.contexts_by_lineno(str(ROOT / name)).items():
            for id in ids:
                if id in lines:
                    lines[id].setdefault(name, set()).add(line)
    return broken, {id: Measured(*seconds[id], lines[id]) for id in seconds}


def beside(work: Callable[..., None], shares: list[tuple[Any, ...]]) -> None:
    """Call a function with each share of arguments in a process of its own, all at once, and wait for their ends."""
    started = []
    for share in shares:
        process = os.fork()
        if process == 0:
            try:
                work(*share)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        started.append(process)
    for process in started:
        os.waitpid(process, 0)


def forked(work: Callable[..., Any], *given: Any) -> Any:
    """The result of a function that runs in a forked process; None if a signal ended that. An error is raised here."""
    with tempfile.TemporaryFile() as answer:
        process = os.fork()
        if process == 0:
            try:
                os.setpgid(0, 0)
                try:
                    reported = work(*given), ""
                except Exception:
                    reported = None, traceback.format_exc()
                pickle.dump(reported, answer)
                answer.flush()
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)  # what a test has started and not ended
        answer.seek(0)
        written = answer.read()
    result, trouble = pickle.loads(written) if written else (None, "")
    if trouble:
        raise RuntimeError(trouble)
    return result
