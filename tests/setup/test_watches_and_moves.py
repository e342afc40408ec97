"""The page `docs/watches-and-moves.md` against a controller of Kafka 2.0 in a lab."""

import re
from itertools import groupby

from tables import tabled

from kafka_ctl.controller import events
from kafka_ctl.controller.listeners import CHILDREN
from kafka_ctl.paths import ROOT
from kafka_ctl_course import quiet_lab

WATCHES, MOVES = (
    {
        cells[0]: cells[1:]
        for line in part.splitlines()
        if len(cells := [c.strip() for c in line.strip("|").split("|")]) > 2
    }
    for part in (ROOT / "docs/watches-and-moves.md").read_text("utf-8").split("\n## ")[1:]
)
"""The rows of the two tables by their first cells."""


def test_the_events_of_children_are_those_of_the_listeners() -> None:
    """Each path with its event; the other events are there, too."""
    named = {path.strip("`"): [each.strip("`") for each in row[1].split(", ")] for path, row in WATCHES.items()}
    children = {path.strip("`") for path, row in WATCHES.items() if row[0].startswith("children")}
    assert {path: named[path] for path in children} == {path: [event.__name__] for path, event in CHILDREN.items()}
    del named["path"], named["---"]
    assert all(hasattr(events, name) for names in named.values() for name in names)


@tabled
def test_moves_on_an_occasion(rows: list[str], before: str, command: str) -> None:
    """All steps of these rows, in order."""
    with quiet_lab(4) as lab:
        for each in filter(None, before.split("; ")):
            lab.do(each)
            lab.settle()
        begin = len(lab.trace)
        lab.do(command)
        lab.settle()
        moves = [r for r in lab.trace[begin:] if r.kind in ("partition", "replica") and r.action != "set"]
        steps = [f"{kind} → {target}" for (kind, target), _ in groupby((r.kind, r.target) for r in moves)]
    wanted = [step for row in rows for step in re.findall(r"`(\w+ → \w+)`", MOVES[row][0])]
    assert [re.sub(r"(Partition|Replica)$", "", step) for step in steps] == wanted
