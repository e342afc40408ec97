"""The static pictures: made from tables and runs, fresh in the repository, stale when they are not."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from filmed import NASTY, every_kind
from prose import Prose, refuses

from kafka_ctl.errors import BadInput
from kafka_ctl.partition import PARTITION
from kafka_ctl.paths import ROOT
from kafka_ctl.replica import REPLICA
from kafka_ctl.views.dot import to_svg
from kafka_ctl.views.machines import machine_digraph
from tools import diagrams


def test_the_committed_diagrams_are_fresh() -> None:
    """`kafka-ctl diagrams` makes them anew."""
    assert diagrams.check(ROOT / "diagrams") == []


def test_what_is_stale_missing_or_left_over_is_named(prose: Prose, tmp_path: Path) -> None:
    written = diagrams.write(tmp_path)
    assert diagrams.check(tmp_path) == []
    (tmp_path / "partition-2.0.dot").write_text("digraph {}")
    (tmp_path / "replica-2.0.svg").unlink()
    (tmp_path / "old.svg").write_text("<svg/>")
    prose(*diagrams.check(tmp_path))
    assert {path.suffix for path in written} == {".dot", ".svg"}


def test_a_changed_svg_is_stale_only_where_its_bytes_are_sure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Graphviz places things elsewhere."""
    diagrams.write(tmp_path)
    (tmp_path / "partition-2.0.svg").write_text("<svg/>")
    assert diagrams.check(tmp_path) == ["partition-2.0.svg is stale"]
    monkeypatch.setattr(diagrams, "engine", lambda: "dot")
    assert diagrams.check(tmp_path) == []


def test_no_folder_is_reported(tmp_path: Path) -> None:
    refuses(BadInput, "no folder", diagrams.check, tmp_path / "none")


@pytest.mark.parametrize("table", [*PARTITION.values(), *REPLICA.values()], ids=lambda t: f"{t.name}-{t.kafka}")
def test_a_machine_has_all_its_moves(table: object) -> None:
    """One node for each state, one edge for each row, no more."""
    root = ElementTree.fromstring(to_svg(machine_digraph(table).source))
    ids = {g.get("id") for g in root.iter("{http://www.w3.org/2000/svg}g")}
    states = {f"state:{state}" for state in table.states}
    moves = {f"move:{m.source}>{m.target}" for m in table.rows}
    assert {i for i in ids if i and i.startswith(("state:", "move:"))} == states | moves


def test_causes_of_anything_can_be_drawn() -> None:
    """Names from outside are text there too."""
    dot = diagrams.cause_digraph(every_kind(NASTY), is_relevant=lambda record: True).source
    assert "<script" not in to_svg(dot)
