"""The programs in `docs/examples/` print what is saved beside them, and README shows the first one as it is."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import pytest

from kafka_ctl.paths import ROOT

EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))


def output(program: Path) -> str:
    """What a program prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(program), run_name="__main__")
    return printed.getvalue()


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_is_saved(program: Path, request: pytest.FixtureRequest) -> None:
    """With `--rewrite` the outputs are saved anew."""
    saved, printed = program.with_suffix(".out"), output(program)
    if request.config.getoption("rewrite"):
        saved.write_text(printed, "utf-8")
    assert saved.read_text("utf-8") == printed
    assert 15 <= len(program.read_text("utf-8").splitlines()) <= 40


def test_readme_shows_the_first_example() -> None:
    """Program and output, without the docstring."""
    readme = (ROOT / "README.md").read_text("utf-8")
    program = EXAMPLES[0].read_text("utf-8").partition("\n\n")[2]
    assert f"```python\n{program}```" in readme
    assert f"```text\n{EXAMPLES[0].with_suffix('.out').read_text('utf-8')}```" in readme
