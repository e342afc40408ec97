"""Runs whose bytes must not depend on where Python runs: what they leave behind, as hashes. A browser runs it, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

from kafka_ctl.explore.play import play
from kafka_ctl.explore.walk import walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.kafka_log.write import kafka_log
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.museum import EXHIBITS
from kafka_ctl.views.dot import engine
from kafka_ctl.views.frames import film
from kafka_ctl.views.svg import static_svg
from kafka_ctl.views.widget.player import payload

SEEDS = 4
LENGTH = 12
"""Commands of a random walk."""


def stories() -> Iterator[tuple[str, str]]:
    """Random walks in each generation, and the museum's; each with its name."""
    for generation in GENERATIONS:
        for seed in range(SEEDS):
            drawn = walk(generation, seed, LENGTH)
            done = [drawn.opening, *play(drawn).commands]
            yield f"{generation}/{seed}", "".join(f"{Command.__str__(line)}\n" for line in done)
    for exhibit in EXHIBITS:
        yield exhibit.name, exhibit.story


def bytes_of(lab: Lab) -> Iterator[tuple[str, Callable[[], str]]]:
    """All that a run leaves behind, and how to get it."""
    generation = lab.generation.name
    yield "story", lambda: lab.story
    yield "trace", lambda: lab.trace.text("all")
    yield "state-change.log", lambda: kafka_log(lab.trace, "state-change", generation)
    yield "controller.log", lambda: kafka_log(lab.trace, "controller", generation)
    yield "picture", lambda: static_svg(film(lab.trace, limit=100_000))
    yield "player", lambda: json.dumps(payload([film(lab.trace, "partition", limit=100_000)]))


def digests() -> dict[str, str]:
    """A hash for each, by the names of the story and of the thing."""
    found = {}
    for name, story in stories():
        with Lab.replay(story) as lab:
            found |= {f"{name} {what}": _hash(make) for what, make in bytes_of(lab)}
    return found


def _hash(make: Callable[[], str]) -> str:
    return hashlib.sha256(make().encode()).hexdigest()


def report() -> str:
    """The digests and the engine that drew, as JSON."""
    return json.dumps({"engine": engine(), "digests": digests()})
