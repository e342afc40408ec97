"""The recipes of CONTRIBUTING.md: its worked change and one recipe are applied to a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kafka_ctl.paths import ROOT

USE = """
from kafka_ctl import Lab
from kafka_ctl.explore.walk import menu as drawn
from kafka_ctl.lab.menu import clicked, menu
from kafka_ctl.views.frames import film

lab = Lab(brokers=3, seed=1)
assert "reboot" in [button["do"] for button in menu(lab)["broker"]]
assert "reboot" in dict(drawn("2.0"))
lab.do(clicked("broker:2", "reboot", {"seconds": "30"}))
lab.settle()
assert lab.brokers[2].state == "running" and str(lab.commands[-2]) == "reboot 2 30"
assert Lab.replay(lab.story).trace.records == lab.trace.records
(sentence,) = [frame.caption for frame in film(lab.trace).frames if "machine" in frame.caption]
print(sentence)
"""


MESSAGE_ROW = "  good_morning | brokers\n    says The controller is up.\n"
MESSAGE_TEXT = "good_morning INFO  controller Good morning, {brokers:List}\n\n\n"
MESSAGE_CALL = '    env.log("good_morning", brokers=sorted(env.context.brokers))\n'
USE_MESSAGE = """
from kafka_ctl import Lab
from kafka_ctl.kafka_log.read import parse_line

lab = Lab(brokers=3, seed=1)
line = next(line for line in lab.trace.kafka_log("controller").splitlines() if "Good morning" in line)
(record,) = [record for record in lab.trace if record.action == "good_morning"]
assert record.detail == '{"brokers": [1]}', record.detail
assert parse_line(line).action == "good_morning"
print(line)
"""

DIFF = re.compile(r"^--- (?P<file>\S+)\n(?P<lines>(?:[ +].*\n)+)", re.MULTILINE)
"""A file of a diff without line numbers: lines of context, and lines that are added after them."""
FILE = re.compile(r"`(?:kafka_ctl|tests|docs|notebooks)/[^`]*`")


def places(recipe: str) -> list[str]:
    """The files that a recipe names, but for commands to run."""
    (row,) = re.findall(rf"^\| {recipe} \| (.*) \|$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    return [part for part in row.split("; ") if not re.match(r"(then )?`(kafka-ctl|python -m)", part)]


def test_no_recipe_has_more_than_three_places() -> None:
    """And each place names one file, or the folder in which a new file belongs."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Recipes")[2].partition("\n## ")[0]
    recipes = re.findall(r"^\| (an? [^|]*) \| ", text, re.MULTILINE)
    assert len(recipes) >= 10
    assert {recipe: found for recipe in recipes if len(found := places(re.escape(recipe))) > 3} == {}
    several = [part for recipe in recipes for part in places(re.escape(recipe)) if len(FILE.findall(part)) > 1]
    assert several == []


def follow(folder: Path, additions: list[tuple[str, str, str]], use: str) -> str:
    """The output of a program with a copy of the package. `additions`: a file, a text in it, the text after it."""
    copy = folder / "kafka_ctl"
    shutil.copytree(ROOT / "kafka_ctl", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, after, more in additions:
        path = copy / name
        head, mark, tail = path.read_text("utf-8").partition(after)
        assert mark, f"{name} has no {after!r}"
        path.write_text(f"{head}{mark}{more}{tail}", "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def worked_change() -> Iterator[tuple[str, str, str]]:
    """Each part of the diff in CONTRIBUTING.md: its file, its lines of context, and the lines added after them."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("```diff\n")[2].partition("```")[0]
    for part in DIFF.finditer(text):
        lines = part["lines"].splitlines(keepends=True)
        context = "".join(line[1:] for line in lines if line[0] == " ")
        yield part["file"].removeprefix("kafka_ctl/"), context, "".join(line[1:] for line in lines if line[0] == "+")


def test_the_worked_change(tmp_path: Path) -> None:
    """A method and two rows: then the fault is clicked, drawn, replayed and captioned."""
    changes = list(worked_change())
    assert len(changes) == len(places("a fault or command")) == 3
    assert follow(tmp_path, changes, USE).startswith("The machine of broker 2")


def test_the_recipe_of_a_controller_message(tmp_path: Path) -> None:
    """A call, a row and a text: then it is recorded, written and read."""
    additions = [
        ("controller/failover.py", '    env.log("ready", epoch=env.context.epoch)\n', MESSAGE_CALL),
        ("trace/catalogue.txt", "[controller] becoming controller, in this order\n", MESSAGE_ROW),
        ("kafka_log/messages.txt", "Signaling restart of topic deletion for these topics\n\n\n", MESSAGE_TEXT),
    ]
    assert len(places("a controller message")) == len(additions)
    assert "Good morning, List(1)" in follow(tmp_path, additions, USE_MESSAGE)
