"""Exercises of lesson 21, crashes and disks."""

from __future__ import annotations

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.operate import Operate, Remark, down
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import LogDirView
from kafka_ctl_course.quiet import opening

TITLE = "Crashes and disks"
OPENING = opening()
RECORDS = 8
LOADED = OPENING + (
    """create_topic orders assignment='{"0":[1,2,3],"1":[2,1,3]}'\nsettle\n"""
    f"produce orders 0 records={RECORDS} size=134217728\nsettle\n"
)
"""One GiB in orders-0 that no broker has flushed."""
BROKEN = OPENING + (
    """create_topic orders assignment='{"0":[1,2,3],"1":[1,3,2]}'\nsettle\n"""
    """create_topic audit assignment='{"0":[1]}'\nsettle\n"""
    "produce audit 0 records=3\nsettle\nfail_log_dir 1\nsettle\n"
)
"""The directory of orders-0 and audit-0 has failed on broker 1; orders-1 is in the other one."""
COPIES = {"orders-0": 3, "orders-1": 3}
"""The copies that there were before, where there was more than one."""
FULL = OPENING + (
    """create_topic orders assignment='{"0":[1,2]}'\nsettle\nproduce orders 0 records=30 size=1000000\nsettle\n"""
)
"""Both copies of orders-0 lie in /d0 of their brokers."""
AWAY = 5.0
"""Seconds that broker 1 may need from its start until it is in every ISR."""


def while_down(text: str) -> Remark:
    """A remark that holds as long as a broker is down."""
    return lambda lab: text if down(lab) else None


# 1: operate: a restart


def not_patched(lab: Lab) -> str | None:
    """The fault of a restart of broker 1."""
    if not any(p.topic == "orders" for p in lab.partitions()):
        return "the topic orders is gone."
    if away := down(lab):
        return f"broker {away[0]} is not running."
    starts = lab.trace.slice(kind="broker", broker=1, action="start")
    if len(starts) < 2:
        return "broker 1 is still the process that ran before."
    if missing := [f"{p.topic}-{p.partition}" for p in lab.partitions() if 1 not in p.isr]:
        return f"broker 1 is not in the ISR of {', '.join(missing)}."
    leader = lab.partition("orders", 0).leader
    if not any(log.broker == leader and log.end >= RECORDS for log in lab.log("orders", 0)):
        return "records of orders-0 are gone that the producer had written."
    joined = (r for act in ("registered", "caught-up") for r in lab.trace.slice(kind="broker", broker=1, action=act))
    took = (max(r.time_ms for r in joined) - starts[-1].time_ms) / 1000
    if took > AWAY:
        return f"broker 1 needed {took:.1f} s from its start until it was in every ISR; {AWAY:g} are allowed."
    return None


def about_start(lab: Lab) -> str | None:
    """The remark on a start with an empty disk."""
    empty = any(each.name == "start" and each.kwargs.get("empty") for each in lab.commands)
    return "An empty disk has nothing to recover: the broker fetches everything." if empty else None


def about_shutdown(lab: Lab) -> str | None:
    """The remark on a shutdown of broker 1: the broker is down, or its process was killed."""
    if down(lab):
        return "It left in good order; now it has to come back."
    killed = lab.trace.slice(kind="fault", action="kill", broker=1)
    return "SIGKILL came after `grace`, before the logs were closed." if killed else None


# 2: operate: a disk has failed


def not_readable(lab: Lab) -> str | None:
    """The replica that is missing after a disk has failed; None if there is none."""
    for partition in lab.partitions():
        name = f"{partition.topic}-{partition.partition}"
        if (copies := len(partition.replicas)) < COPIES.get(name, 0):
            return f"{name} has {copies} of {COPIES[name]} copies."
        if partition.leader < 0:
            return f"{name} has no leader."
        ends = {each.broker: each.end for each in lab.log(partition.topic, partition.partition)}
        if name == "audit-0" and not ends.get(partition.leader):
            return "audit-0 is empty: its records are on the disk that failed, and nowhere else."
        if away := sorted({*partition.replicas} - {*partition.isr}):
            return f"broker {away[0]} is not in the ISR of {name}."
    return None


# 3: operate: a copy moves to the other disk


def copies(lab: Lab) -> dict[int, LogDirView]:
    """The copies of orders-0 by broker."""
    return {each.broker: each for each in lab.log_dirs() if (each.topic, each.partition) == ("orders", 0)}


def not_moved(lab: Lab) -> str | None:
    """The fault of a move within broker 1."""
    partition = lab.partition("orders", 0)
    if sorted(partition.replicas) != [1, 2] or sorted(partition.isr) != [1, 2]:
        return f"orders-0 has replicas {partition.replicas} and ISR {partition.isr}; both copies are to stay."
    copy = copies(lab)[1]
    if copy.future:
        return f"the copy on broker 1 is still on its way to {copy.future}."
    if copy.path != "/d1":
        return "the copy on broker 1 still lies in /d0."
    if any(limit in data for limit in (b"io.max.bytes", b"throttled.rate") for data, *_ in lab.znodes().values()):
        return "the copy lies in /d1, and the limit is still set: the next move will be slow, too."
    return None


def about_plan(lab: Lab) -> str:
    """The remark on a plan, by what it did."""
    paths = {broker: copy.path for broker, copy in copies(lab).items()}
    if sorted(paths) != [1, 2]:
        return "Name the same brokers in `replicas`, 1 and 2; only the directory of the first is another one."
    if paths.get(1) == "/d1":
        return "`lab.verify_reassignment(plan)` removes a limit when the move is done."
    if paths.get(2) == "/d1":
        return "`log_dirs` has the order of `replicas`: that was the copy on broker 2."
    return "Does the plan name /d1 for broker 1?"


EXERCISES: tuple[Exercise, ...] = (
    Operate(
        name="21.1",
        title="A restart within five seconds",
        core=True,
        hints=(
            "What does broker 1 do between its start and its registration?",
            "`lab.trace.slice(kind='broker', broker=1)` shows how many bytes it recovers.",
            "Which way of stopping flushes the logs, and says so?",
        ),
        begin=LOADED,
        missing=not_patched,
        best=2,
        remarks={
            "kill": "After `kill -9` there is no .kafka_cleanshutdown: all that was not flushed is read again.",
            "shutdown": about_shutdown,
            "start": about_start,
            "expire_session": "The session ended, and the process went on.",
            "delete_controller": "No process of a broker is restarted by that.",
        },
        praise={"bounce": "The process closed its logs, but its leaders did not move before."},
        why="A process that closes its logs leaves nothing to recover. A controlled shutdown moves the leaders first.",
    ),
    Operate(
        name="21.2",
        title="A disk has failed",
        core=True,
        hints=(
            "`lab.log_dirs()` shows the copies of broker 1: those without a path cannot be read.",
            "The other processes know everything about the failure. Which process has to look at the disk again?",
            "When does a broker open its log directories?",
        ),
        begin=BROKEN,
        missing=not_readable,
        best=1,
        remarks={
            "delete_controller": "The next controller asks broker 1 too, and gets KAFKA_STORAGE_ERROR again.",
            "elect_preferred": "An election needs a replica that can be read. For audit-0 there is none.",
            "expire_session": "The process went on, and it knows that the directory has failed.",
            "reassign": lambda lab: (
                "The new replica fetches from the leader, and audit-0 has none: the move waits."
                if lab.partition("audit", 0).leader < 0
                else None
            ),
            "delete_topic": lambda lab: (
                "The records are to be saved. The deletion waits for the copy that cannot be read."
                if "/admin/delete_topics/audit" in lab.znodes()
                else "The records are to be saved."
            ),
            **dict.fromkeys(("bounce 2", "bounce 3"), "The directory that failed is on broker 1."),
            "heal": "That ends faults of the network. The directory stays failed for this process.",
            "shutdown": while_down("It left in good order; now it has to come back."),
            "kill": while_down("Now it has to come back."),
        },
        praise={
            "kill": "But orders-1 had no leader until the session of broker 1 expired, "
            "and its logs had to be recovered.",
        },
        why="A broker opens its log directories when it starts, and never again.",
    ),
    Operate(
        name="21.3",
        title="One disk is full",
        hints=(
            "A plan names a directory for each replica: `log_dirs`, in the order of `replicas`; `any` leaves a copy.",
            "The replicas stay [1, 2]; only the first directory is another one.",
            "`lab.execute_reassignment(plan)`; with a limit `lab.verify_reassignment(plan)` ends it.",
        ),
        begin=FULL,
        missing=not_moved,
        best=1,
        remarks={
            "reassign": "This plan names brokers only. Within a broker a copy moves with `log_dirs`.",
            "fail_log_dir": "The directory and all of its copies are gone now.",
            "execute_reassignment": about_plan,
            "add_broker": "The copy is to stay on broker 1.",
            "shutdown": "A broker that is down moves nothing.",
        },
        why="The copy in the new directory grows beside the old one, and takes its place when it has caught up.",
    ),
)
