"""Exercises of lesson 01, electing a controller."""

from __future__ import annotations

from collections import Counter

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate, down
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import Trace, details
from kafka_ctl_course.quiet import opening

TITLE = "Electing a controller"
OPENING = opening()
RACE = OPENING.replace("}'\n", "}' settle=false\n")
"""The brokers have not started yet."""
THREE = OPENING + "create_topic orders partitions=3 replication_factor=2\nsettle\n"
FIRST = 2
"""The controller of `THREE` and `WRITTEN`."""
WRITTEN = (
    OPENING
    + r"""write_znode /controller '{"version":1,"brokerid":3,"timestamp":"1"}'"""
    + "\nsettle\ncreate_topic orders partitions=3 replication_factor=3\nsettle\n"
)
"""Broker 2 is the controller; an administrator writes 3 into `/controller`; then a topic is created."""
FOUR = (
    OPENING.replace("brokers=3", "brokers=4").replace("seed=7", "seed=2")
    + "create_topic orders partitions=8 replication_factor=3\nsettle\n"
)
"""Broker 3 is the controller."""


# 1: operate


def same_controller(lab: Lab) -> str | None:
    """The problem (no other broker acts as the controller, or a broker is not in the cluster), or None."""
    if lab.controller is None:
        return "no broker acts as the controller."
    if lab.controller.id == FIRST:
        return f"broker {FIRST} is the controller, as at the beginning."
    if stopped := down(lab):
        return f"broker {stopped[0]} does not run."
    out = [id for id in lab.brokers if f"/brokers/ids/{id}" not in lab.znodes()]
    return f"broker {out[0]} runs, and is not in /brokers/ids." if out else None


def killed(lab: Lab) -> str:
    """The reply to a learner who killed a broker."""
    if FIRST not in down(lab) and len(lab.trace.slice(action="elected")) == 1:
        last = [each.args[0] for each in lab.commands if each.name == "kill"][-1]
        return f"Broker {last} was not the controller: its session did not own /controller."
    return "ZooKeeper ends the session six seconds later. Is every broker started again?"


# 2: implement


def beginnings(lab: Lab) -> list[tuple[Trace]]:
    """The input of the function: everything up to the moment when a broker is ready to serve."""
    ready = lab.trace.slice(action="ready")[0].seq
    return [(lab.trace[:ready],)]


def winner(records: Trace) -> int:
    """The broker that was elected, by what its controller says."""
    return int(records.slice(kind="controller", action="elected")[0].actor.removeprefix("controller-"))


def explain_winner(given: tuple[Trace], got: object, expected: int) -> str:
    """The fault in the winner that was named, in one sentence."""
    (records,) = given
    first = {
        action: [int(record.actor.removeprefix("broker-")) for record in records.slice(action=action)][:1]
        for action in ("connect", "registered")
    }
    refused = [record.actor for record in records.slice(path="/controller", error="NODEEXISTS")]
    if not isinstance(got, int) or isinstance(got, bool):
        return f"your function returned {got!r}; the broker's number is asked for, such as 2."
    text = f"you return {got}; broker {expected} is the controller. "
    if f"broker-{got}" in refused:
        return f"{text}Broker {got} tried, too, and was refused: look at the column `error`."
    if [got] == first["registered"]:
        return f"{text}Broker {got} was the first in /brokers/ids. That is another race; this one is for /controller."
    if [got] == first["connect"]:
        return f"{text}Broker {got} opened its session first, and then its next request was slow."
    if got == 1:
        return f"{text}Broker {got} has the lowest id and was started first. Neither counts."
    return f"{text}Which operation can succeed for one broker only?"


# 3 and 4: operate


def no_acting_controller(lab: Lab) -> str | None:
    """The problem (no broker acts as the controller, or the topic still has no leaders), or None."""
    if lab.controller is None:
        if (znode := lab.znodes().get("/controller")) is None:
            return "there is no /controller, and no broker acts as controller."
        holds = f"/controller holds {znode[0].decode()}, and no broker acts as controller."
        return f"{holds} It belongs to session {znode[2]:#x}."
    waiting = [f"{p.topic}-{p.partition}" for p in lab.partitions() if p.leader < 0]
    return f"{', '.join(waiting)} still have no leader." if waiting else None


def not_rolled(lab: Lab) -> str | None:
    """The problem (a broker is down or was not restarted, two were down, or controllers changed too often), or None."""
    starts = Counter(record.actor for record in lab.trace.slice(kind="broker", action="start"))
    missing = [id for id in lab.brokers if starts[f"broker-{id}"] < 2 or lab.brokers[id].state != "running"]
    if missing:
        return f"not restarted and running again: broker {', '.join(map(str, missing))}."
    down: set[int] = set()
    for command in lab.commands:
        down ^= {command.args[0]} if command.name in ("shutdown", "kill", "start") else set()
        if len(down) > 1:
            return f"brokers {' and '.join(map(str, sorted(down)))} were down at the same time."
    if both := out_together(lab):
        return (
            f"{' and '.join(sorted(both))} were out of the cluster at the same time: after a kill a broker can "
            "register only when its old session has ended."
        )
    elected = [record.actor.removeprefix("controller-") for record in lab.trace.slice(action="elected")]
    changes = len(elected) - 1
    if changes <= 1:
        return None
    return f"the controller changed {changes} times: {' → '.join(elected)}. One change is enough."


def out_together(lab: Lab) -> set[str]:
    """The first two brokers that were not registered at the same time; none, if there were none."""
    out: set[str] = set()
    created = next(command.seq for command in lab.commands if command.name == "create_topic")
    for record in lab.trace.slice(created, kind="broker"):
        if record.action in ("shutting-down", "start"):
            out.add(record.actor)
        elif record.action == "registered":
            out.discard(record.actor)
        if len(out) > 1:
            return out
    return set()


def not_owner(lab: Lab, more: str = "") -> str:
    """The reply to a learner who ended a session, or all of them."""
    if "/controller" not in lab.znodes():
        return "The znode is gone, and no broker is left that could create it."
    return f"The znode goes with the session that owns it, whatever number it holds. Whose session is it?{more}"


def written(lab: Lab) -> str:
    """The reply to a learner who wrote into `/controller`."""
    asked = "brokers look at a change, and compete only after a deletion."
    if details.json_object(lab.znodes()["/controller"][0].decode(errors="replace")).get("brokerid") == FIRST:
        return f"The number is right again, but there was no election: {asked}"
    return f"There was no election: {asked}"


EXERCISES: tuple[Exercise, ...] = (
    Operate(
        name="01.1",
        title="Another controller",
        hints=(
            "Which process has the job, and what tells ZooKeeper that it is gone?",
            "How long does ZooKeeper wait before it ends a session?",
            "A broker that was killed can be started again: `lab.start(2)`.",
        ),
        begin=THREE,
        missing=same_controller,
        best=1,
        remarks={
            "kill": killed,
            "write_znode": "The number in the znode is not the job: the last section of the lesson is about that.",
            "pause": "A pause shorter than the session timeout changes nothing.",
            "start": "A broker that starts finds the znode and does not compete.",
            "elect_preferred": "That elects leaders of partitions.",
        },
        praise={
            "kill": "The session of the dead broker ended after six seconds.",
            "shutdown": "A broker that stops in good order closes its session, so the others compete at once.",
            "bounce": "The new process has a new session; the old one ended.",
            "pause": "The pause was longer than the session.",
        },
        why="The znode was gone, and the first broker that created it again is the controller, one epoch later.",
    ),
    Compute(
        name="01.2",
        title="Who won?",
        core=True,
        given='''
def who_wins(records):
    """The id of the broker that was elected."""
    (record,) = (r for r in records if r.path == "/controller" and r.action == ... and r.error is ...)
    return int(record.actor.removeprefix(...))
''',
        hints=(
            "Which operation on ZooKeeper can succeed once only?",
            "Which column says that it did not succeed?",
            "`records.slice(action=..., path=...)` selects records; a record has `actor` and `error`.",
        ),
        stories={
            "one of three": RACE.replace("seed=7", "seed=2") + "settle\n",
            "two are refused": RACE.replace("seed=7", "seed=3") + "settle\n",
            "a slow request after the session": RACE + "step n=5\ndelay 2 zookeeper 0.05\nsettle\n",
            **{
                f"Kafka {generation}, seed {seed}": RACE.replace("2.0", generation).replace("seed=7", f"seed={seed}")
                + "settle\n"
                for generation in ("0.10", "2.4")
                for seed in (1, 4, 6)
            },
        },
        give=beginnings,
        truth=winner,
        explain=explain_winner,
        why="One create of /controller succeeds; its sender is the controller. That holds in all nine races.",
    ),
    Operate(
        name="01.3",
        title="One controller in the znode, none in the cluster",
        core=True,
        hints=(
            "What makes brokers compete, and not only look?",
            "Which event do their watches need to see: data changed, or node deleted?",
            "Which session owns the znode, and which broker has this session?",
        ),
        begin=WRITTEN,
        missing=no_acting_controller,
        best=1,
        remarks={
            "write_znode": written,
            "kill": not_owner,
            "bounce": lambda lab: not_owner(lab, " A restarted broker finds the znode and does not compete."),
            "expire_session": lambda lab: not_owner(lab, " Another session has expired."),
            "elect_preferred": "That is a request to a controller; there is none.",
            "create_topic": "ZooKeeper has the new topic, too. No controller reads it.",
        },
        praise={
            "kill": "It works after the session timeout, and costs a broker.",
            "bounce": "It works, and costs the restart of a broker.",
            "shutdown": "It works, after 15 s: the broker asks broker 3 three times, and broker 3 refuses, for it was "
            "never elected.",
        },
        why="The znode went, and the brokers competed for it: a full failover. The new controller "
        "found the topic that had not been read.",
    ),
    Operate(
        name="01.4",
        title="Restart four brokers",
        hints=(
            "What does the restart of a broker that is not the controller change?",
            "When does a restart need an election?",
            "Who is the controller at the beginning, and who may be it before your last restart?",
        ),
        begin=FOUR,
        missing=not_rolled,
        best=8,
        remarks={
            "kill": "A killed broker is missed only after the session timeout. Wait with `settle` before you go on.",
            "pause": "A pause is no restart: the process goes on with what it had in memory.",
            "delete_controller": "That elects another controller and restarts no broker.",
        },
        praise={
            "kill": "After a kill the cluster waits six seconds each time; `shutdown` asks first and loses nothing.",
            "bounce": "Faster than any real process can restart.",
        },
        why="The controller was the last one to restart, so it changed once.",
    ),
    Repair(
        name="01.5",
        title="Elected, resigned, and still in the znode",
        hints=(
            "Compare the id in the znode with the broker's own.",
            "In which case may a broker with a new session not resign?",
        ),
        ticket="KAFKA-4229",
        occasion="session",
        given='''
def resigns(broker, controller):
    """True if `broker`, which has a new session, resigns and competes; `controller` is the id in /controller, or -1."""
    return True
''',
        why="A broker that finds its own id in /controller is the controller, and must not resign.",
    ),
)
