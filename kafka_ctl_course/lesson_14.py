"""Exercises of lesson 14, deleting topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from kafka_ctl.controller.deletion import next_move
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.replica import INELIGIBLE, OFFLINE, ONLINE, STARTED, SUCCESSFUL, ReplicaState
from kafka_ctl_course.figures.deletion import facts
from kafka_ctl_course.quiet import PLAN, TOPIC, opening

Case = tuple[dict[tuple[int, int], str], frozenset[int], bool]
End = tuple[bool, bool, tuple[tuple[str, str, bool], ...], tuple[str, ...]]
TITLE = "Deleting topics"
STUCK = opening(3) + TOPIC + "produce orders 0 records=5\nkill 1\nsettle\ndelete_topic orders\nsettle\n"
"""Broker 1 is down, so the deletion of orders cannot end."""
LEFT = (
    opening(4)
    + TOPIC
    + """create_topic audit assignment='{"0":[1,2,3]}'\nsettle\nslow 4 8\n"""
    + """reassign '{"orders-0":[1,2,4]}'\nrun_for 0.1\ndelete_topic orders\nsettle\nheal\nsettle\n"""
)
"""A topic was deleted while it moved: its request for a reassignment is left over."""
MOVING = (
    """create_topic audit assignment='{"0":[1,2]}'; settle; slow 4 8; reassign '{"orders-0":[1,4]}'; run_for 0.1; """
)
"""Commands after which orders moves, and audit does not."""
NOT_ASKED = "The move of audit has not been requested yet."


# 1: predict


def states(lab: Lab) -> dict[int, str]:
    """The state of each replica, by broker."""
    return {r.broker: str(r.state) for r in lab.replicas()}


def predict_wrong(answer: dict[int, str], truth: dict[int, str]) -> str | None:
    """The mistakes of exercise 1."""
    if set(answer) != set(truth):
        return f"One state for each of the brokers {', '.join(map(str, truth))} is asked for."
    if answer[1] == INELIGIBLE:
        return (
            "The new controller begins with this state for a replica whose broker is down. Then it tries the deletion "
            "again, and moves such a replica first. To which state?"
        )
    if answer[1] == STARTED:
        return "A broker that is down is sent no request, so nothing has started there."
    if answer[1] != truth[1]:
        return "Broker 1 is down: which state does the new controller give its replica in the end?"
    if SUCCESSFUL in (answer[2], answer[3]):
        return "That was in the memory of the controller before. Which znode has the state of a replica?"
    if STARTED in (answer[2], answer[3]):
        return "The deletion is halted again, because broker 1 is down: the new controller asks no broker to delete."
    if OFFLINE in (answer[2], answer[3]):
        return "Brokers 2 and 3 are up. A new controller begins with the state of their brokers."
    if "NonExistentReplica" in (answer[2], answer[3]):
        return "A replica is forgotten only when all of the topic are deleted, and broker 1 has not answered."
    if answer != truth:
        return "Brokers 2 and 3 are up, and AR names them: the new controller has sent them LeaderAndIsr."
    return None


SHORT = {
    short: str(state)
    for state in ReplicaState
    for short in (
        str(state),
        str(state).removesuffix("Replica"),
        str(state).removeprefix("Replica"),
        str(state).removeprefix("ReplicaDeletion"),
    )
}
"""The states by the names that lessons and logs use: Offline, Successful, DeletionSuccessful."""


# 2: the next move


def cases() -> Iterator[Case]:
    """Three replicas in any of five states, with broker 1 alive and dead, halted and not."""
    for each in product((ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE), repeat=3):
        found = {(0, broker): state.value for broker, state in zip((1, 2, 3), each, strict=True)}
        for alive in ({1, 2, 3}, {2, 3}):
            yield from ((found, frozenset(alive), halted) for halted in (False, True))


def explain(case: Case, got: str, expected: str) -> str:
    """The fault in an answer, in one sentence."""
    found, alive, halted = case
    left = [f"broker {broker}" for (_, broker), state in found.items() if state != SUCCESSFUL.value]
    if got == "complete":
        dead = any(broker not in alive for (_, broker), state in found.items() if state != SUCCESSFUL.value)
        more = " When it returns, it has a copy of a topic that no controller knows (KAFKA-10548)." if dead else ""
        return f"The copy on {left[0]} is not deleted, and you delete the znodes.{more}"
    if expected == "complete":
        return "Every replica is deleted; no other answer will come, so the topic would stay."
    if got == "start" and halted:
        return "Its deletion is halted: a broker is down or has failed. Starting again asks the same once more."
    if got == "start":
        return "An answer is still on its way: a replica is in ReplicaDeletionStarted."
    return "Nothing is halted and no answer is on its way: this deletion would never start."


STORIES = {
    "a deletion": opening(3) + TOPIC + "delete_topic orders\nsettle\n",
    "several partitions": opening(3)
    + "create_topic orders partitions=3 replication_factor=2\nsettle\ndelete_topic orders\nsettle\n",
    "one broker down": STUCK,
    "and up again": STUCK + "start 1\nsettle\n",
    "a new controller": STUCK + "delete_controller\nsettle\nstart 1\nsettle\n",
}


def ended(lab: Lab) -> End:
    """The remains of the topic, and the violated invariants."""
    found = facts(lab, "orders")
    copies = tuple((copy.name, copy.state, copy.records is not None) for copy in found.copies)
    return found.in_zookeeper, found.marked, copies, tuple(sorted({v.invariant for v in lab.violations}))


def in_words(outcome: End) -> str:
    """The same as text."""
    there, marked, copies, broken = outcome
    state = f"the topic {'in ZooKeeper' if there else 'gone from ZooKeeper'}"
    state += ", still marked" if marked else ""
    kept = [f"{name} ({state})" for name, state, on_disk in copies if on_disk]
    state += f", copies on disk: {', '.join(kept) or 'none'}"
    return state + (f", and {', '.join(broken)} broken" if broken else "")


# 3 and 4: operate


def not_deleted(lab: Lab) -> str | None:
    """The problem (something of the topic is left, or an invariant broken), or None."""
    found = facts(lab, "orders")
    if broken := [v for v in lab.violations if v.invariant in ("I4", "I16")]:
        there = "the topic is there again" if found.in_zookeeper else "the topic is gone"
        return f"{there}, but {broken[-1].invariant} is broken: {broken[-1].text}."
    on_disk = ", ".join(copy.name for copy in found.copies if copy.records is not None)
    if found.in_zookeeper:
        return f"/brokers/topics/orders is still there; copies on disk: {on_disk or 'none'}."
    if found.marked:
        return "the mark under /admin/delete_topics is still there."
    if on_disk:
        return f"the topic is gone from ZooKeeper, and not from the disks: {on_disk}."
    if found.in_memory:
        return "the topic is gone from ZooKeeper and from the disks, and the controller still waits to delete it."
    return None


def not_moved(lab: Lab) -> str | None:
    """The problem (audit is not yet on brokers 1, 2 and 4, or a request is left), or None."""
    found = lab.partition("audit", 0)
    if (3 in found.replicas) or set(found.isr) != {1, 2, 4}:
        request = PLAN in lab.znodes()
        where = f"audit-0 has the replicas {list(found.replicas)} and the ISR {list(found.isr)}"
        return f"{where}; {PLAN} is {'there' if request else 'not there'}."
    return None


def removed_mark(lab: Lab) -> str:
    """The reply to a learner who deleted the mark."""
    memory = lab.controller_memory()
    if memory is not None and "orders" in memory.deleting:
        return "The controller does not watch the mark itself: the topic is still in topicsToBeDeleted, in memory."
    return "The mark is the request. By the time of the deletion the request was gone."


def not_asked(lab: Lab) -> str | None:
    """The remark on a command that takes the old request out, or does nothing."""
    return NOT_ASKED if lab.partition("audit", 0).replicas == (1, 2, 3) else None


def executed(lab: Lab) -> str:
    """The reply to a learner who executed a plan that was not carried out."""
    if lab.partition("audit", 0).replicas != (1, 2, 3):
        return "The plan was carried out, and it is another one: audit is to be on brokers 1, 2 and 4."
    if PLAN not in lab.znodes():
        return "When you asked, the old request was still there, and the tool wrote nothing. It is gone now: ask again."
    if b"audit" not in lab.znodes()[PLAN][0]:
        return "The tool wrote nothing: There is an existing assignment running."
    return (
        "The plan is in ZooKeeper, and the controller has not noticed: its watch of this znode fired when it wrote the "
        "znode at the beginning of the move of orders; it was not set again."
    )


def again(lab: Lab) -> str:
    """The reply to a learner who let another controller take over, or meant to."""
    if lab.controller is not None and lab.controller.epoch == 1:
        return "The controller is still the same, and waits for the same answer."
    if "/admin/delete_topics/orders" in lab.znodes():
        return "The next controller reads the mark. The deletion stays halted, because the same broker is down."
    return "The next controller finds no mark, so it deletes nothing."


def taken_out(reply: str) -> Callable[[Lab], str | None]:
    """Praise where a new controller has read a request for a partition that does not exist."""
    return lambda lab: reply if lab.trace.slice(kind="controller", action="reassignment_unknown") else None


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="14.1",
        title="Where the three replicas are",
        hints=(
            "Where does a controller keep the states of replicas, and what does the next one know of them?",
            "In *One broker is down*, which disks have a copy after `delete_controller`?",
            "Before the new controller tries a deletion again, it moves each replica in ReplicaDeletionIneligible. "
            "Where to? See the moves in kafka_ctl/replica.py.",
        ),
        story=STUCK + "delete_controller\nsettle\n",
        ask=states,
        example={1: "NewReplica", 2: "NewReplica", 3: "NewReplica"},
        names=SHORT,
        wrong=(predict_wrong,),
        why="Replica states are in memory only. The new controller finds brokers 2 and 3 up and sends them "
        "LeaderAndIsr, so each has a copy again, an empty one.",
    ),
    Implement(
        name="14.2",
        title="What next?",
        core=True,
        hints=(
            "Begin with the one case in which the znodes may be deleted.",
            "When is it useless to send anything now? There are two reasons.",
            "`alive` is a set of brokers. Does the answer need it?",
        ),
        occasion="deletion",
        usual=next_move,
        cases=cases,
        stories=STORIES,
        outcome=ended,
        describe=in_words,
        explain=explain,
        why="All deleted: complete. Halted, or an answer on its way: wait. Otherwise: start.",
    ),
    Operate(
        name="14.3",
        title="A deletion that is stuck",
        core=True,
        hints=(
            "Which answer is the controller waiting for?",
            "Can anything else give this answer?",
            "One command is enough.",
        ),
        begin=STUCK,
        missing=not_deleted,
        best=1,
        remarks={
            "delete_znode /admin/delete_topics/orders": removed_mark,
            "delete_controller": again,
            "expire_session": again,
            "bounce": again,
            "kill": again,
            "shutdown": again,
            "delete_znode": "To delete the topic's znodes is the controller's last step. "
            "It waits for the copy on broker 1.",
            "elect_preferred": "No replica of this topic may lead any more.",
            "reassign": "The controller takes the request out again: the topic is to be deleted.",
        },
        praise={"delete_controller": "The new controller started over; broker 1 was needed anyway."},
        why="The controller waited for the answer of one broker, and nothing else can give it.",
    ),
    Operate(
        name="14.4",
        title="A request that outlived its topic",
        hints=(
            "`lab.execute_reassignment({('audit', 0): [1, 2, 4]})` prints an answer. What does it say?",
            "Where is the old request, and who ought to take it out? Look at `lab.znodes()`.",
            "When is `/admin/reassign_partitions` read, if it has not changed?",
        ),
        begin=LEFT,
        missing=not_moved,
        best=2,
        remarks={
            "execute_reassignment": executed,
            f"delete_znode {PLAN}": f"The old request is gone. {NOT_ASKED}",
            "reassign": executed,
            "create_topic orders": "A new topic of this name takes up the old request: the next controller, or the "
            "start of broker 4, moves it to 1, 2, 4.",
            f"write_znode {PLAN}": executed,
            "delete_controller": f"The request of orders is gone now. {NOT_ASKED}",
            "bounce": not_asked,
            "kill": not_asked,
            "expire_session": not_asked,
        },
        praise={
            "delete_controller": taken_out(
                "A new controller reads the request, finds no such partition, and takes it out."
            ),
            "bounce": taken_out("Another controller came; it read the request and took it out."),
        },
        why="Look for moves before you delete a topic: the controller deletes it and leaves the request.",
    ),
    Repair(
        name="14.5",
        title="One move, two topics that cannot be used",
        hints=(
            "Which topic makes the start of broker 4 fail? It is gone; why is its move still there?",
            "When is a topic in `asked`, and when in `queued`?",
        ),
        ticket="LINKEDIN-14",
        occasion="waiting",
        given='''
def waits(asked, queued, moving):
    """The topics whose deletion waits for their move; `asked` are to be deleted now, `queued` were so before."""
    return [topic for topic in queued if topic in moving]
''',
        stories={
            "one topic moves, another is deleted": MOVING + "delete_topic audit; settle; heal; settle",
            "a topic waits, another is deleted": MOVING
            + "delete_topic orders; run_for 0.5; delete_topic audit; settle; heal; settle",
        },
        telling=lambda asked, queued, moving, answer: {*asked} & {*answer} != {*asked} & moving,
        why="So orders waits, the move ends, and no request is left that makes the start of broker 4 fail.",
    ),
)
