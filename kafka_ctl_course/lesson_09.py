"""Exercises of lesson 09, failover of the controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from kafka_ctl.errors import BadInput, short
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode
from kafka_ctl_course.quiet import opening

Case = tuple[int, int]
Obeyed = tuple[tuple[tuple[int, tuple[str, ...]], ...], tuple[str, ...]]
LARGEST = 2**31 - 1
"""The largest epoch of 32 bits; a lab counts on where Kafka's number would be negative."""
TITLE = "Failover: epochs, zombies, fencing"
OPENING = opening()
ZOMBIE = OPENING.replace("brokers=3", "brokers=4").replace("seed=7", "seed=1")
STORIES = {
    "one controller": OPENING + "create_topic orders partitions=3 replication_factor=2\nsettle\n",
    "a failover": OPENING
    + "create_topic orders partitions=3 replication_factor=2\nsettle\nkill 2\nsettle\nstart 2\nsettle\n",
    "a message that is late": ZOMBIE
    + """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
    + "delay 1 3 20\nkill 4\nrun_for 7\npause 1 10\nsettle\n",
}
CLEANED = (
    OPENING
    + "delete_controller\nsettle\n" * 3
    + (
        "delete_znode /controller_epoch\ndelete_controller\nsettle\n"
        "create_topic new partitions=3 replication_factor=3\nsettle\n"
    )
)
"""`/controller_epoch` was deleted after three failovers; then a topic was created."""
FORGOTTEN = "This broker has forgotten the epoch that it had seen; the others have not."
REFUSED = "The next request is refused like the last one."


# 1: predict


def epochs(lab: Lab) -> tuple[int, int]:
    """The controller epoch, and the version of the znode that holds it."""
    assert lab.controller is not None
    return lab.controller.epoch, lab.znodes()["/controller_epoch"][1]


def predict_wrong(answer: tuple[int, int], truth: tuple[int, int]) -> str | None:
    """The mistakes of exercise 1."""
    if answer == (5, 4):
        return "That is true of 2.0, which creates the znode with 1. 2.4 creates it with 0 and raises it at once."
    if answer[0] == 4:
        return "Four were deleted, and the first controller counts, too."
    if answer[0] == 1:
        return "Each election raises the epoch, also when the same broker wins again."
    if answer[0] == 0:
        return "Deleting `/controller` leaves `/controller_epoch` alone; and no controller has epoch 0."
    return None


# 2: the fence


def cases() -> Iterator[Case]:
    """Epochs below, equal and above the newest that was seen."""
    yield from ((asked, newest) for newest in range(6) for asked in range(7))


def usual(request_epoch: int, newest_seen: int) -> bool:
    """The result of a broker's check."""
    return request_epoch >= newest_seen


def explain(case: Case, got: bool, expected: bool) -> str:
    """The fault in an answer, in one sentence."""
    asked, newest = case
    if asked == newest:
        return "Equal is not old: a controller sends many requests with one epoch, and only the first would be obeyed."
    if asked > newest:
        return "This is how a broker hears of a new controller: by a request with a higher epoch."
    return f"A controller with epoch {newest} exists; one with epoch {asked} was replaced and does not know it yet."


def obeyed(lab: Lab) -> Obeyed:
    """The partitions that each broker leads, and the violated invariants."""
    leads = tuple((id, tuple(sorted(map(str, broker.leads)))) for id, broker in lab.brokers.items())
    return leads, tuple(sorted({violation.invariant for violation in lab.violations}))


def in_words(outcome: Obeyed) -> str:
    """The same as text."""
    leads, broken = outcome
    leading = ", ".join(f"broker {id} leads {' '.join(what) or 'nothing'}" for id, what in leads)
    return leading + (f", and {', '.join(broken)} broken" if broken else "")


# 4: operate


def disobeyed(lab: Lab) -> str | None:
    """The problem (the brokers still do not know what they lead), or None."""
    wanted = {f"{p.topic}-{p.partition}": p.leader for p in lab.partitions() if p.topic == "new"}
    if len(wanted) < 3:
        return "the topic new is not whole any more."
    known = {str(tp) for broker in lab.brokers.values() for tp in broker.leads}
    missing = [name for name in wanted if name not in known]
    if lab.controller is not None and lab.controller.epoch > LARGEST:
        return (
            f"{LARGEST} is the largest number of 32 bits: Kafka would go on with {-LARGEST - 1}, which no broker obeys."
        )
    if not missing:
        return None
    if lab.controller is None:
        return f"no broker acts as the controller, and no broker leads {', '.join(missing)}."
    return f"the controller has epoch {lab.controller.epoch}, and no broker leads {', '.join(missing)}."


def written(lab: Lab) -> str | None:
    """The reply to a learner who wrote an epoch or made a new controller."""
    if lab.controller is None and any(c.name == "write_znode" and c.args[0] == "/controller" for c in lab.commands):
        return "The controller did not find its id in /controller and resigned; no broker was elected (lesson 01)."
    if lab.controller is not None and lab.controller.epoch >= 4:
        return None
    znode = lab.znodes().get("/controller_epoch")
    if znode is not None and not _is_read(znode[0]):
        return (
            f"/controller_epoch holds {short(znode[0].decode(errors='replace'))}, which is not a number of 32 bits: "
            "each broker that is elected fails to read it and gives up, and the next one tries."
        )
    given = lab.commands[len(CLEANED.splitlines()) - 1 :]
    read = max(each.seq for each in given if each is given[0] or each.name == "write_znode")
    if len(lab.trace.slice(start=read, action="elected")):
        return "The next controller adds one to what it reads, or begins with 1. The brokers have seen epoch 4."
    return "The controller keeps the epoch that it was elected with; it does not read the znode again."


def _is_read(data: bytes) -> bool:
    """True if a broker can read an epoch."""
    with suppress(BadInput):
        return ControllerEpochZNode.decode(data) is not None
    return False


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="09.1",
        title="Four elections",
        hints=(
            "What is counted, controllers or brokers? Was there one before the first deletion?",
            "Which of two znodes was deleted, and which was written?",
            "In 2.0 the new znode gets epoch 1 at its creation. Here the first controller writes it twice.",
        ),
        story=OPENING.replace("2.0", "2.4") + "delete_controller\nsettle\n" * 4,
        ask=epochs,
        example=(7, 7),
        parts=("the controller epoch", "the version of `/controller_epoch`"),
        wrong=(predict_wrong,),
        why="Each controller raises the epoch by one write. A fenced write names the version that it expects.",
    ),
    Implement(
        name="09.2",
        title="Which controller does a broker obey?",
        core=True,
        hints=(
            "Which two epochs meet when one controller sends its second request?",
            "Write down when a broker refuses, then turn it round.",
        ),
        occasion="fence",
        usual=usual,
        cases=cases,
        stories=STORIES,
        outcome=obeyed,
        describe=in_words,
        explain=explain,
        why="Old is refused, equal and new are obeyed; the newest epoch that was seen is remembered.",
    ),
    Repair(
        name="09.3",
        title="A failover leaves a dead leader in place",
        hints=(
            "Which broker did the new controller never see alive?",
            "Which move takes a replica out of the ISR, and makes its leader -1?",
        ),
        ticket="KAFKA-3143",
        occasion="startup",
        given='''
def at_startup(states):
    """The replicas that a new controller moves to Online, and those that it moves to Offline."""
    online = [replica for replica, state in states.items() if state == "OnlineReplica"]
    return online, []
''',
        why="A missing replica goes Offline when a controller begins, as if it had just died: elections follow.",
    ),
    Operate(
        name="09.4",
        title="A controller that no broker obeys",
        core=True,
        hints=(
            "What do the brokers answer to the controller's requests? See the trace, or their logs.",
            "Which number do they compare with the request's epoch, and where do they keep it?",
            "From where does a controller get its epoch, and when does it read it?",
        ),
        begin=CLEANED,
        missing=disobeyed,
        best=2,
        remarks={
            "write_znode": written,
            "delete_controller": written,
            "delete_znode /controller_epoch": written,
            "expire_session": written,
            "bounce": FORGOTTEN,
            "start": FORGOTTEN,
            "create_topic": REFUSED,
            "delete_topic": lambda lab: REFUSED if any(p.topic == "new" for p in lab.partitions()) else None,
            "reassign": REFUSED,
            "elect_preferred": "The controller elects in ZooKeeper, and the brokers refuse its requests.",
        },
        praise={
            "delete_controller": "The new controller's epoch is no longer below what the brokers have seen.",
            "bounce": "A broker that starts has seen no epoch yet.",
        },
        why="ZooKeeper decides which controller is elected; the epoch that each broker "
        "remembers decides which one is obeyed.",
    ),
)
