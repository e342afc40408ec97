"""While ZooKeeper is down every call comes to an end: what needs it is refused at once, with the cure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labs import until_quiet
from prose import Prose
from tables import FOLDER, tabled, tables

from kafka_ctl.cli.commands import status
from kafka_ctl.errors import BadInput, ConditionNotMet
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import COMMANDS, Lab

CALLS = tables(FOLDER / "zookeeper_down.txt")["every command comes to an end"].rows
REFUSED = set(
    """
    add_broker add_partitions alter_config at_once cancel_reassignment create_topic delete_controller delete_topic
    delete_znode elect_leaders elect_preferred execute_reassignment generate_reassignment list_reassignments reassign
    shutdown start stop_zookeeper verify_reassignment write_znode
    """.split()
)
"""What needs ZooKeeper, unless it is told not to wait or has nothing to do."""
BEGIN = """\
lab brokers=[1,2,3] generation={}
create_topic t assignment='{{"0":[1,2]}}'
kill 3
settle
stop_zookeeper
"""


def test_every_command_is_tried() -> None:
    assert {name for name, _ in CALLS} == set(COMMANDS)


@pytest.fixture
def lab(generation: str) -> Iterator[Lab]:
    with Lab.replay(BEGIN.format(generation)) as lab:
        yield lab


@tabled(ids=lambda value: str(value)[:40])
def test_every_command_comes_to_an_end(prose: Prose, lab: Lab, name: str, args: tuple[Any, ...]) -> None:
    """At once, or when the time it was given is over; the lab goes on when ZooKeeper answers again."""
    before = len(lab.trace), lab.now
    idle = (name == "at_once" and not args[0]) or args == (1, False)
    if name in REFUSED and not idle:
        prose.refuses(BadInput, getattr(lab, name), *args)
        assert (len(lab.trace), lab.now) == before
    elif name == "settle":
        prose.refuses(ConditionNotMet, lab.settle)
    else:
        getattr(lab, name)(*args)
    until_quiet(lab.heal)
    assert lab.controller is not None
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records


def test_looking_needs_no_zookeeper(lab: Lab) -> None:
    """What only looks shows what there was."""
    lab.step(3)
    assert (lab.znodes(), lab.partitions(), lab.partition("t", 0), lab.replicas(), lab.brokers, repr(lab)) is not None
    assert (lab.logs(), lab.log("t", 0), lab.log_dirs(), lab.reassignments(), lab.violations) is not None
    lab.back()
    with lab.fork() as fork, lab.fork(seed=5) as other:
        assert fork.trace.records == lab.trace.records and other.seed == 5
    with pytest.raises(ConditionNotMet):
        lab.run_until(lambda: False, 9)


def test_a_story_comes_to_an_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kafka-ctl run` says what was wrong, or prints the trace, of commands that the test above tries."""
    file, begin = tmp_path / "story", BEGIN.format("2.0")
    for name, args in CALLS:
        method = getattr(Lab, name)
        file.write_text(f"{begin}{story.command(method, args, {})}\nheal\nsettle\n")
        ended = status(["run", str(file)])
        reported = capsys.readouterr()
        assert ended == (2 if "line 6" in reported.err else 0)
        assert (ended == 0) == bool(reported.out)


def test_what_was_stopped_on_its_way_waits_without_turning(lab: Lab) -> None:
    """A tool that ZooKeeper leaves alone in the middle of its work takes no time until it answers again."""
    until_quiet(lab.start_zookeeper)
    asked = len(lab.trace)
    lab.elect_preferred()
    with lab.fork(at=asked) as stopped:
        assert "\nelect_preferred\nuntil " in stopped.story
        stopped.stop_zookeeper()
        before = stopped.world.callbacks_run
        stopped.run_for(1)
        after = stopped.world.callbacks_run
        assert before is not None and after is not None and after - before < 200
