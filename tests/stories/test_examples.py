"""The programs in `docs/examples/` print what is saved beside them; README shows the first; the blocks of pages run."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from kafka_ctl import Lab
from kafka_ctl.history import write_logs
from kafka_ctl.paths import ROOT

EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
RUN = ("drill", "generations", "incident", "invariants", "museum", "on-call")
"""Pages whose block needs no server. The blocks of the others: `README.md` above, `tests/zookeeper/` for the rest."""
DESCRIPTION = """\
Topic:orders PartitionCount:2 ReplicationFactor:3 Configs:
 Topic: orders Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3
 Topic: orders Partition: 1 Leader: 2 Replicas: 2,3,1 Isr: 2,3,1
"""


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


@pytest.mark.parametrize("name", RUN)
def test_the_python_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with the files that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text(DESCRIPTION, "utf-8")
    with Lab(brokers=3) as lab:
        lab.create_topic("orders", partitions=12, replication_factor=3)
        while lab.controller and lab.controller.id != 1:
            lab.kill(lab.controller.id)
            lab.settle()
        write_logs(lab.trace, "kafka")
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / f"docs/{name}.md").read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 1
    ran: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(blocks[0].replace("/var/log/kafka", "kafka"), name, "exec"), ran)
    assert name != "on-call" or ran["incident"].score.percent == 100
