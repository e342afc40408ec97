"""Our own sentences as golden text: `tests/prose/<file>.txt` has what the tests of that file have seen.

    what a lab refuses [kill]
    - UnknownName: unknown broker 9; known: 1, 2, 3
    - BadInput: broker 1 is running; start needs one that is down

A block is a test without `test_` and `_`, and its sentences in order. Its parameters follow in brackets: without the
generation, or without all of them, where the sentences are the same. The fixture `prose` compares them and `pytest
--rewrite` writes them; a block that no test uses fails. Kafka's own texts stand in the tests themselves: `refuses`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import pytest

FOLDER = Path(__file__).parent / "prose"
Error = TypeVar("Error", bound=BaseException)
Blocks = dict[str, list[str]]
"""Sentences by the heading of their block."""


def heading(test: str) -> str:
    """`test_a_call[kill]` as `a call [kill]`."""
    name, bracket, given = test.removeprefix("test_").partition("[")
    return name.replace("_", " ") + (f" [{given}" if bracket else "")


def parse(text: str) -> Blocks:
    """The blocks of a golden file."""
    blocks: Blocks = {}
    sentences: list[str] = []
    for line in text.splitlines():
        if line.startswith("- "):
            sentences.append(line[2:])
        elif line.startswith("  ") or not line:
            if sentences:
                sentences[-1] += "\n" + line[2:]
        else:
            sentences = blocks[line] = []
    return {name: [sentence.rstrip() for sentence in block] for name, block in blocks.items()}


def widths(name: str) -> list[str]:
    """The headings that may speak for a case: its own, without the generation, without any parameter."""
    return [
        name,
        re.sub(r" \[(0\.10|2\.0|2\.4)(-|\])", lambda found: " [" if found[2] == "-" else "", name),
        name.partition(" [")[0],
    ]


def render(blocks: Mapping[str, Sequence[str]]) -> str:
    """The text of a golden file; what cases have in common is said once."""
    reported: dict[str, Sequence[str]] = {}
    for name, sentences in blocks.items():
        for wider in reversed(widths(name)):
            if all(blocks[other] == sentences for other in blocks if wider in widths(other)):
                reported[wider] = sentences
                break
    return "\n".join(_block(name, sentences) for name, sentences in reported.items() if sentences)


def _block(name: str, sentences: Sequence[str]) -> str:
    lines = ["- " + "\n  ".join(sentence.rstrip().split("\n")) for sentence in sentences]
    return "\n".join(re.sub(r"[ \t]+$", "", line, flags=re.M) for line in [name, *lines]) + "\n"


def recorded(blocks: Blocks, name: str) -> list[str]:
    """The sentences of a case: of its own block, or of one that speaks for more cases."""
    return next((blocks[wider] for wider in widths(name) if wider in blocks), [])


class GoldenFile:
    """The golden file of the tests of one file; `cases` are the headings of all that were collected."""

    def __init__(self, path: Path, cases: Sequence[str]) -> None:
        self.path, self.cases = path, cases
        self.blocks = parse(path.read_text("utf-8")) if path.exists() else {}
        self.found: Blocks = {}

    def unused(self) -> list[str]:
        """The blocks that belong to none of the tests."""
        known = {wider for case in self.cases for wider in widths(case)}
        return [name for name in self.blocks if name not in known]

    def write(self) -> None:
        """Save what was found, and what was there of the tests that did not run."""
        blocks = {case: self.found.get(case, recorded(self.blocks, case)) for case in self.cases}
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(render(blocks), "utf-8")


class Prose:
    """The sentences of one test, each compared as it comes; with `wanted` of None they are only collected.

    `hide` is what differs between runs or machines, and what is shown for it; ports and pytest's own
    folders are hidden anyway.
    """

    def __init__(self, wanted: Sequence[str] | None, hide: Mapping[str, str]) -> None:
        self.wanted, self.hide, self.sentences = wanted, dict(hide), list[str]()

    def __call__(self, *sentences: object) -> None:
        """The next sentences of this test."""
        for sentence in sentences:
            text = str(sentence)
            for changing, shown in self.hide.items():
                text = text.replace(changing, shown)
            text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
            text = re.sub(r"[^\s']*/pytest-of-[^/]+/pytest-\d+(/popen-gw\d+)?/", "TMP/", text)
            self.sentences += parse(_block("one", [text]))["one"]
            number = len(self.sentences)
            if self.wanted is not None:
                wanted = self.wanted[number - 1] if number <= len(self.wanted) else "no such sentence"
                assert self.sentences[-1] == wanted, "`pytest --rewrite` where this is meant"

    @contextmanager
    def refused(self, *errors: type[BaseException]) -> Iterator[pytest.ExceptionInfo[BaseException]]:
        """The next sentence is the message of one of these errors, which ends the block."""
        with pytest.raises(errors) as caught:
            yield caught
        self(f"{type(caught.value).__name__}: {caught.value}")

    def refuses(self, error: type[BaseException], call: Callable[..., object], /, *args: Any, **given: Any) -> None:
        """The next sentence is the message of the error of this call: `prose.refuses(BadInput, lab.kill, 9)`."""
        __tracebackhide__ = True
        with self.refused(error):
            call(*args, **given)


def refuses(error: type[Error], words: str, call: Callable[..., object], /, *args: Any, **given: Any) -> Error:
    """The error with which a call ends; these words, a regular expression, are found in its message."""
    __tracebackhide__ = True
    with pytest.raises(error, match=words) as caught:
        call(*args, **given)
    return caught.value


def source(value: object) -> str:
    """The id of a parameter, for `ids=source`: of a lambda what it does, as it is written."""
    if isinstance(value, type):
        return value.__name__
    if not isinstance(value, FunctionType) or value.__name__ != "<lambda>":
        return str(value)[:60]
    code = value.__code__
    (found,) = [node for node in _lambdas(Path(code.co_filename)) if node.lineno == code.co_firstlineno]
    return ast.unparse(found.body)


@cache
def _lambdas(file: Path) -> list[ast.Lambda]:
    return [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Lambda)]
