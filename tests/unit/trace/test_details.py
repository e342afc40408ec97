"""The codec of `Record.detail`."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree import package

from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

NAMES = st.from_regex(r"[a-z_]{1,9}", fullmatch=True)
VALUES = st.from_regex(r"[a-z0-9,@.:-]{0,9}", fullmatch=True)


@given(st.sets(NAMES), st.dictionaries(NAMES, VALUES))
def test_words_are_read_as_they_were_written(flags: set[str], values: dict[str, str]) -> None:
    written = details.write(*sorted(flags), **values)
    assert details.flags(written) == flags and details.named(written) == values
    assert (written is None) == (not flags and not values)


@given(st.dictionaries(NAMES, st.none() | st.integers() | st.text() | st.lists(st.integers())))
def test_fields_are_read_as_they_were_written(values: dict) -> None:
    record = Record(0, 0.0, "controller-1", "controller", "x", detail=details.write_fields(values))
    assert details.fields(record) == values


def test_what_there_is_to_write() -> None:
    """None is left out, an empty text is not; a flag that is not set is empty."""
    assert details.write("delete" * True, "absent" * False, path=None, remaining="") == "delete remaining="
    assert details.write(brokers=details.listed((3, 1))) == "brokers=3,1"
    assert details.numbers("3,1,-1,x") == (3, 1) and details.numbers(None) == ()


@pytest.mark.parametrize("text", [None, "", "x", "[1]", "1", '{"a"', "[" * 100_000])
def test_what_is_no_object(text: str | None) -> None:
    """Anybody may have written it."""
    assert details.json_object(text) == {}


def test_nobody_else_takes_a_detail_apart() -> None:
    """No other module splits, partitions or parses a record's `detail` by itself."""
    own = [
        f"{path.name}:{node.lineno}"
        for path, nodes in package().items()
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("split", "partition", "loads") and ".detail" in ast.unparse(node)
    ]
    assert [place for place in own if not place.startswith("details.py")] == []


@pytest.mark.parametrize("one_way", [False, True])
def test_both_ends_of_a_connection(one_way: bool) -> None:
    assert (
        details.ends(details.link(1, "zookeeper", one_way)) == [("1", "zookeeper"), ("zookeeper", "1")][: 2 - one_way]
    )
