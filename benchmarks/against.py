"""Two checkouts measured in turn, so that a regression is seen: `python -m benchmarks --against COMMIT [PART ...]`.

Each checkout runs its own benchmarks, one part at a time, first one and then the other. A figure is compared within its
round only, since a machine's speed changes between rounds; the ratio is that of this checkout to the other one.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT

LINE = re.compile(r"  (?P<name>.{60,}?) {2,}(?P<number>-?\d[\d,]*\.?\d*) ?(?P<unit>\S*)")
"""A figure as `python -m benchmarks` prints it, if its result begins with a number."""


def numbers(printed: str) -> dict[tuple[str, str], float]:
    """The results by name and unit; a result that is no number is left out."""
    found = (LINE.match(line) for line in printed.splitlines())
    return {(one["name"].strip(), one["unit"]): float(one["number"].replace(",", "")) for one in found if one}


def compared(rounds: Iterable[tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]]) -> Iterator[Figure]:
    """The median ratio of each figure that both checkouts have, with its spread; then the figures that only one has.

    `rounds`: the results of this checkout and of the other one. Only results above 0 have a ratio.
    """
    ratios: dict[tuple[str, str], list[float]] = {}
    alone: set[str] = set()
    for here, there in rounds:
        alone |= {name for name, _ in here.keys() ^ there.keys()}
        for key in here.keys() & there.keys():
            if here[key] > 0 and there[key] > 0:
                ratios.setdefault(key, []).append(here[key] / there[key])
    for (name, unit), found in sorted(ratios.items()):
        spread = f"{min(found):.2f} to {max(found):.2f} in {len(found)} rounds; ratio of {unit or 'counts'}"
        yield Figure(name, f"{statistics.median(found):.2f}", spread)
    for name in sorted(alone):
        yield Figure(name, "not compared", "only one of the checkouts has it, or in another unit")


def measure(commit: str, parts: Sequence[str], rounds: int, quick: bool) -> Iterator[Figure]:
    """Compare this checkout with a commit, part by part. Raises BadInput if there is no such commit."""
    with tempfile.TemporaryDirectory() as folder:
        clone(commit, Path(folder))
        for part in parts:
            taken = ((run(ROOT, part, quick), run(Path(folder), part, quick)) for _ in range(rounds))
            yield from compared([(numbers(here), numbers(there)) for here, there in taken])


def clone(commit: str, folder: Path) -> None:
    """Check a commit of this repository out into an empty folder. Raises BadInput if there is none of that name."""
    git = ("git", "-C", str(ROOT))
    known = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"], capture_output=True, text=True
    )
    if known.returncode:
        raise BadInput(f"no commit {commit!r} in {ROOT.name}: `git log --oneline` lists them")
    subprocess.run([*git[:1], "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", known.stdout.strip()], check=True)


def run(checkout: Path, part: str, quick: bool) -> str:
    """The output of one part of a checkout's own benchmarks; nothing, with a line on standard error, where it fails."""
    command = [sys.executable, "-m", "benchmarks", part, *(["--quick"] if quick else [])]
    ended = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    if ended.returncode:
        print(f"{part} failed in {checkout}: {ended.stderr.strip()[-500:]}", file=sys.stderr)
    return "" if ended.returncode else ended.stdout
