"""Why did that happen? The rule that applied, its inputs, what it decided, what it would have decided otherwise.

Elections are decided again by `election.py` from what the record says of them, once as they were and once for each
"otherwise", so the answer cannot differ from what the controller does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.trace import Record, Trace
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import printable
from kafka_ctl.views.source import Source
from kafka_ctl.views.whyelection import election
from kafka_ctl.views.whyrules import broker, controller, partition, refused_write, replica, violation

CHAIN = 12
"""The most causes that are told, the latest ones."""


class Why(NamedTuple):
    """The answer; printed it is text, shown in a notebook it is a small table."""

    title: str
    rule: str
    inputs: tuple[tuple[str, str], ...]
    decided: str
    otherwise: tuple[tuple[str, str], ...] = ()
    source: Source | None = None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.title, f"  rule          {self.rule}"]
        lines += [f"  {name:<13} {text}" for name, text in (*self.inputs, ("decided", self.decided))]
        lines += [f"  otherwise     {what}: {then}" for what, then in self.otherwise]
        lines += [f"  cause {n:<7} {text}" for n, text in enumerate(self.causes, 1)]
        return "\n".join(lines + ([f"\n{self.source}"] if self.source else []))

    def _repr_html_(self) -> str:
        rows = [("rule", self.rule), *self.inputs, ("decided", self.decided)]
        rows += [(f"otherwise: {what}", then) for what, then in self.otherwise]
        rows += [(f"cause {n}", text) for n, text in enumerate(self.causes, 1)]
        body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        code = f"<pre>{escape(str(self.source))}</pre>" if self.source else ""
        return f"<b>{escape(self.title)}</b><table>{body}</table>{code}"


RULES: dict[str, Callable[[Trace, Record, Generation], dict[str, Any] | None]] = {
    "election": election,
    "partition": partition,
    "replica": replica,
    "broker": broker,
    "controller": controller,
    "zk": refused_write,
    "violation": violation,
}
"""Kind of record -> what finds the rule behind it; None when it has none of its own."""


def why(trace: Trace, seq: int, generation: str | Generation = "2.0") -> Why:
    """Why the record `seq` of this trace came about; BadInput when there is no such record."""
    if not isinstance(seq, int) or not 0 <= seq < len(trace):
        raise BadInput(f"why({seq!r}): the trace has records 0 to {len(trace) - 1}")
    record = trace[seq]
    chain = [caption([cause]) for cause in trace.causes(seq)[:-1]]
    causes = tuple(dict.fromkeys(chain))[-CHAIN:]
    find = RULES.get(record.kind)
    found = find(trace, record, Generation(generation)) if find else None
    if found is None:
        first = f"it follows from: {causes[-1]}" if causes else "nobody in the cluster caused it: it was asked for"
        found = {"rule": first, "inputs": (), "decided": caption([record])}
    return Why(title=caption([record]), causes=causes, **found)


def why_data(trace: Trace, seqs: Sequence[int], generation: Generation) -> dict[str, Any]:
    """The answer for the frame with these records, as data for the browser; of several the one that says most."""
    ranked = sorted(seqs, key=lambda seq: (_rank(trace[seq]), seq))
    answer = why(trace, ranked[0], generation)
    title = answer.title + (f" (One of {len(seqs)}.)" if len(seqs) > 1 else "")
    told = {"title": printable(title), "rule": printable(answer.rule), "decided": printable(answer.decided)}
    pairs = {name: [[printable(a), printable(b)] for a, b in getattr(answer, name)] for name in ("inputs", "otherwise")}
    code = answer.source and {"name": answer.source.name, "lines": [list(line) for line in answer.source.lines]}
    return {**told, **pairs, "causes": [printable(text) for text in answer.causes], "source": code}


def _rank(record: Record) -> int:
    """What is most worth asking about in a step: what was refused, what was elected, what moved."""
    order = ("violation", "election", "partition", "replica", "controller", "broker", "zk")
    return (0 if record.error else 10) + (order.index(record.kind) if record.kind in order else len(order))
