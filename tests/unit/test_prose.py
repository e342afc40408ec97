"""The golden text of our own sentences: what is written is read back, and nothing stale or changed passes."""

from pathlib import Path

import pytest
from prose import GoldenFile, Prose, heading, parse, render, source

from kafka_ctl.errors import BadInput, UnknownName


def test_blocks_are_read_back() -> None:
    """Also sentences of several lines, with empty ones and with dashes in them."""
    blocks = {"a call [kill]": ["one", "two\nlines\n\n- and a dash"], "a call [start]": ["x  y"], "another": ["z"]}
    assert parse(render(blocks)) == blocks


def test_what_cases_have_in_common_is_reported_once() -> None:
    """A case that says something else, or nothing, keeps the others from being summed up."""
    cases = [heading(f"test_a_call[{given}]") for given in ("0.10-kill", "2.0-kill", "0.10-start", "2.0-start")]
    assert render({case: ["no"] for case in cases}) == "a call\n- no\n"
    assert render(dict(zip(cases, [["no"], ["no"], [], ["yes"]], strict=True))) == (
        "a call [kill]\n- no\n\na call [2.0-start]\n- yes\n"
    )


def test_a_changed_sentence_fails() -> None:
    """As do one too many and another error; what differs between runs is hidden."""
    seen = Prose(["UnknownName: unknown file 'TMP/x'; known: 127.0.0.1:PORT"], {"/folder": "TMP"})
    with seen.refused(BadInput):
        raise UnknownName("file", "/folder/x", ["127.0.0.1:4711"])
    with pytest.raises(AssertionError):
        seen("one too many")
    with pytest.raises(AssertionError), Prose(["BadInput: so"], {}).refused(BadInput):
        raise BadInput("or so")
    with pytest.raises(BadInput), Prose(["BadInput: so"], {}).refused(UnknownName):
        raise BadInput("so")


def test_a_golden_file_knows_its_tests(tmp_path: Path) -> None:
    """Blocks of no test are named; rewriting drops them, and keeps those of tests that did not run."""
    path = tmp_path / "some.txt"
    path.write_text("gone\n- a\n\nkept\n- b\n\nchanged\n- c\n", "utf-8")
    golden = GoldenFile(path, ["changed", "kept", "silent"])
    assert golden.unused() == ["gone"]
    golden.found = {"changed": ["d"], "silent": []}
    golden.write()
    assert path.read_text("utf-8") == "changed\n- d\n\nkept\n- b\n"


@pytest.mark.parametrize(
    ("given", "shown"), [(lambda lab: lab.kill(9), "lab.kill(9)"), (BadInput, "BadInput"), (3, "3")]
)
def test_parameters_are_shown_as_they_are_written(given: object, shown: str) -> None:
    assert source(given) == shown
