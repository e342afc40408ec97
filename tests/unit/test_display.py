"""Partitions, brokers, znodes and records show as tables in a notebook and stay the values that they are."""

from IPython.core.formatters import DisplayFormatter
from labs import lab_of

from kafka_ctl import Lab
from kafka_ctl.display import MOST_ROWS, Rows, cell

PARTITIONS = """\
topic  partition  state            leader  isr   replicas  adding  removing  leader_epoch  controller_epoch  zk_version
a      0          OnlinePartition  1       1, 2  1, 2                        0             1                 0
a      1          OnlinePartition  2       2, 3  2, 3                        0             1                 0"""


def lab() -> Lab:
    return lab_of("a", {0: [1, 2], 1: [2, 3]}, brokers=3, seed=7)


def test_partitions_print_as_aligned_text_and_are_a_list() -> None:
    found = lab().partitions()
    assert str(found) == PARTITIONS
    assert found == list(found)
    assert [p.leader for p in found[1:]] == [2]
    assert str(found[:1]).splitlines() == [*PARTITIONS.splitlines()[:2]]
    assert repr(found).startswith("[PartitionView(topic='a'")


def test_a_notebook_shows_tables() -> None:
    """As IPython's own formatters see it; a table's text is the plain form."""
    cluster = lab()
    for value in (cluster.partitions(), cluster.replicas(), cluster.brokers, cluster.znodes(), cluster.log_dirs()):
        shown, _ = DisplayFormatter().format(value)
        assert shown["text/html"].startswith("<table>")
        assert shown["text/plain"] == str(value)
    records = cluster.trace._repr_html_()
    assert records.count("<tr>") == min(len(cluster.trace), MOST_ROWS) + 2, "a head, the records, how many more"
    assert f"({len(cluster.trace) - MOST_ROWS} more)" in records


def test_a_record_shows_the_columns_that_apply() -> None:
    record = lab().trace[0]
    assert repr(record) == "Record(seq=0, time_ms=0.0, actor='broker-1', kind='broker', action='start', broker=1)"
    assert record._repr_html_().count("<tr>") == 7, "a head and six columns"


def test_cells_hide_nothing_and_run_nothing() -> None:
    """Znodes are foreign text."""
    cluster = lab()
    cluster.write_znode("/config/topics/a", '<b>\x1b[1m{"x": "' + "y" * 100)
    html = cluster.znodes()._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;\\x1b[1m" in html
    assert cell(b"\xff") == "\\xff"
    assert cell("z" * 100) == "z" * 79 + "…"


def test_an_empty_list_has_no_rows() -> None:
    assert str(Rows[tuple[int]]()) == "(no rows)"
