"""Exercises of lesson 16, locks, event queue, pipelining."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace.timing import timing
from kafka_ctl_course.quiet import opening

Case = tuple[list[str], int]
Outcome = tuple[tuple[tuple[str, int], ...], float]
TITLE = "Locks, event queue, pipelining"
CONFIG = '"auto.leader.rebalance.enable":false'
OPENING = opening(4)
WINDOW = "zookeeper.max.in.flight.requests"
KILLED = "create_topic orders partitions={} replication_factor=3\nsettle\nkill 1\nsettle\n"
STORIES = {
    "a broker that leads 30 partitions dies": OPENING + KILLED.format(120),
    "a window of three": OPENING.replace(CONFIG, f'{CONFIG},"{WINDOW}":3') + KILLED.format(24),
    "Kafka 0.10, one at a time": OPENING.replace("2.0", "0.10") + KILLED.format(12),
}


# 1: predict


def round_trips(lab: Lab) -> int:
    """Round trips to ZooKeeper from the end of the session to the first request to a broker."""
    found = timing(lab.trace, "expired")
    first = min(sent for sent, _ in found.requests)
    return len({at for at in found.operations if at <= first})


def predict_wrong(answer: int, truth: int) -> str | None:
    """The mistakes of exercise 1."""
    if answer == 64:
        return "That many are needed one by one, in 0.10. How many operations share a round trip here?"
    if answer in (60, 90, 120, 213, 214):
        return "That is a number of operations; those of one phase share round trips, five at a time."
    if answer == 2:
        return "That is how it learns who has gone. Then thirty reads need six round trips, thirty writes six more."
    if answer in (5, 6, 7):
        return "A window of five: thirty reads need six round trips, thirty writes six more. And what comes before?"
    if answer == 8:
        return "That is a window of ten."
    if answer == 12:
        return "Six to read, six to write. How does the controller find out who has gone?"
    if answer == 13:
        return "The list of brokers has ids only: what does the controller read next?"
    if answer == 1:
        return "The reads have to be answered before anything is decided, and decided before anything is written."
    return None


# 2: implement


def usual(operations: list[str], window: int) -> list[list[str]]:
    """So many at a time."""
    return [operations[n : n + window] for n in range(0, len(operations), window)]


def cases() -> Iterator[Case]:
    """Lists around the multiples of a window."""
    for window in (1, 2, 10):
        yield from (([f"get /{n}" for n in range(number)], window) for number in (1, 2, 9, 10, 11, 20, 21, 60))


def sizes_of(trips: list[list[str]], case: Case) -> list[int]:
    """The numbers of operations that are sent together: the kit's own where a function needs as few round trips."""
    own, sizes = [len(trip) for trip in usual(*case)], [len(trip) for trip in trips]
    return own if len(sizes) == len(own) and max(sizes) <= case[1] else sizes


def explain(case: Case, got: list[int], expected: list[int]) -> str:
    """The fault in the numbers of operations sent together, in one sentence."""
    operations, window = case
    if max(got) > window:
        return f"{max(got)} operations are in flight together; the window is {window}. Kafka holds a semaphore of it."
    return f"{len(got)} round trips; {len(expected)} are enough for {len(operations)} operations, {window} at a time."


def outcome(lab: Lab) -> Outcome:
    """The leaders, and the time at which the last leader or follower had taken over."""
    taken = [r.time_ms for r in lab.trace if r.action in ("become-leader", "become-follower")]
    return tuple((f"{p.topic}-{p.partition}", p.leader) for p in lab.partitions()), round(max(taken, default=0.0), 1)


def in_words(found: Outcome) -> str:
    """The same as text."""
    return f"the last broker informed at {found[1]} ms"


# 4: operate

GRACE = 0.3
"""Seconds from SIGTERM to SIGKILL."""
FAR = (
    OPENING.replace("2.0", "0.10")
    + "create_topic orders partitions=120 replication_factor=3\nsettle\ndelay 4 zookeeper 0.005\nsettle\n"
)
"""Each message between ZooKeeper and broker 4, the controller, takes 5 ms longer."""


def not_in_time(lab: Lab) -> str | None:
    """The problem (broker 1 runs, was killed or had more time, or a partition has no leader), or None."""
    if lab.brokers[1].state != "down":
        return "broker 1 runs."
    stops = [each for each in lab.commands if each.name in ("shutdown", "kill", "bounce") and each.args[:1] == (1,)]
    if not stops or stops[-1].name != "shutdown" or not 0 < (stops[-1].kwargs.get("grace") or 0) <= GRACE:
        return f"the platform stops a broker with SIGTERM and waits for 300 ms: `shutdown 1 grace={GRACE}`."
    if lab.trace.slice(start=stops[-1].seq, kind="fault", action="kill", broker=1):
        return "the process was killed before the controller had answered."
    running = {id for id, view in lab.brokers.items() if view.state == "running"}
    waiting = sum(p.leader not in running for p in lab.partitions())
    return f"{waiting} partitions have no leader that runs." if waiting else None


def not_stopped(lab: Lab) -> str | None:
    """The remark on a command before broker 1 was stopped."""
    stops = ("shutdown", "kill", "bounce")
    stopped = any(each.name in stops and each.args[:1] == (1,) for each in lab.commands)
    return None if stopped else "No command has stopped broker 1 yet."


def about_stop(lab: Lab) -> str:
    """The remark on a shutdown, by what the controller had done when the process was killed."""
    if text := not_stopped(lab):
        return text
    replaced = len(lab.trace.slice(kind="controller", action="elected")) > 1
    if replaced and not lab.trace.slice(kind="election", action="controlled-shutdown"):
        return "When broker 1 asked, the new controller had not taken over yet. Wait for it: `lab.settle()`."
    return "Thirty leaders are moved one after the other. What makes each move slow?"


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="16.1",
        title="How many round trips?",
        core=True,
        hints=(
            "Write down the phases: what has to be known before the next can begin?",
            "Which operations of one phase can share a round trip, and how many of them?",
            "Thirty by five, twice. And what does the controller read before it knows who has gone?",
        ),
        story=OPENING.replace(CONFIG, f'{CONFIG},"{WINDOW}":5') + KILLED.format(120),
        ask=round_trips,
        example=77,
        wrong=(predict_wrong,),
        why="Two to learn who has gone, six to read thirty states, six to write them: 2.8 ms.",
    ),
    Implement(
        name="16.2",
        title="Your own pipeline",
        hints=(
            "What does `range(0, 25, 10)` give?",
            "The answers come back in the order of the operations: what must you not change?",
            "The last list may be shorter than the window.",
        ),
        occasion="pipeline",
        usual=usual,
        read=sizes_of,
        cases=cases,
        stories=STORIES,
        outcome=outcome,
        describe=in_words,
        explain=explain,
        why="At most a window at a time, in order: as many operations as one by one, and a tenth of the waiting.",
    ),
    Repair(
        name="16.3",
        title="Elected twice",
        hints=(
            "How many of the four writes were refused?",
            "What becomes of a partition that is elected a second time?",
        ),
        ticket="KAFKA-8286",
        occasion="retry",
        given='''
def next_round(asked, refused):
    """The partitions to elect again: `asked` are all of this round, `refused` those whose write met another version."""
    return asked
''',
        stories={
            "several writes are refused": """create_topic bills assignment='{"0":[1,2,3],"1":[1,2,3]}'; settle; """
            "lag 3 bills 0; lag 3 bills 1; settle; catch_up 3; run_for 0.1991; shutdown 1 wait=false; settle",
        },
        why="Only what was refused is elected again; the leader epochs of the others rise once.",
    ),
    Operate(
        name="16.4",
        title="300 milliseconds to stop",
        core=True,
        hints=(
            "What does the broker wait for? Thirty partitions, times how many operations, times 10 ms?",
            "Which process waits for ZooKeeper, and must it be broker 4?",
            "Another controller is elected when the znode `/controller` is gone.",
        ),
        begin=FAR,
        missing=not_in_time,
        best=2,
        remarks={
            "shutdown": about_stop,
            "elect_preferred": "Broker 1 is preferred by the partitions that it leads.",
            "delete_controller": not_stopped,
            "heal": not_stopped,
            "kill 1": "Then there is no leader until the session ends.",
        },
        praise={
            "delete_controller": "The new controller is near ZooKeeper.",
            "expire_session": "The new controller is near ZooKeeper.",
            "heal": "A shorter way to ZooKeeper helps, where it can be had.",
            "kill": "It works, and costs a broker.",
            "shutdown 4": "The controller went first, and another one is near ZooKeeper.",
        },
        why="The wait is the number of operations one after the other, times the round trip of the controller.",
    ),
)
