"""Exercises of lesson 12, KIP-455: a move that can be changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from kafka_ctl.cluster import ReplicaAssignment
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.quiet import TOPIC, opening

Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Partitions = tuple[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]
End = tuple[Partitions, tuple[tuple[str, int], ...], tuple[str, ...]]
TITLE = "KIP-455: a move that can be changed"
OPENING = opening(5, "2.4")
SLOW = OPENING + TOPIC + "slow 4 60\n"
CHANGED = SLOW + """reassign '{"orders-0":[1,2,4]}'\nrun_for 1\nreassign '{"orders-0":[5,4,2]}'\nrun_for 1\n"""
CANCEL = """cancel_reassignment '["orders-0"]'\nsettle\n"""
MISTAKEN = SLOW + """reassign '{"orders-0":[3,4,2]}'\nrun_for 1\n"""
"""A move that was a mistake, and that waits for broker 4."""
TWO_DOORS = (
    OPENING.replace("config=", """changes='{"takes_over_requests":false}' config=""", 1)
    + """create_topic orders assignment='{"0":[1,2]}'\nsettle\nkill 4\nsettle\n"""
    + """reassign '{"orders-0":[1,4]}' through=zookeeper\nsettle\nreassign '{"orders-0":[1,3]}'\nsettle\n"""
)
"""A build before 2.4.0: a plan in ZooKeeper waits for broker 4; another one, through the controller, is done."""


# 1: predict


def ends(lab: Lab) -> tuple[tuple[int, ...], int]:
    """AR and the leader."""
    found = lab.partition("orders", 0)
    return found.replicas, found.leader


def predict_wrong(answer: tuple[tuple[int, ...], int], truth: tuple[tuple[int, ...], int]) -> str | None:
    """The mistakes of exercise 1."""
    replicas, leader = answer
    if added := [broker for broker in (4, 5) if broker in replicas]:
        return f"Broker {added[0]} was being added; the cancellation has taken it out."
    if replicas == (1, 2, 3):
        return "The set is right. Its old order is in no list of the znode: what is left of AR while it moves?"
    if set(replicas) != {1, 2, 3}:
        return "The replicas before the first move have to be there again, all three."
    if replicas != truth[0]:
        return "The set is right. Take AR while it moves to 5, 4, 2, and take out what was being added."
    if leader == 1:
        return "Broker 1 leads until the preferred election. Which broker is the first of AR?"
    if leader != truth[1]:
        return f"AR is right. A preferred election makes its first broker the leader; yours is {leader}."
    return None


# 2: the three lists


def cases() -> Iterator[Case]:
    """From 1, 2, 3 to two or three of five brokers, then to others, then back."""
    for size in (2, 3):
        for target in permutations((1, 2, 3, 4, 5), size):
            first = ReplicaAssignment((1, 2, 3)).reassign_to(target)
            yield (1, 2, 3), (), (), target
            yield *first, (1, 2, 5)
            yield *first, first.origin


def usual(
    replicas: Sequence[int], adding: Sequence[int], removing: Sequence[int], target: Sequence[int]
) -> ReplicaAssignment:
    """Kafka's rule."""
    return ReplicaAssignment(tuple(replicas), tuple(adding), tuple(removing)).reassign_to(target)


def in_any_order(lists: Sequence[Sequence[int]], case: Case) -> tuple[tuple[int, ...], ...]:
    """The three lists; the order of those added and removed does not count."""
    replicas, adding, removing = lists
    return tuple(replicas), tuple(sorted(adding)), tuple(sorted(removing))


def explain(case: Case, got: tuple[tuple[int, ...], ...], expected: tuple[tuple[int, ...], ...]) -> str:
    """The fault in an answer, in one sentence."""
    before, adding, _, target = case
    (full, more, less), origin = got, [r for r in before if r not in adding]
    if twice := [r for r in full if full.count(r) > 1]:
        return f"Broker {twice[0]} is in the replicas twice."
    if more != expected[1]:
        if lost := [r for r in adding if r in target and r not in more]:
            return f"Broker {lost[0]} was not there before the move and is still being added: it belongs in `adding`."
        return f"Added is what is not in the origin, {origin}: the replicas before the *first* move."
    if extra := [r for r in full if r not in target and r not in origin]:
        return (
            f"Broker {extra[0]} is neither in the target nor in the origin, {origin}. It was being added for a target "
            "that does not count any more, and it would stay."
        )
    if set(full) != set(expected[0]):
        return "The replicas are the target and the origin together: those that leave still have a copy."
    if less != expected[2]:
        return "Removed are the replicas that are not in the target, and only these."
    if full[: len(target)] != tuple(target):
        return (
            f"The order is wrong: the target, {list(target)}, comes first and in its own order. AR keeps this order "
            "when the move ends, and its first broker is the preferred leader."
        )
    return "Those that leave come after the target, in the order of the origin."


def stories(text: dict[str, str]) -> dict[str, str]:
    """Stories that begin with a slow broker 4."""
    return {title: SLOW + commands for title, commands in text.items()}


STORIES = stories(
    {
        "a move": """heal\nreassign '{"orders-0":[3,5,2]}'\nsettle\n""",
        "a move that waits": """reassign '{"orders-0":[3,4,2]}'\nrun_for 1\n""",
        "another target": """reassign '{"orders-0":[1,2,4]}'\nrun_for 1\nreassign '{"orders-0":[1,2,5]}'\nsettle\n""",
        "cancelled": """reassign '{"orders-0":[3,4,2]}'\nrun_for 1\n""" + CANCEL,
        "another target, cancelled": CHANGED.removeprefix(SLOW) + CANCEL,
    }
)


def ended(lab: Lab) -> End:
    """AR of each partition with what is added and removed, who has a copy, and invariants that are broken."""
    found = tuple(
        (f"{p.topic}-{p.partition}", p.replicas, tuple(sorted(p.adding)), tuple(sorted(p.removing)))
        for p in lab.partitions()
    )
    copies = tuple(sorted((f"{at.topic}-{at.partition}", at.broker) for at in lab.log_dirs()))
    return found, copies, tuple(sorted({v.invariant for v in lab.violations if v.known is None}))


def in_words(outcome: End) -> str:
    """The same as text."""
    found, copies, broken = outcome
    states = [
        f"{name}: AR {list(ar)}, adding {list(adding)}, removing {list(removing)}, copies on "
        + (", ".join(str(b) for n, b in copies if n == name) or "no broker")
        for name, ar, adding, removing in found
    ]
    return "; ".join([*states, *[f"{', '.join(broken)} broken"] * bool(broken)])


# 3 and 4: operate


def returns(lab: Lab) -> str | None:
    """The fault that is left; None unless the old plan is carried out after the next failover."""
    with lab.fork() as later:
        if later.controller is not None:
            later.expire_session(later.controller.id)
            later.settle()
        if later.brokers[4].state == "down":
            later.start(4)
        later.settle()
        then = later.partition("orders", 0).replicas
    if set(then) == {1, 3}:
        return None
    return f"after the next failover, and with broker 4 up again, AR is {list(then)}."


def not_as_before(lab: Lab) -> str | None:
    """The fault that is left; None once AR is 1, 2, 3 in this order, nothing moves, and broker 1 leads by day."""
    found = lab.partition("orders", 0)
    if found.adding or found.removing:
        return "the move is still in the topic's znode."
    if found.replicas != (1, 2, 3):
        return f"AR is {list(found.replicas)}."
    with lab.fork() as later:
        later.elect_preferred()
        later.settle()
        leader = later.partition("orders", 0).leader
    return None if leader == 1 else f"after the next preferred election, broker {leader} leads."


def cancelled(lab: Lab) -> str | None:
    """The reply to a learner who cancelled."""
    if set(lab.partition("orders", 0).replicas) != {1, 2, 3}:
        return None
    return (
        "The set is back, and nothing moves. The znode had 3, 4, 2, 1; the order before the move is recorded nowhere."
    )


def taken_back(lab: Lab) -> str:
    """The reason why a move to the old list works; it copies where the first move has ended."""
    names = [each.name for each in lab.commands]
    if "write_znode" in names and not {"reassign", "execute_reassignment"} & {*names[names.index("write_znode") :]}:
        return "The next controller reads the lists from the znode."
    if lab.trace.slice(kind="broker", action="stop-replica", broker=1):
        return "The first move had ended and broker 1 had no copy any more; it fetched every record again."
    return "A move to the old list takes the running one back, and it names the order; every copy is there already."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="12.1",
        title="Changed, cancelled, then a preferred election",
        hints=(
            "The origin is 1, 2, 3. What is AR while it moves to 5, 4, 2, in which order?",
            "The cancellation takes out what was being added. What is left, in which order?",
            "Who is the first?",
        ),
        story=CHANGED + CANCEL + "elect_preferred\nsettle\n",
        ask=ends,
        example=((7, 8, 9), 7),
        parts=("AR", "the leader"),
        wrong=(predict_wrong,),
        why="AR was 5, 4, 2, 1, 3 and is 2, 1, 3: the same set as before with another preferred leader.",
    ),
    Implement(
        name="12.2",
        title="Begin, change, cancel: one function",
        core=True,
        hints=(
            "First get the origin: two of the four arguments are enough.",
            "Two subtractions give you what is added and what is removed.",
            "Try it on paper: 1, 2, 3 to 1, 2, 4, then to 1, 2, 5, then back to the origin. Where is 4?",
        ),
        occasion="target",
        usual=usual,
        read=in_any_order,
        cases=cases,
        stories=STORIES,
        outcome=ended,
        describe=in_words,
        explain=explain,
        lists=True,
        why="Target first, then what is left of the origin; added and removed are differences. Cancelling is a target.",
    ),
    Operate(
        name="12.3",
        title="Two doors (KAFKA-9089)",
        hints=(
            "There are two places for a plan in 2.4. Look at both: `lab.znodes()`.",
            "What does a new controller read first?",
            "Which of the two plans did you want?",
        ),
        begin=TWO_DOORS,
        missing=returns,
        best=1,
        remarks={
            "cancel_reassignment": "The move is cancelled. The older request is still in `/admin/reassign_partitions`.",
            "reassign": "A move through the API does not touch the older request in `/admin/reassign_partitions`.",
            "execute_reassignment": "The tool answers: There is an existing assignment running.",
            "delete_controller": "The new controller reads `/admin/reassign_partitions`, and finds the older request.",
            "start": "Now nothing keeps the older request from being carried out, once a new controller reads it.",
            "elect_preferred": "An election moves no replica.",
        },
        why="The older request was in `/admin/reassign_partitions`; 2.4.0 removes it itself when the API takes over.",
    ),
    Operate(
        name="12.4",
        title="Taken back, in order",
        core=True,
        hints=(
            "Cancel in a copy, `lab.fork()`, and look at AR.",
            "A cancellation is a move to the origin. You may also name the target yourself.",
            "Which move copies nothing and ends with 1, 2, 3?",
        ),
        begin=MISTAKEN,
        missing=not_as_before,
        best=1,
        remarks={
            "cancel_reassignment": cancelled,
            "reassign": "AR is what you asked for. It was 1, 2, 3, in this order.",
            "heal": "Now broker 4 copies as fast as the others, and the move that was a mistake ends.",
            "delete_controller": "The new controller reads the three lists in the topic's znode, and goes on.",
            "kill": "A move waits for a dead broker without a limit.",
            "elect_preferred": "An election moves no replica.",
        },
        why=taken_back,
    ),
)
