"""Two runs side by side: where they part, and how differently they end."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput, short
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.text import describe

if TYPE_CHECKING:
    from kafka_ctl.lab.producer_commands import ProducerCommands

TIMESTAMP = re.compile(r'"timestamp":"?\d+"?')


class Difference(NamedTuple):
    """Something that two runs end with differently: its name and its value in each; None where it does not exist."""

    what: str
    left: object
    right: object


class Comparison(NamedTuple):
    """Two runs side by side: the first fact in which they part, and how they end."""

    parted: int | None
    """How many facts they share; None if all of both."""
    left: Record | None
    """What the left run did then; None if it had ended."""
    right: Record | None
    differences: tuple[Difference, ...]
    """How controller, partitions, brokers, logs, violations and znodes differ at their ends."""

    def __str__(self) -> str:
        if self.parted is None and not self.differences:
            return "the same facts from beginning to end"
        lines = []
        if self.parted is None:
            lines.append("the same facts in the same order")
        else:
            lines.append(f"the first {self.parted} facts are the same, then")
            for side, record in (("left", self.left), ("right", self.right)):
                lines.append(f"  {side:<5}  {'has ended' if record is None else describe(record)}")
        lines += [f"{d.what}\n  left   {d.left}\n  right  {d.right}" for d in self.differences]
        return "\n".join(lines)


def compare(left: ProducerCommands, right: ProducerCommands) -> Comparison:
    """Where two runs part and how they end differently. When things happened does not count, only what and in which
    order; neither do the times that znodes contain. Raises BadInput for what is no lab."""
    for lab in (left, right):
        if not hasattr(lab, "trace") or not hasattr(lab, "znodes"):
            raise BadInput(f"compare needs two labs; {short(lab)} is none")
    parted = next(
        (n for n, (a, b) in enumerate(zip_longest(map(_fact, left.trace), map(_fact, right.trace))) if a != b), None
    )
    here = [None if parted is None or parted >= len(lab.trace) else lab.trace[parted] for lab in (left, right)]
    ends = [_ending(lab) for lab in (left, right)]
    names = dict.fromkeys([*ends[0], *ends[1]])
    differ = [Difference(n, ends[0].get(n), ends[1].get(n)) for n in names if ends[0].get(n) != ends[1].get(n)]
    return Comparison(parted, here[0], here[1], tuple(differ))


def _fact(record: Record) -> Record:
    """A record without its moment."""
    detail = record.detail and TIMESTAMP.sub("timestamp", record.detail)
    return record._replace(time_ms=0.0, detail=detail)


def _ending(lab: ProducerCommands) -> dict[str, object]:
    """What a run has come to, by name."""
    controller = lab.controller
    ending: dict[str, object] = {"controller": controller and f"{controller.id} epoch={controller.epoch}"}
    for p in lab.partitions():
        ending[f"{p.topic}-{p.partition}"] = (
            f"{p.state} leader={p.leader} isr={list(p.isr)} replicas={list(p.replicas)} "
            f"leader_epoch={p.leader_epoch} zk_version={p.zk_version}"
        )
    for id, broker in lab.brokers.items():
        leads, follows = ([str(tp) for tp in tps] for tps in (broker.leads, broker.follows))
        ending[f"broker {id}"] = f"{broker.state} leads={leads} follows={follows}"
    for log in lab.logs():
        ending[f"log of {log.topic}-{log.partition} on broker {log.broker}"] = log.content
    for violation in lab.violations:
        ending.setdefault(f"{violation.invariant} {violation.name}", violation.text)
    for path, (data, _, _) in lab.znodes().items():
        if not path.endswith("/state"):  # that is shown as a partition
            ending[path] = TIMESTAMP.sub("timestamp", data.decode("utf-8", "backslashreplace"))
    return ending
