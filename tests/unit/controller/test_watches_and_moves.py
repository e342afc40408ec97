"""The page `docs/watches-and-moves.md` against a controller of Kafka 2.0 in a lab."""

import re
from itertools import groupby

from tables import tabled

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


def test_the_paths_are_those_the_controller_has_handlers_for() -> None:
    """During a move; children, or the znode itself."""
    with quiet_lab(4) as lab:
        lab.create_topic("TOPIC", assignment={0: [1, 2, 3]})
        for command in ("settle", "slow 4 8", "reassign '{\"TOPIC-0\":[1,2,4]}'", "run_for 0.1"):
            lab.do(command)
        client = lab._world.brokers[lab.controller.id].zk
        nodes = {re.sub(r"ids/\d", "ids/ID", path).replace("partitions/0", "partitions/N") for path in client._nodes}
    for found, children in ((client._children, True), (nodes, False)):
        rows = {
            path.strip("`")
            for path, row in WATCHES.items()
            if "/" in path and row[0].startswith("children") is children
        }
        assert set(found) == rows


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
