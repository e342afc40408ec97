"""The explanation of a record: the rule that applied, its inputs, its decision, and its decisions for other inputs.

Elections are decided again by `election.py` from what the record says of them, once as they were and once for each
"otherwise", so the answer cannot differ from what the controller does. A replay of the lab's story finds the lines that
ran (`source.py`); a trace without a story shows the function without marks, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import whole
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.events import EventQueue
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.state_machine import StateMachine
from kafka_ctl.errors import BadInput, short
from kafka_ctl.generation import Generation
from kafka_ctl.invariants.base import Invariant
from kafka_ctl.invariants.checker import Checker
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.simulation.world import World
from kafka_ctl.trace.catalogue import find
from kafka_ctl.trace.details import Json
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import SET, Record, Recorder, extent
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import printable
from kafka_ctl.views.explain import rules
from kafka_ctl.views.explain.elections import RULES as ELECTIONS
from kafka_ctl.views.explain.elections import election
from kafka_ctl.views.explain.source import Call, Finding, Lines, Run, Source, cited, code_of, source
from kafka_ctl.views.status import difference_of, difference_text

_folded: WeakKeyDictionary[Recorder, ClusterModel] = WeakKeyDictionary()
"""Trace -> the model at the record that was asked for last."""


def model_at(trace: Recorder, seq: int) -> ClusterModel:
    """The model just after the record `seq` of a whole trace."""
    model = _folded.get(trace)
    if model is None or model.seq > seq:
        model = _folded[trace] = ClusterModel()
    return model.apply_all(trace.records[model.seq + 1 : seq + 1])


CHAIN = 12
"""The most causes that are listed, the latest ones."""


class Why(NamedTuple):
    """The answer; printed it is text, shown in a notebook it is a small table."""

    title: str
    rule: str
    inputs: tuple[tuple[str, str], ...]
    decided: str
    otherwise: tuple[tuple[str, str], ...] = ()
    sources: tuple[Source, ...] = ()
    lines: str = ""
    """The reason why no line is marked, if none is."""
    kafka: str = ""
    """The place in Kafka's source: release, file, symbols."""
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"  {name + ':':<14} {what}{': ' if what else ''}{text}" for name, what, text in self._rows()]
        return "\n".join([self.title, *lines, *(f"\n{source}" for source in self.sources)])

    def _rows(self) -> list[tuple[str, str, str]]:
        """The lines: a name, of alternatives their condition, and a text."""
        rows = [("rule", "", self.rule), *((name, "", text) for name, text in self.inputs)]
        rows += [("decided", "", self.decided), *(("otherwise", what, then) for what, then in self.otherwise)]
        rows += [(f"cause {n}", "", text) for n, text in enumerate(self.causes, 1)]
        return rows + [(name, "", text) for name, text in (("in Kafka", self.kafka), ("lines", self.lines)) if text]

    def _repr_html_(self) -> str:
        rows = ((f"{name}: {what}" if what else name, text) for name, what, text in self._rows())
        body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        code = "".join(f"<pre>{escape(str(source))}</pre>" for source in self.sources)
        return f"<b>{escape(self.title)}</b><table>{body}</table>{code}"


Finder = Callable[[Recorder, Record, Generation], Finding | None]
RULES: dict[str, tuple[Finder, ...]] = {
    "election": (election,),
    "partition": (rules.partition,),
    "replica": (rules.replica,),
    "broker": (rules.broker, rules.act),
    "controller": (rules.controller,),
    "zk": (rules.refused_write, rules.act),
    "watch": (rules.act,),
    "violation": (rules.violation,),
    "event": (rules.refused_command, rules.act),
    "request": (rules.act,),
    "response": (rules.response,),
}
"""Kind of record -> the functions that look for its rule; the first rule that is found is taken."""


UNKNOWN = "Not known: only a lab on virtual time can be replayed to see which lines ran."
REPLAYING = "Replaying the story to see which lines ran …"
LATE = "Not computed: it takes two replays of {:,} records each; lab.why({}, lines=True) waits for that."
MOST_REPLAYED = 50_000
"""Records up to which a story is replayed unasked: some seconds."""
_WRITE: tuple[Callable[..., object], ...] = (
    *(StateMachine.moved, StateMachine.begin, StateMachine.failed, StateMachine.record),
    *(PartitionStateMachine.moved, PartitionStateMachine.led, PartitionStateMachine.failed),
    *(PartitionStateMachine.record_election, Controller.log, EventQueue.record),
    *(Broker.record, BrokerProcess.record_offset, Recorder.about, World.record_fault),
    *(Checker.report, Invariant.broken),
)
RECORDERS = frozenset(map(code_of, _WRITE))
"""Functions that only write a record down; the decision is their caller's."""
MACHINES = ("state_machine.py", "partition_machine.py", "replica_machine.py")


def why(
    trace: Recorder,
    seq: int,
    generation: str | Generation = "2.0",
    lines: Lines | None = None,
    most: float = MOST_REPLAYED,
) -> Why:
    """The explanation of the record `seq` of this trace. Raises BadInput if there is no such record.

    `lines` finds out which lines ran, see `lines_of` in `views/explain/source.py`. Without it, and
    for records after `most`, only the lines of an election are marked.
    """
    number = whole(seq)
    if number is None or not 0 <= number < len(trace):
        raise BadInput(f"why({short(seq)}): {extent(trace)}")
    return _answers(trace, [number], Generation(generation), lines, most)[number]


def _answers(
    trace: Recorder, seqs: Iterable[int], generation: Generation, lines: Lines | None, most: float
) -> dict[int, Why]:
    """The answers for these records; the story is replayed only once for all."""
    found = {seq: _rule(trace, seq, generation) for seq in seqs}
    at = {seq: seq if rule.at is None else rule.at for seq, rule in found.items()}
    by = [one for rule in found.values() for one in rule.by]
    runs = lines([number for number in at.values() if number <= most], by) if lines else {}
    late = {seq: LATE.format(number + 1, seq) for seq, number in at.items() if lines and number > most}
    return {seq: _answer(trace, seq, rule, runs.get(at[seq]), late.get(seq, UNKNOWN)) for seq, rule in found.items()}


def _rule(trace: Recorder, seq: int, generation: Generation) -> Finding:
    """The rule behind a record; for a record without a rule of its own, the record that it follows from."""
    record = trace[seq]
    found = _own(trace, record, generation)
    if found is None:
        chain = trace.causes(seq)[:-1]
        cause = next((one for one in reversed(chain.records) if is_explained(trace, one, generation)), None)
        behind = None if cause is None else _own(trace, cause, generation)
        rule = "Nothing in the cluster caused this: a person or the story asked for it."
        if cause is not None and behind is not None:
            rule = f"It follows from another record: {caption([cause], trace.records)} {behind.rule}"
        elif chain:
            rule = f"It follows from this command: {caption([chain[0]], trace.records)}"
        found = Finding(rule=rule, inputs=(), decided=caption([record], trace.records))
    return found


def _own(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The rule behind this very record."""
    found = (find(trace, record, generation) for find in RULES.get(record.kind, ()))
    return next((one for one in found if one is not None), None)


def is_explained(trace: Recorder, record: Record, generation: Generation) -> bool:
    """True if "why?" has a rule for this very record: only then it is offered."""
    match record.kind:
        case "partition" | "replica":
            table = (PARTITION if record.kind == "partition" else REPLICA)[generation]
            return record.action == SET or {record.source, record.target} <= set(table.states)
        case "election":
            return record.action in ELECTIONS
        case "controller":
            return record.action in rules.FIRST or find(record.kind, record.action).rule is not None
        case "violation":
            return record.action in rules.NAMES
    return _own(trace, record, generation) is not None


def is_offered(trace: Recorder, seqs: Sequence[int], generation: Generation) -> bool:
    """True if a step with these records has an answer to "why?"."""
    return any(is_explained(trace, trace[seq], generation) for seq in seqs)


def _answer(trace: Recorder, seq: int, found: Finding, run: Run | None, unknown: str) -> Why:
    """The answer from a rule, and from the calls behind the record if they are known; else why they are not."""
    record = trace[seq]
    texts = (caption([cause], trace.records) for cause in trace.causes(seq)[:-1])
    causes = tuple(text for text, _ in groupby(texts))[-CHAIN:]
    deciding = [] if run is None else _deciding(run, found.by)
    if run is not None:
        sources = tuple(source(call.code, call.executed) for call in deciding)
    else:  # what a real ZooKeeper refused, no function of ours did
        sources = tuple(source(code_of(one), found.executed) for one in found.by if record.kind != "zk")
    return Why(
        title=caption([record], trace.records),
        rule=found.rule,
        inputs=(*found.inputs, *_who_has_what(trace, record)),
        decided=found.decided,
        otherwise=found.otherwise,
        sources=sources,
        lines=unknown if run is None and not found.executed else "",
        kafka=found.kafka or cited(found.by) or cited([call.code for call in deciding]),
        causes=causes if found.chain is None else found.chain,
    )


def _who_has_what(trace: Recorder, record: Record) -> tuple[tuple[str, str], ...]:
    """The differences from ZooKeeper about the record's partition, just after the record."""
    if record.topic is None or record.partition is None or record.seq > MOST_REPLAYED:
        return ()
    found = difference_of(model_at(trace, record.seq), (record.topic, record.partition))
    return () if found is None else (("State in each place", difference_text(found)),)


def _deciding(run: Run, by: Sequence[Callable[..., object]]) -> list[Call]:
    """The functions to be shown: those that the rule names, else the record's own; of a move also its caller."""
    acting = [call for call in run.stack if call.code not in RECORDERS]
    shown = run.of(by) or acting[:1]
    if acting and Path(acting[0].code.co_filename).name in MACHINES:
        wanted = (call for call in acting if Path(call.code.co_filename).name not in MACHINES)
        shown += [call for call in list(wanted)[:1] if call not in shown]
    return shown


class Explainer(NamedTuple):
    """The answers to "why?" about a run, as data for the browser; `title` stands before them, if there are two."""

    trace: Recorder
    generation: Generation
    lines: Lines | None = None
    title: str = ""

    def explanations(self, seqs: Sequence[int]) -> Iterator[Json]:
        """The answer for the frame with these records: at once, and then with the lines that ran.

        Of several records, the one that says most is explained.
        """
        seq = most_relevant(self.trace, seqs)
        if self.lines is not None and seq <= MOST_REPLAYED:
            yield self._data(why(self.trace, seq, self.generation)._replace(lines=REPLAYING), len(seqs))
        yield self._data(why(self.trace, seq, self.generation, self.lines), len(seqs))

    def whys(self, steps: Sequence[Sequence[int]]) -> list[Json | None]:
        """The answers for many frames, None for one without records; the story is replayed only once for all."""
        trace, generation = self.trace, self.generation
        seqs = [most_relevant(trace, step) if is_offered(trace, step, generation) else None for step in steps]
        found = _answers(trace, [seq for seq in seqs if seq is not None], generation, self.lines, MOST_REPLAYED)
        return [
            None if seq is None else self._data(found[seq], len(step)) for seq, step in zip(seqs, steps, strict=True)
        ]

    def _data(self, answer: Why, among: int) -> Json:
        """An answer as data for the browser; `among` is how many records its step has."""
        title = self.title + answer.title + (f" (One of {among}.)" if among > 1 else "")
        texts = {"title": title, "rule": answer.rule, "decided": answer.decided, "lines": answer.lines}
        texts["kafka"] = answer.kafka
        pairs = {"inputs": answer.inputs, "otherwise": answer.otherwise}
        return {
            **{name: printable(text) for name, text in texts.items()},
            **{name: [[printable(a), printable(b)] for a, b in rows] for name, rows in pairs.items()},
            "causes": [printable(text) for text in answer.causes],
            "sources": [{"name": one.name, "lines": [list(line) for line in one.lines]} for one in answer.sources],
        }


def most_relevant(trace: Recorder, seqs: Sequence[int]) -> int:
    """The record of a step that says most: first refusals, then elections and moves."""
    order = ("violation", "election", "partition", "replica", "controller", "broker", "zk", "request", "event")
    generation = Generation(trace.generation)

    def rank(seq: int) -> tuple[bool, int, int]:
        kind = trace[seq].kind
        place = (0 if trace[seq].error else 10) + (order.index(kind) if kind in order else len(order))
        return not is_explained(trace, trace[seq], generation), place, seq

    return min(seqs, key=rank)
