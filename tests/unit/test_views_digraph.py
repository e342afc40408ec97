"""Graphs to go on with: tables, elections and clusters as `graphviz.Digraph`."""

from __future__ import annotations

from collections.abc import Iterator

import graphviz
import pytest
from prose import Prose

from kafka_ctl import PARTITION, REPLICA, BadInput, Lab, digraph


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Broker 2 has died, and the partitions that it led have another leader."""
    with Lab(brokers=3, seed=7) as lab:
        lab.create_topic("orders", partitions=3, replication_factor=2)
        lab.settle()
        lab.kill(2)
        lab.settle()
        yield lab


@pytest.mark.parametrize("table", [*PARTITION.values(), *REPLICA.values()], ids=str)
def test_a_table_has_a_node_for_each_state_and_an_edge_for_each_move(table: object) -> None:
    graph = digraph(table)  # type: ignore[arg-type]
    assert isinstance(graph, graphviz.Digraph)
    assert graph.source.count(" -> ") == len(table.rows)  # type: ignore[attr-defined]
    assert all(f'id="state:{state}"' in graph.source for state in table.states)  # type: ignore[attr-defined]


def test_a_cluster_shows_what_is_so_now(lab: Lab) -> None:
    source = digraph(lab).source
    assert "down" in source and 'label="Broker 1\\ncontroller, epoch 2"' in source
    for p in lab.partitions():
        assert f'id="replica:orders-{p.partition}@{p.leader}"' in source
    assert source == digraph(lab.trace).source


def test_an_election_names_the_candidates_in_their_order(lab: Lab) -> None:
    last = [record for record in lab.trace if record.kind == "election"][-1]
    source = digraph(lab, election=last.seq).source
    assert source.index("2\\nnot live, in the ISR") < source.index(f"{last.leader}\\nlive, in the ISR")


def test_a_graph_can_be_changed_and_is_shown_without_the_program_dot(lab: Lab) -> None:
    graph = digraph(lab)
    graph.node("note", "after the failure")
    assert "after the failure" in graph._repr_mimebundle_()["image/svg+xml"]


def test_what_has_no_graph_is_named(prose: Prose, lab: Lab) -> None:
    with prose.refused(BadInput):
        digraph(3)  # type: ignore[arg-type]
    with prose.refused(BadInput):
        digraph(lab, election=0)
