"""The finds of a search, as text and as story files.

Separate from `cli/explore.py` because tests and tools write finds too.
"""

from __future__ import annotations

import re
from pathlib import Path

from kafka_ctl.explore.exhaustive import Round, Search
from kafka_ctl.explore.search import Findings, Found


def summary(findings: Findings) -> str:
    """The amount that was played, the speed, and the declared violations."""
    f = findings
    lines = [
        f"Kafka {f.generation}: {f.walks:,} walks, {f.commands:,} commands and faults, {f.steps:,} steps "
        f"in {f.seconds:.0f} s ({f.steps / max(f.seconds, 1e-9):,.0f} steps/s)"
    ]
    for (name, ticket), times in sorted(f.known.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  known  {times:>7,} walks  {name}: {ticket}")
    for times, task, broken in sorted(f.unknown.values(), key=lambda item: (-item[0], item[2].text)):
        lines.append(f"  BROKEN {times:>7,} walks  {broken.name}: {broken.text}  (seed {task.seed})")
    if not f.unknown:
        lines.append("  nothing else was broken")
    return "\n".join(lines)


def account(search: Search) -> str:
    """The amount that an exhaustive search has seen, and the violations on the way."""
    size = f"{search.brokers} brokers, {search.partitions} partition{'s' * (search.partitions > 1)}"
    speed = search.states / max(search.seconds, 1e-9)
    lines = [f"Kafka {search.generation}, {size}: {search.seconds:.0f} s ({speed:,.0f} states/s)"]
    if search.complete is not None:
        lines.append(f"  every order, {_counted(search.complete)}")
    if search.rounds and not search.rounds[-1].complete:
        lines.append(f"  not every order, for the time was over, {_counted(search.rounds[-1])}")
    for times, case, broken in sorted(search.broken.values(), key=lambda item: (item[2].known or "", -item[0])):
        what = f"{broken.name}: {broken.known or broken.text}"
        lines.append(f"  {'known ' if broken.known else 'BROKEN'} {what}  ({case.where(times)})")
    if not search.unknown:
        lines.append("  nothing else was broken")
    return "\n".join(lines)


def _counted(tried: Round) -> str:
    seen = tried.seen
    whole = f"{seen.finished} of {tried.cases} pairs of commands" if not tried.complete else f"{tried.cases} pairs"
    return (
        f"{tried.depth} choices deep: {whole}, {seen.states:,} states on {seen.paths:,} paths, {seen.again:,} met again"
    )


def story_text(found: Found) -> str:
    """The shortest walk as a story that says what it shows."""
    where = f"{found.task.where(found.times)}; minimised in {found.runs} runs"
    where += f"; with the mutant {found.task.mutant}" if found.task.mutant else ""
    return f"# {found.broken.name}: {found.broken.text}\n# {where}\n\n{found.walk.story}"


def write_story(found: Found, folder: Path) -> Path:
    """Write it into a folder that is made if need be; returns the file."""
    generation = found.walk.opening.kwargs["generation"]
    name = re.sub(r"[^\w.]+", "-", f"{found.broken.name} {generation} {found.task.label}".lower())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.txt"
    path.write_text(story_text(found), "utf-8")
    return path
