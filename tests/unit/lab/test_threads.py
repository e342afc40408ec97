"""One lab and two threads: each call is done whole, or refused in one sentence."""

import threading
from collections.abc import Callable

import pytest
from prose import refuses

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab

CALLS: dict[str, Callable[[Lab], object]] = {
    "a command": lambda lab: lab.kill(2),
    "settle": lambda lab: lab.settle(),
    "run_until": lambda lab: lab.run_until(lambda: True, 1),
    "back": lambda lab: lab.back(1),
    "close": lambda lab: lab.close(),
    "partitions": lambda lab: lab.partitions(),
    "znodes": lambda lab: lab.znodes(),
    "brokers": lambda lab: lab.brokers,
    "controller": lambda lab: lab.controller,
}


@pytest.mark.parametrize("name", CALLS)
def test_what_another_thread_asks_meanwhile_is_refused(name: str) -> None:
    """In the middle of a command, and nothing comes of it; when the command has ended, it is done."""
    refusals: list[BaseException | None] = []

    def ask() -> None:
        try:
            CALLS[name](lab)
        except BadInput as refused:
            refusals.append(refused)
        else:
            refusals.append(None)

    def from_another_thread() -> bool:
        if not refusals:
            other = threading.Thread(target=ask)
            other.start()
            other.join(20)
            assert not other.is_alive()
        return False

    with Lab(3, seed=5) as lab:
        lab.create_topic("t", 3, 2)
        lab.run_for(0.001)
        story, records = lab.story, len(lab.trace)
        refuses(Exception, "not hold", lab.run_until, from_another_thread, 0.5)
        assert "another thread" in str(refusals[0])
        assert lab.story.startswith(story)
        assert [line.split()[0] for line in lab.story[len(story) :].splitlines()] == ["run_for"]
        assert len(lab.trace) >= records
        with Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records
        refusals.clear()
        other = threading.Thread(target=ask)
        other.start()
        other.join(20)
        assert refusals == [None]


def test_two_threads_that_work_at_once_leave_a_story_that_replays() -> None:
    """Whatever was done was done whole; what was refused left nothing."""
    done, refused = [0, 0], [0, 0]

    def work(place: int) -> None:
        for number in range(60):
            try:
                lab.produce("t", 0, 1) if place else lab.run_for(0.01 * (number % 3))
                lab.write_znode(f"/x{place}", f"{number}") if number % 7 == 0 else lab.partitions()
                done[place] += 1
            except BadInput as problem:
                refused[place] += "another thread" in str(problem)

    with Lab(3, seed=5) as lab:
        lab.create_topic("t", 3, 2)
        lab.settle()
        threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [a + b for a, b in zip(done, refused, strict=True)] == [60, 60]
        with Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records
