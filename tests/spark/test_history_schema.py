"""The trace as a table: what goes in comes out, and anything else is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose

from kafka_ctl import BadInput, Record, Trace
from kafka_ctl.history.schema import SCHEMA, spark_schema, to_arrow, to_parquet
from kafka_ctl.history.traces import from_arrow, read_parquet
from kafka_ctl.paths import ROOT

INT32 = st.integers(-(2**31), 2**31 - 1)
IDS = st.lists(INT32, max_size=4).map(tuple)
WORDS = st.text(max_size=5)
FULL = Record(
    0, 12.5, "controller-1", "election", "offline", "orders", 0, 2, "OfflinePartition", "OnlinePartition", 3,
    (3, 1), 4, 5, 6, "/brokers", "NONODE", 0, (1, 2, 3), "live=1,3",
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Records whose every optional column may be empty, an empty ISR being something else than none."""
    optional = {
        **dict.fromkeys(("topic", "source", "target", "path", "error", "detail"), WORDS),
        **dict.fromkeys(("partition", "broker", "leader"), INT32),
        **dict.fromkeys(("leader_epoch", "zk_version", "controller_epoch"), INT32),
        **dict.fromkeys(("isr", "replicas"), IDS),
        "cause": st.integers(0, 2**62),
    }
    columns = st.fixed_dictionaries({name: st.none() | values for name, values in optional.items()})
    times = draw(st.lists(st.floats(0, 1e12), max_size=6))
    return [Record(seq, at, "a", "zk", "set", **draw(columns)) for seq, at in enumerate(times)]


@given(records())
def test_records_survive_the_table(some: list[Record]) -> None:
    """Values, types and emptiness."""
    assert from_arrow(to_arrow(Trace(records=some))).records == some


def test_the_columns_are_the_documented_ones() -> None:
    """As in `docs/trace-format.md`, in its order; a record in memory has all but the first."""
    table = (ROOT / "docs" / "trace-format.md").read_text("utf-8").partition("| column ")[2].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    documented = [name for cell in first_cells for name in cell.replace("`", "").replace(",", " ").split()]
    assert SCHEMA.names == documented == ["history", *Record._fields]


def test_spark_has_the_same_columns() -> None:
    """By name and type; the schema is made without Java."""
    types = {field.name: field.dataType.simpleString() for field in spark_schema()}
    assert list(types) == SCHEMA.names
    assert (types["seq"], types["time_ms"], types["partition"]) == ("bigint", "double", "int")
    assert types["isr"] == types["replicas"] == "array<int>"


def test_a_file_holds_the_trace(tmp_path: Path) -> None:
    """One file, replaced when written again; the history has the trace's name or the one given."""
    path = tmp_path / "run.parquet"
    to_parquet(Trace(records=[FULL, FULL._replace(seq=1)]), path)
    to_parquet(Trace(records=[FULL], history="mine"), path)
    back = read_parquet(path)
    assert (back.history, back.records) == ("mine", [FULL])
    assert pq.read_schema(path).names == SCHEMA.names
    Trace(records=[FULL]).to_parquet(path)
    assert read_parquet(path).history == "lab"


def test_a_trace_of_nothing(tmp_path: Path) -> None:
    """No records is a table too."""
    to_parquet([], tmp_path / "empty.parquet")
    assert len(read_parquet(tmp_path / "empty.parquet")) == 0


def test_one_history_of_several_is_picked(prose: Prose) -> None:
    """By name; in the order of `seq`, whatever the order of the rows."""
    later = FULL._replace(seq=1, isr=())
    table = pa.concat_tables([to_arrow([later, FULL], "b"), to_arrow([FULL], "a")])
    assert from_arrow(table, "b").records == [FULL, later]
    prose.refuses(BadInput, from_arrow, table)
    with pytest.raises(BadInput, match="no history 'c'"):
        from_arrow(table, "c")


def test_other_tables_are_refused(prose: Prose) -> None:
    """With what is missing; a column that may be empty may also be missing."""
    prose.refuses(BadInput, from_arrow, to_arrow([FULL]).drop_columns(["time_ms"]))
    assert from_arrow(to_arrow([FULL]).drop_columns(["detail", "isr"]))[0].isr is None
