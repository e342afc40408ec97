"""The recipes of CONTRIBUTING.md: one of them is followed, in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from kafka_ctl.paths import ROOT

METHOD = '''
    @command(
        Button(BROKER, "Reboot…", "its machine restarts", (SECONDS,), WHEN_UP),
        drawn=Drawn(2, lambda d: with_(d.broker(), d.seconds(10))),
    )
    def reboot(self, broker: int, seconds: float) -> None:
        """Restart the machine of a broker: its process dies, and is started again after so many seconds."""
        process, wait = self._broker(broker, "reboot", running=True), validate.seconds("a time", seconds)

        def restart() -> None:
            process.kill()
            self._world.clock.later(wait, process.start, 0.0)

        self._fault("reboot", broker, restart, detail=details.write(seconds=f"{wait:g}"))
'''
ROW = """
            action("reboot", "broker detail", "seconds", "The machine of {0} restarts."),"""

USE = """
from kafka_ctl import Lab
from kafka_ctl.explore.walk import menu as drawn
from kafka_ctl.lab.menu import clicked, menu
from kafka_ctl.views.frames import film

lab = Lab(brokers=3, seed=1)
assert "reboot" in [button["do"] for button in menu(lab)["broker"]]
assert "reboot" in dict(drawn("2.0"))
lab.do(clicked(lab, "broker:2", "reboot", {"seconds": "30"}))
lab.settle()
assert lab.brokers[2].state == "running" and str(lab.commands[-2]) == "reboot 2 30"
assert Lab.replay(lab.story).trace.records == lab.trace.records
(sentence,) = [frame.caption for frame in film(lab.trace).frames if "machine" in frame.caption]
print(sentence)
"""


MESSAGE_ROW = """
            message("good_morning", "brokers", "The controller has got up."),"""
MESSAGE_TEXT = "\ngood_morning INFO  controller Good morning, {brokers:List}\n"
MESSAGE_CALL = """
    env.log("good_morning", brokers=sorted(env.context.brokers))"""
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
    """What a program prints with a copy of the package to whose files texts were added, each before another text."""
    copy = folder / "kafka_ctl"
    shutil.copytree(ROOT / "kafka_ctl", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, more in additions:
        path = copy / name
        head, mark, tail = path.read_text("utf-8").partition(before)
        assert mark, f"{name} has no {before!r}"
        path.write_text(f"{head}{more}{mark}{tail}", "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_recipe_of_a_fault(tmp_path: Path) -> None:
    """A method and a row: then it is clicked, drawn, replayed and told."""
    additions = [
        ("lab/faults.py", "\n    # The network\n", METHOD),
        ("trace/actions.py", '\n            action("resume", "broker"', ROW),
    ]
    assert len(places("a fault or command")) == len(additions)
    assert follow(tmp_path, additions, USE).startswith("The machine of broker 2")


def test_the_recipe_of_a_controller_message(tmp_path: Path) -> None:
    """A call, a row and a text: then it is recorded, written and read."""
    additions = [
        ("controller/failover.py", '\n    env.log("ready", ', MESSAGE_CALL),
        ("trace/messages.py", '\n            message("registering_handlers")', MESSAGE_ROW),
        ("kafka_log/messages.txt", "\n\n\ngeneration 2.4\n", MESSAGE_TEXT),
    ]
    assert len(places("a controller message")) == len(additions)
    assert "Good morning, List(1)" in follow(tmp_path, additions, USE_MESSAGE)
