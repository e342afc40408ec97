"""Exercises of lesson 25, large histories. Their checks need no Spark: a small table, a lab, a workload."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from statistics import median
from typing import ClassVar

from kafka_ctl.errors import short
from kafka_ctl.exercises.answers import SECONDS
from kafka_ctl.exercises.exercise import Exercise, Verdict
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.lab.lab import Lab

Row = tuple[str | int, ...]
TITLE = "Large histories"
DAILY = """\
lab brokers=4 generation=2.4 seed=7
create_topic orders assignment='{"0":[1],"1":[2],"2":[3]}'
settle
"""
"""Each partition has one replica."""
FEWEST, MEDIAN, SUM = 3, 10, 60
"""The intervals of exercise 1, and seconds: their median at most, their sum at least."""


def intervals(lab: Lab) -> list[float]:
    """The seconds of each interval without a leader, by the `state` znodes; an open one counts up to now."""
    return [span / 1000 for changes, end in history(lab) for span in _spans(changes, end)]


def looks_bad(lab: Lab) -> str | None:
    """The problem (there are few intervals, a long median, a small sum, or a partition without a leader), or None."""
    found = sorted(intervals(lab))
    if waiting := [f"{p.topic}-{p.partition}" for p in lab.partitions() if p.leader < 0]:
        return f"{waiting[0]} has no leader now."
    znodes = "by the `state` znodes"
    if len(found) < FEWEST:
        return f"intervals without a leader: {len(found)}; at least {FEWEST} are asked for."
    if median(found) > MEDIAN:
        return f"{znodes} half of the intervals took more than {median(found):.1f} s; the dashboard shows that."
    if sum(found) < SUM:
        return f"{znodes} all intervals together took {sum(found):.1f} s; a minute is asked for."
    return None


DEATHS = (((1,), 10), ((2,), 10), ((3,), 10), ((4,), 10), ((1, 2), 120))
"""Brokers that are killed together, and the seconds until they start again."""
APART, EVERY = 20, 20
"""Seconds between a start and the next kill, and from one sum to the next."""


def bad_night(lab: Lab) -> tuple[list[int], list[int]]:
    """Kill the brokers of `DEATHS`; the seconds of each interval without a live leader, and their sums over time."""
    lab.settle()
    missed: list[list[bool]] = []
    for brokers, seconds in DEATHS:
        for command, dead, wait in (("kill", brokers, seconds), ("start", (), APART)):
            for broker in brokers:
                lab.do(f"{command} {broker}")
            for _ in range(wait):
                lab.run_for(1)
                missed.append([p.leader in (-1, *dead) for p in lab.partitions()])
    spans = [len([*group]) for each in zip(*missed, strict=True) for down, group in groupby(each) if down]
    return sorted(spans), [sum(map(sum, missed[:end])) for end in range(EVERY, len(missed) + 1, EVERY)]


def harm(lab: Lab) -> str:
    """The two numbers."""
    found = intervals(lab)
    most = ": one interval has most of it" if max(found) > sum(found) / 2 else ""
    return f"By the `state` znodes the median is {median(found):.1f} s, and in all {sum(found):.0f} s were lost{most}."


@dataclass(frozen=True, kw_only=True)
class Condition(Exercise):
    """A condition in SQL about the columns of a small table; `truth` says which rows it should keep.

    `wrong` says something about a row that is kept or left out wrongly. SQLite judges the condition; an expression
    that Spark reads differently is refused, or rewritten for SQLite.
    """

    kind: ClassVar[str] = "implement"
    columns: Sequence[str]
    rows: Sequence[Row]
    truth: Callable[..., bool]
    wrong: Mapping[Row, str]
    why: str

    def judge(self, answer: object) -> Verdict:
        """Ask a table in memory."""
        if not isinstance(answer, str) or not answer.strip():
            return Verdict(False, f"{short(answer)} is not a condition; give it as text, such as 'partition = 3'.")
        if '"' in answer:
            return Verdict(False, f"{short(answer)} has double quotes: to Spark that is a text, and no column.")
        condition = re.sub(r"--[^\n]*|(?<=\d)L\b", "", answer)
        if not _is_balanced(condition):
            return Verdict(False, f"{short(answer)} cannot be asked: its parentheses do not match.")
        with sqlite3.connect(":memory:") as table:
            table.create_function("int", 1, int)
            table.create_function("if", 3, lambda is_so, one, other: one if is_so else other)
            types = ("TEXT" if isinstance(each, str) else "INTEGER" for each in self.rows[0])
            table.execute(f"CREATE TABLE hurt ({', '.join(map(' '.join, zip(self.columns, types, strict=True)))})")
            marks = ", ".join("?" for _ in self.columns)
            table.executemany(f"INSERT INTO hurt VALUES ({marks})", self.rows)
            ends = time.monotonic() + SECONDS
            table.set_progress_handler(lambda: time.monotonic() > ends, 100_000)
            try:
                # Without a name, as a DataFrame: `hurt` is that of a variable, so `hurt.intervals` is no column.
                kept = table.execute(f"SELECT * FROM (SELECT * FROM hurt) WHERE ({condition})").fetchall()
                values = [value for (value,) in table.execute(f"SELECT ({condition}) FROM (SELECT * FROM hurt)")]
            except sqlite3.Error as error:
                return Verdict(False, f"{short(answer)} cannot be asked: {error}. Columns: {', '.join(self.columns)}.")
        if odd := [value for value in values if value not in (0, 1, None)]:
            return Verdict(False, f"{short(answer)} gives {short(odd[0])}; a condition of Spark is true or false.")
        for row in self.rows:
            if (row in kept) != self.truth(*row):
                what = "keeps" if row in kept else "leaves out"
                named = ", ".join(f"{name}={value}" for name, value in zip(self.columns, row, strict=True))
                return Verdict(False, f"It {what} the row with {named}. {self.wrong.get(row, '')}".rstrip())
        return Verdict(True, self.why)


def _is_balanced(text: str) -> bool:
    """True if each parenthesis outside of quotes has its partner."""
    bare = re.sub("'[^']*'", "", text)
    depths = [0, *accumulate((each == "(") - (each == ")") for each in bare)]
    return min(depths) == depths[-1] == 0


# 3: compute

Changes = tuple[tuple[int, int], ...]
OUTAGES = {
    "a broker dies twice": "kill 1\nrun_for 20\nstart 1\nsettle\nkill 1\nrun_for 9\nstart 1\nsettle\n",
    "broker 0 dies": "kill 0\nrun_for 20\nstart 0\nsettle\n",
    "a broker never returns": "kill 1\nrun_for 30\n",
    "two controllers write that there is no leader": "kill 1\nsettle\ndelete_controller\nrun_for 30\nstart 1\nsettle\n",
}
"""Commands after the creation of a topic with one replica for each partition."""
ALONE = """lab brokers=[0,1,2] generation=2.4 seed=7\ncreate_topic orders assignment='{"0":[1],"1":[0]}'\nsettle\n"""


def history(lab: Lab) -> list[tuple[Changes, int]]:
    """Of each partition: when its `state` znode was written, in ms, with which leader; and when the lab ended."""
    written: dict[str, list[tuple[int, int]]] = {}
    for record in lab.trace.slice(kind="zk"):
        if record.path is not None and record.path.endswith("/state") and record.detail is not None:
            written.setdefault(record.path, []).append((round(record.time_ms), json.loads(record.detail)["leader"]))
    return [(tuple(changes), round(lab.now * 1000)) for changes in written.values()]


def without_leader(changes: Changes, end: int) -> tuple[int, int]:
    """The time without a leader in all, and the longest interval."""
    spans = _spans(changes, end)
    return sum(spans), max(spans, default=0)


def _spans(changes: Changes, end: int) -> list[int]:
    spans, since = [], None
    for at, leader in (*changes, (end, 0)):
        if since is not None and leader >= 0:
            spans.append(at - since)
        since = (at if since is None else since) if leader < 0 else None
    return spans


def explain_outage(given: tuple[Changes, int], got: object, expected: tuple[int, int]) -> str:
    """The fault in the times that a function found."""
    changes, end = given
    text = f"of {changes} up to {end} your function returns {short(got)}. "
    if not isinstance(got, tuple) or len(got) != 2:
        return f"{text}Two numbers are asked for: all of the time, and the longest interval."
    if got == expected[::-1]:
        return f"{text}The sum comes first."
    if tuple(round(each * 1000) for each in got) == expected:
        return f"{text}The times are milliseconds, and so is what is asked for."
    if changes[-1][1] < 0 and got[0] < expected[0]:
        return f"{text}The last interval is open: it counts up to `end`."
    leaders = [leader for _, leader in changes]
    if (-1, -1) in pairwise(leaders) and min(got[0] - expected[0], got[1] - expected[1]) < 0:
        return f"{text}A leader of -1 can be written twice. When did the interval begin?"
    if got[0] < expected[0]:
        return f"{text}It is too little: when does an interval begin, and when does it end?"
    if got[0] > expected[0]:
        return f"{text}It is too much: when does an interval end?{' A broker may have the id 0.' * (0 in leaders)}"
    differs = "longer" if got[1] < expected[1] else "shorter"
    return f"{text}The sum is right, and the longest interval is {differs} than yours."


EXERCISES: tuple[Exercise, ...] = (
    Operate(
        name="25.1",
        title="A dashboard that looks well",
        hints=(
            "When does an interval begin and end here? The only replica of each partition is on one broker.",
            "Two short intervals and one long: which number sees the long one?",
            "`lab.kill(1)`, `lab.settle()`, `lab.start(1)`, `lab.settle()` is a short one.",
        ),
        begin=DAILY,
        missing=looks_bad,
        best=3,
        remarks={
            "shutdown": "A controlled shutdown does not move a partition with one replica: "
            "the broker leaves at once, and the partition has no leader.",
            "pause": lambda lab: (
                None if lab.trace.slice(action="expired") else "A pause within the session timeout costs no leader."
            ),
        },
        why=harm,
    ),
    Condition(
        name="25.2",
        title="Ask it in SQL",
        core=True,
        hints=("Compare `intervals` with a number.", "At least twice: is twice enough?"),
        columns=("history", "topic", "partition", "intervals"),
        rows=(
            ("cluster-1", "orders", 0, 1),
            ("cluster-1", "orders", 1, 2),
            ("cluster-1", "orders", 2, 3),
            ("cluster-2", "clicks", 4, 7),
            ("cluster-2", "clicks", 0, 1),
            ("cluster-2", "clicks", 5, 1),
            ("cluster-2", "orders", 0, 5),
            ("cluster-1", "clicks", 1, 1),
            ("cluster-1", "clicks", 4, 1),
            ("cluster-3", "orders", 2, 4),
            ("cluster-3", "clicks", 3, 12),
        ),
        truth=lambda history, topic, partition, intervals: intervals >= 2,
        wrong={
            ("cluster-1", "orders", 0, 1): "Once is not twice.",
            ("cluster-2", "clicks", 5, 1): "Once is not twice.",
            ("cluster-1", "orders", 1, 2): "Twice is at least twice.",
            ("cluster-1", "orders", 2, 3): "At least twice, so more often as well.",
        },
        why="A comparison is written like this in Spark, too: `hurt.where(condition)`.",
    ),
    Compute(
        name="25.3",
        title="Time without a leader",
        core=True,
        given="""
def time_without_leader(changes, end):
    \"\"\"The time without a leader in all, and its longest interval; `changes` are pairs (ms, leader).\"\"\"
    spans, since = [0], None
    for at, leader in changes:
        if leader == -1:
            since = ...
        elif since is not None:
            spans.append(...)
            since = None
    return sum(spans), max(spans)
""",
        hints=(
            "Take the changes of one partition by hand. When does an interval begin, and when does it end?",
            "What if -1 is written twice, and what if the last change is a -1?",
        ),
        stories={title: ALONE + commands for title, commands in OUTAGES.items()},
        give=history,
        truth=without_leader,
        explain=explain_outage,
        why="The open interval is the one that hurts now, and the one that a query forgets first.",
    ),
)
