"""Exercises of lesson 11, a reassignment in twelve steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from kafka_ctl.controller.reassignment import moves
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.quiet import PLAN, TOPIC, opening

Case = tuple[tuple[int, ...], tuple[int, ...]]
Partitions = tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
End = tuple[Partitions, tuple[tuple[str, int], ...], bool, tuple[str, ...]]
TITLE = "A reassignment in twelve steps"
FIVE = opening(5) + TOPIC
DEAD = opening(4) + TOPIC + """kill 4\nsettle\nreassign '{"orders-0":[1,2,4]}'\nsettle\n"""
"""A move to broker 4, which is down; broker 3 is controller since."""


# 1: predict


def with_rows(answer: object) -> object:
    """The same answer with a row in the place of a set: the ISR may also be one."""
    if not isinstance(answer, tuple):
        return answer
    return tuple(tuple(sorted(part, key=str)) if isinstance(part, set | frozenset) else part for part in answer)


def ends(lab: Lab) -> tuple[int, tuple[int, ...], int]:
    """Leader, ISR in ascending order, leader epoch."""
    found = lab.partition("orders", 0)
    return found.leader, tuple(sorted(found.isr)), found.leader_epoch


def in_any_order(answer: tuple[int, tuple[int, ...], int], truth: tuple[int, tuple[int, ...], int]) -> str | None:
    """An ISR is right in any order."""
    leader, isr, epoch = answer
    same = (leader, tuple(sorted(isr)), epoch) == truth
    return "The order of an ISR is the order of joining; it is not asked for here." if same else None


def predict_wrong(answer: tuple[int, tuple[int, ...], int], truth: tuple[int, tuple[int, ...], int]) -> str | None:
    """The mistakes of exercise 1."""
    leader, isr, epoch = answer
    if leader == 1:
        return "Broker 1 is not among the new replicas. What does step 7 do with such a leader?"
    if leader != truth[0]:
        return "Step 7 elects the first of the new assignment that is in the ISR."
    if set(isr) == {1, 2, 3, 4}:
        return "That is the ISR at the end of step 4. Step 8 takes broker 1 out."
    if set(isr) != set(truth[1]):
        return "All of the new replicas have to be in the ISR before anything is removed."
    if epoch == 0:
        return "Each write of the `state` znode by the controller raises the leader epoch. Which steps write it?"
    if epoch == 1:
        return "The election is one write of the `state` znode. Which other steps of the controller write it?"
    if epoch == 2:
        return "One more step of the controller writes it. In the picture, go down the column with the epoch."
    return "The leader's own write, in step 4, does not raise the leader epoch." if epoch == 4 else None


# 2: the moves


def cases() -> Iterator[Case]:
    """From 1, 2, 3 to one to three of five brokers, in every order; and going on with both in the assignment."""
    for size in (1, 2, 3):
        yield from (((1, 2, 3), new) for new in permutations((1, 2, 3, 4, 5), size))
    yield from (((2, 3, 4, 1), (2, 3, 4)), ((1, 2, 4, 3), (1, 2, 4)))


def explain(case: Case, got: tuple[tuple[int, ...], ...], expected: tuple[tuple[int, ...], ...]) -> str:
    """The fault in an answer, in one sentence."""
    (old, new), (during, create, remove, in_sync) = case, got
    wanted = dict(zip(("during", "create", "remove", "in_sync"), expected, strict=True))
    if during != wanted["during"]:
        if gone := sorted({*old} - {*during}):
            return f"Broker {gone[0]} still has a replica while the others copy: it has to stay in AR so long."
        return "A broker is missing in AR, is in it twice, or is neither in the old nor in the new replicas."
    if create != wanted["create"]:
        kept = sorted({*create} & {*old})
        return (
            f"Broker {kept[0]} has a replica already: it would be asked to start over."
            if kept
            else "A broker that is new gets no replica, and so it can never join the ISR."
        )
    if remove != wanted["remove"]:
        stay = sorted({*remove} & {*new})
        return (
            f"Broker {stay[0]} is to stay, and you have its copy deleted."
            if stay
            else "A broker that is not among the new ones keeps its replica."
        )
    if late := sorted({*wanted["in_sync"]} - {*in_sync}):
        more = " Step 1 is done here, so that `old` has both: what is new minus old now?" if {*new} <= {*old} else ""
        return (
            f"You do not wait for broker {late[0]}. If it is behind at that moment, a good copy is deleted and too "
            f"few are left.{more}"
        )
    return "You wait for a broker that is not among the new ones; it may be dead, and the move does not need it."


def target(new: list[int]) -> str:
    """The command that asks for this move."""
    return f"""reassign '{{"orders-0":{str(new).replace(" ", "")}}}'\n"""


STORIES = {
    "to 2,3,4": FIVE + target([2, 3, 4]) + "settle\n",
    "to 4,5": FIVE + target([4, 5]) + "settle\n",
    "one more": FIVE + target([1, 2, 3, 4]) + "settle\n",
    "one less": FIVE + target([1, 2]) + "settle\n",
    "another order": FIVE + target([3, 2, 1]) + "settle\n",
    "broker 2 is behind": FIVE + "lag 2 orders 0\nsettle\n" + target([1, 2, 4]) + "settle\n",
    "the leader dies while the others copy": FIVE + target([2, 3, 4]) + "run_for 0.1\nkill 1\nsettle\n",
    "a new controller takes over": FIVE + target([2, 3, 4]) + "run_for 0.1\ndelete_controller\nsettle\n",
}


def ended(lab: Lab) -> End:
    """Of each partition AR and ISR as sets and which brokers have a copy; requests; invariants that are broken."""
    found = tuple(
        (f"{p.topic}-{p.partition}", tuple(sorted(p.replicas)), tuple(sorted(p.isr))) for p in lab.partitions()
    )
    copies = tuple(sorted((f"{at.topic}-{at.partition}", at.broker) for at in lab.log_dirs()))
    broken = tuple(sorted({v.invariant for v in lab.violations if v.known is None}))
    return found, copies, PLAN in lab.znodes(), broken


def in_words(outcome: End) -> str:
    """The same as text."""
    found, copies, request, broken = outcome
    states = [
        f"{name}: AR {ar}, ISR {isr}, copies on {', '.join(str(b) for n, b in copies if n == name) or 'no broker'}"
        for name, ar, isr in found
    ]
    return "; ".join([*states, *["a request left"] * request, *[f"{', '.join(broken)} broken"] * bool(broken)])


# 4: operate


def moves_on(lab: Lab) -> str | None:
    """The problem (broker 4 was started, or AR is not 1, 2, 3 or would change once it is there), or None."""
    if any(each.name == "start" and each.args[:1] == (4,) for each in lab.commands):
        return "broker 4 is down for a week: in this exercise it cannot be started."
    found = lab.partition("orders", 0)
    with lab.fork() as later:
        if later.brokers[4].state == "down":
            later.start(4)
            later.settle()
        then = later.partition("orders", 0)
    if then.replicas == (1, 2, 3):
        return None
    if set(then.replicas) == {1, 2, 3}:
        return f"AR is {list(then.replicas)}. It was 1, 2, 3, in this order: the first is the preferred replica."
    return f"AR is {list(found.replicas)}; a week later broker 4 is up, and AR is {list(then.replicas)}."


def deleted(lab: Lab) -> bool:
    """True if the plan was deleted in ZooKeeper."""
    return any((each.name, *each.args[:1]) == ("delete_znode", PLAN) for each in lab.commands)


def executed(lab: Lab) -> str | None:
    """The reply to a learner who executed the plan back."""
    memory = lab.controller_memory()
    if memory is not None and "orders-0" in memory.reassigning:
        if deleted(lab):
            return (
                "The tool wrote your plan, and no process read it: the controller still has the first one in memory, "
                "and its watch of this znode fired when it wrote the znode at the beginning of the move; it was not "
                "set again."
            )
        return "The tool wrote nothing: There is an existing assignment running."
    if lab.partition("orders", 0).replicas == (1, 2, 4, 3):
        return None
    return "Your plan was carried out: AR is what it names."


def deleted_plan(lab: Lab) -> str:
    """The reply to a learner who deleted the plan in ZooKeeper."""
    memory = lab.controller_memory()
    if memory is not None and "orders-0" not in memory.reassigning:
        return deleted_controller(lab)
    return "The plan is gone from ZooKeeper. The controller has it in memory, too."


def deleted_controller(lab: Lab) -> str:
    """The reply to a learner who made a new controller, or restarted a broker that is not the controller."""
    if lab.controller is not None and lab.controller.epoch == 2:  # the one of DEAD
        return "Broker 3 is still the controller, and it has the plan in memory."
    if deleted(lab):
        return (
            "The plan is in no place any more. But AR has stayed as step 1 wrote it: "
            "there is no request to change it back."
        )
    return "The new controller read the same znode and goes on with the same plan."


def emptied(lab: Lab) -> str:
    """The reason why a way back works."""
    named = [(each.name, *each.args[:1]) for each in lab.commands]
    if ("write_znode", PLAN) in named:
        return (
            "You replaced the plan in ZooKeeper, and the new controller never saw the old one, which was in its "
            "predecessor's memory."
        )
    return "The plan was in ZooKeeper and in the controller's memory; both had to be emptied before another counts."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="11.1",
        title="After the move",
        core=True,
        hints=(
            "Which step looks at the leader, and in which list does it look for another one?",
            "Which steps of the controller write the `state` znode? Each write raises the leader epoch by one.",
            "In the picture, go down the column with the epoch.",
        ),
        story=opening(4) + TOPIC + target([4, 3, 2]) + "settle\n",
        ask=ends,
        read=with_rows,
        example=(7, (7, 8), 7),
        parts=("the leader", "the ISR", "the leader epoch"),
        wrong=(predict_wrong,),
        also=in_any_order,
        why="Step 7 elects the first of the new replicas; steps 2, 7 and 8 write `state`, so the epoch is 3.",
    ),
    Implement(
        name="11.2",
        title="Four sets",
        given='''
def moves(old, new):
    """AR during the move, to create, to remove, and which brokers must be in the ISR."""
    create = [broker for broker in new if broker not in old]
    remove = ...
    during = ...
    return during, create, remove, ...
''',
        hints=(
            "Draw two circles, old and new. Each answer is a part of this drawing.",
            "Which brokers must be able to lead after the move? These have to be in the ISR.",
            "Which brokers may lead while the others copy? These have to be in AR.",
        ),
        occasion="reassignment",
        usual=moves,
        read=lambda parts, case: tuple(tuple(sorted(part)) for part in parts),
        cases=cases,
        stories=STORIES,
        outcome=ended,
        describe=in_words,
        explain=explain,
        lists=True,
        why="AR is the union; create and remove are the two differences; all of the new ones have to be in the ISR.",
    ),
    Repair(
        name="11.3",
        title="Clients get an old leader epoch",
        hints=(
            "Which number differs between ZooKeeper and what clients get? Which step has raised it?",
            "UpdateMetadata is made from what the controller has in memory.",
        ),
        ticket="KAFKA-9212",
        occasion="bumped",
        given='''
def remember(cached, written):
    """The leader epoch in the controller's memory after step 2: `cached` before it, `written` in ZooKeeper."""
    return cached
''',
        stories={
            "a leader epoch is written by hand": "write_znode /brokers/topics/orders/partitions/0/state "
            """'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":5,"isr":[1,2,3]}'; """
            """reassign '{"orders-0":[4,2,3]}' through=zookeeper; settle""",
        },
        why="The controller now notes the epoch that it has written in step 2, and metadata is made from that.",
    ),
    Operate(
        name="11.4",
        title="Back, without broker 4",
        core=True,
        hints=(
            "In how many places is the plan? One of them is no znode.",
            "Which of them survives what? What empties a controller's memory?",
            "Empty both, in the right order; then ask for what you want.",
        ),
        begin=DEAD,
        missing=moves_on,
        best=3,
        remarks={
            "execute_reassignment": executed,
            "reassign": executed,
            f"delete_znode {PLAN}": deleted_plan,
            "delete_controller": deleted_controller,
            "expire_session": deleted_controller,
            "start": "The plan gives broker 4 a copy: with it, the move would end.",
            "elect_preferred": "An election changes who leads; the plan is about who has a copy.",
            "bounce": deleted_controller,
        },
        why=emptied,
    ),
)
