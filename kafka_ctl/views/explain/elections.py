"""Explanations: an election decided again from its record: with the inputs that it had, and with other ones."""

from __future__ import annotations

from functools import partial

from kafka_ctl import election as rules
from kafka_ctl.election import Election
from kafka_ctl.generation import Generation
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.captions import caption, format_ids
from kafka_ctl.views.explain.source import Finding, texts_of, watched

Rule = partial[Election | None]
RULES = texts_of("election")
HEAD_OF_ISR = (
    "The first member of the ISR that is not shutting down leads (KAFKA-3670); brokers shutting down leave it."
)
"""The rule of a controlled shutdown before Kafka 0.10."""
SETS_ISR = ("elect", "LeaderAndIsr", "shrink-isr", "expand-isr")
"""Actions of records with an ISR that is new, or as it was when it was new."""


class Inputs:
    """The inputs of an election; those that the record leaves out come from the trace before it.

    `by_isr`: a controlled shutdown goes by the ISR (KAFKA-3670).
    """

    def __init__(self, trace: Recorder, record: Record, by_isr: bool = False) -> None:
        self.by_isr = by_isr
        fields = details.named(record.detail)
        self.strategy = str(record.action)
        self.assigned = record.replicas or ()
        self.isr = details.numbers(fields.get("isr_before", ""))
        self.without_disk = _without_disk(trace, record)
        self.live = tuple(b for b in details.numbers(fields.get("live", "")) if b not in self.without_disk)
        self.leader = fields.get("leader_before", "-1")
        gone = set(self.isr) - set(record.isr if record.isr is not None else self.live) - self.without_disk
        leaves = self.strategy == "controlled-shutdown"
        self.shutting_down = tuple(sorted({*gone, *details.numbers(self.leader)} - set(self.live))) if leaves else ()
        self.unclean = record.target == "unclean"
        self.target = _target(trace, record) if self.strategy == "reassign" else self.assigned

    @property
    def election_blocked_by(self) -> bool:
        """No assigned replica is live: then no record shows whether an unclean election was allowed."""
        return self.strategy == "offline" and not set(self.assigned) & set(self.live)

    def rule(self, strategy: str, unclean: bool | None = None, live: tuple[int, ...] | None = None) -> Rule:
        """The function of `election.py` with its arguments."""
        alive = self.live if live is None else live
        if strategy == "reassign":
            return partial(rules.reassigned_leader, self.target, self.isr, alive)
        if strategy == "preferred":
            return partial(rules.preferred_leader, self.assigned, self.isr, alive)
        if strategy == "controlled-shutdown":
            up = (*alive, *self.shutting_down)
            leader = rules.head_of_isr if self.by_isr else rules.controlled_shutdown_leader
            return partial(leader, self.assigned, self.isr, up, self.shutting_down)
        lossy = strategy == "unclean" or (self.unclean if unclean is None else unclean)
        return partial(rules.offline_leader, self.assigned, self.isr, alive, lossy)


def election(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """Rule, inputs, decision, alternatives and source of an election."""
    inputs = Inputs(trace, record, generation.bugs.shutdown_follows_isr)
    if inputs.strategy not in RULES:
        return None
    rule = inputs.rule(inputs.strategy)
    decided, executed = watched(rule.func, *rule.args)
    return Finding(
        rule=HEAD_OF_ISR if rule.func is rules.head_of_isr else RULES[inputs.strategy],
        inputs=(*_rows(inputs), *([] if decided else _isr_since(trace, record, inputs))),
        decided=election_text(decided),
        otherwise=tuple(_otherwise(inputs, decided)),
        by=(rule.func, rules.first_of),
        executed=() if inputs.election_blocked_by else executed,
    )


def election_text(choice: Election | None) -> str:
    """An election's outcome in words."""
    if choice is None:
        return "no replica can lead; leader and ISR stay as they are"
    lost = ", and records that only other replicas had are lost" if choice.unclean else ""
    return f"broker {choice.leader} leads, ISR {format_ids(choice.isr)}{lost}"


def _rows(inputs: Inputs) -> tuple[tuple[str, str], ...]:
    shown = {"Assigned": inputs.assigned, "Target": inputs.target, "ISR": inputs.isr, "Live": inputs.live}
    if inputs.target == inputs.assigned:
        del shown["Target"]
    if inputs.shutting_down:
        shown["Shutting down"] = inputs.shutting_down
    if inputs.without_disk:
        shown["Log directory failed"] = tuple(sorted(inputs.without_disk))
    rows = [(name, format_ids(brokers)) for name, brokers in shown.items()]
    rows.append(("Leader before", "no broker" if inputs.leader == "-1" else f"broker {inputs.leader}"))
    if inputs.strategy == "offline":
        fit = [b for b in inputs.assigned if b in inputs.isr and b in inputs.live]
        asked = "not asked for: a replica in sync is live" if fit else "allowed" if inputs.unclean else "not allowed"
        if inputs.election_blocked_by:
            asked = "would not help: no assigned replica is live"
        rows.append(("Unclean election", asked))
    return tuple(rows)


def _isr_since(trace: Recorder, record: Record, inputs: Inputs) -> list[tuple[str, str]]:
    """The command that the members of an ISR go back to, if replicas are missing there."""
    since = None
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition) == (record.topic, record.partition) and r.action in SETS_ISR and r.isr is not None:
            if {*r.isr} != {*inputs.isr}:
                break
            since = r
    if since is None or not {*inputs.isr} < {*inputs.assigned}:
        return []
    return [("ISR since", f"{since.time_ms / 1000:.1f} s: {caption([trace.causes(since.seq)[0]], trace.records)}")]


def _otherwise(inputs: Inputs, decided: Election | None) -> list[tuple[str, str]]:
    """The other possible outcomes: another setting, another survivor, another occasion."""
    others: dict[str, Rule] = {}
    if inputs.strategy == "offline":
        name = "without" if inputs.unclean else "with"
        others[f"{name} unclean election"] = inputs.rule("offline", unclean=not inputs.unclean)
        for broker in [b for b in inputs.assigned if b in inputs.isr and b not in inputs.live][:2]:
            others[f"if broker {broker} had been live"] = inputs.rule("offline", live=(*inputs.live, broker))
    if decided is not None:
        rest = tuple(b for b in inputs.live if b != decided.leader)
        others[f"without broker {decided.leader}"] = inputs.rule(inputs.strategy, live=rest)
    occasions = {"offline": "a dead leader", "preferred": "a request for the preferred leader"}
    led = tuple(b for b in inputs.live if str(b) != inputs.leader)
    for strategy, name in occasions.items():
        if strategy != inputs.strategy:
            others[f"if the reason were {name}"] = inputs.rule(strategy, live=led if strategy == "offline" else None)
    outcomes = {condition: rule() for condition, rule in others.items()}
    return [(what, "the same" if then == decided else election_text(then)) for what, then in outcomes.items()]


def _without_disk(trace: Recorder, record: Record) -> set[int]:
    """Brokers whose replica of the partition is in a failed log directory, as the controller knows."""
    name, found, back = f"{record.topic}-{record.partition}", set[int](), set[int]()
    for r in reversed(trace.records[: record.seq]):
        if r.actor != record.actor or r.kind != "controller":
            continue
        if r.action == "elected":
            break
        if r.action == "replicas_offline" and name in (fields := details.fields(r)).get("partitions", ()):
            found |= {*details.ids([fields.get("broker")])} - back
        if r.action == "broker_startup":
            back.update(details.ids(details.fields(r).get("brokers")))
    return found


def _target(trace: Recorder, record: Record) -> tuple[int, ...]:
    """The target of a partition's move: from its topic's znode, else from the administrator's request."""
    for r in reversed(trace.records[: record.seq]):
        if r.kind != "zk" or r.error or r.action not in ("create", "set"):
            continue
        data = details.json_object(r.detail)
        if r.path == "/admin/reassign_partitions":
            for request in data.get("partitions", ()):
                if (request.get("topic"), request.get("partition")) == (record.topic, record.partition):
                    return details.ids(request.get("replicas"))
        if r.path == f"/brokers/topics/{record.topic}":
            removing = details.ids(data.get("removing_replicas", {}).get(str(record.partition)))
            if removing:
                return tuple(b for b in record.replicas or () if b not in removing)
    return record.replicas or ()
