"""Texts that were right before something happened to them, for property tests of whatever reads input."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = (
    *("", " ", "\n", "\t", "\0", "\\", "'", '"', "#", "=", ",", ":", "[", "]", "{", "}", "/", "..", "-", "_", "\ufeff"),
    *("0", "-1", "1", "9", "2147483648", "99999999999999999999", "9" * 5000, "0.5", "1e400", "NaN", "²", "٣", "0x1"),
    *("true", "null", "[]", "{}", '""', '"\\ud800"', "[[[[", "[" * 3000, '{"a":' * 3000, "é", "\N{SNOWMAN}", "\x85"),
    *("version", "partitions", "topic", "replicas", "leader", "none", "lab", "settle", "orders-0", "x" * 300),
)
"""What somebody, or a broken disk, may have put in between."""


@st.composite
def mutated(draw: st.DrawFn, text: str, most: int = 4) -> str:
    """The text after a few edits: a part deleted, said twice or exchanged, something nasty put in, or the end lost."""
    for _ in range(draw(st.integers(1, most))):
        first, second = sorted(draw(st.integers(0, len(text))) for _ in range(2))
        last = min(second, first + draw(st.sampled_from((1, 2, 8, 40))))
        match draw(st.sampled_from(("delete", "double", "insert", "replace", "replace", "truncate"))):
            case "delete":
                text = text[:first] + text[last:]
            case "double":
                text = text[:last] + text[first:]
            case "insert":
                text = text[:first] + draw(st.sampled_from(NASTY)) + text[first:]
            case "replace":
                text = text[:first] + draw(st.sampled_from(NASTY)) + text[last:]
            case _:
                text = text[:last]
    return text
