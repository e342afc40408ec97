"""A transition table: the one place that knows the legal moves of a state machine.

A row is a legal move, the method that performs it, and what it means. The machine, its checks and its
error texts, the diagrams, the tables in the docs and the Spark questions all read these rows.
`format(table, "dot" | "md" | "text")` renders it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from kafka_ctl.display import Table
from kafka_ctl.errors import BadInput, InvalidTransition, UnknownName


class Move(NamedTuple):
    """A legal move: `action` is the method that performs it, `effect` says in words what it means."""

    source: str
    target: str
    action: str
    effect: str


class TransitionTable:
    """The legal moves of one machine in one generation of Kafka.

        from kafka_ctl import PARTITION
        table = PARTITION["2.0"]
        [str(state) for state in table.following("NewPartition")]  # ['OnlinePartition', 'OfflinePartition']
        [str(state) for state in table.previous("NonExistentPartition")]  # ['OfflinePartition']
        print(f"{table:text}")

    `initial` is the state of what the machine has never heard of; `kafka` names the source file.
    """

    def __init__(self, name: str, initial: str, kafka: str, rows: tuple[Move, ...]) -> None:
        self.name, self.initial, self.kafka, self.rows = name, initial, kafka, rows
        self.states: tuple[str, ...] = tuple(dict.fromkeys(s for row in rows for s in (row.source, row.target)))
        if problems := self.problems():
            raise BadInput(f"the {name} table is unsound: " + "; ".join(problems))

    @cached_property
    def moves(self) -> dict[tuple[str, str], Move]:
        """The rows, by the two states."""
        return {(row.source, row.target): row for row in self.rows}

    def previous(self, state: str) -> tuple[str, ...]:
        """The states from which `state` may be entered, in table order.

        Raises UnknownName if this table does not have the state.
        """
        if state not in self.states:
            raise UnknownName(f"{self.name} state", state, self.states)
        return tuple(row.source for row in self.rows if row.target == state)

    def following(self, state: str) -> tuple[str, ...]:
        """The states that may follow `state`, in table order."""
        if state not in self.states:
            raise UnknownName(f"{self.name} state", state, self.states)
        return tuple(row.target for row in self.rows if row.source == state)

    def find(self, subject: object, source: str, target: str) -> Move:
        """The row for this move; InvalidTransition, naming `subject`, when there is none."""
        move = self.moves.get((source, target))
        if move is None:
            raise InvalidTransition(subject, source, target, self.previous(target))
        return move

    def allows(self, source: str, target: str) -> bool:
        return (source, target) in self.moves

    def problems(self, machine: type | None = None) -> list[str]:
        """The faults of the table (and of `machine` as its performer), one sentence each."""
        found = [
            f"{m.source} -> {m.target} is listed twice"
            for i, m in enumerate(self.rows)
            if (m.source, m.target) in {(e.source, e.target) for e in self.rows[:i]}
        ]
        reached, todo = {self.initial}, [self.initial]
        while todo:
            state = todo.pop()
            for row in self.rows:
                if row.source == state and row.target not in reached:
                    reached.add(row.target)
                    todo.append(row.target)
        found += [f"{state} cannot be reached from {self.initial}" for state in self.states if state not in reached]
        if machine is not None:
            actions = dict.fromkeys(row.action for row in self.rows)
            found += [f"{machine.__name__} has no method {a}" for a in actions if not hasattr(machine, f"_{a}")]
        return found

    def __repr__(self) -> str:
        return f"TransitionTable({self.name}: {len(self.rows)} moves among {len(self.states)} states)"

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        if spec not in FORMATS:
            raise UnknownName("table format", spec, FORMATS)
        return FORMATS[spec](self)


class Tables(dict[str, TransitionTable]):
    """The tables of one machine by generation: `PARTITION["2.0"]` or `PARTITION[Generation("2.0")]`."""

    def __getitem__(self, generation: object) -> TransitionTable:
        name = getattr(generation, "name", generation)
        if not isinstance(name, str) or name not in self:
            raise UnknownName("generation", str(generation), self)
        return super().__getitem__(name)


def short(state: str) -> str:
    """A state without its noun: `OnlinePartition` is `Online` among partitions."""
    return state.removesuffix("Partition").removesuffix("Replica")


def _text(table: TransitionTable) -> str:
    """A grid: rows are left, columns entered; the action where the move is legal, a dot elsewhere."""
    cells = []
    for source in table.states:
        moves = [table.moves.get((source, target)) for target in table.states]
        cells.append([short(source), *(m.action if m else "." for m in moves)])
    return Table(["", *map(short, table.states)], cells).text()


def _md(table: TransitionTable) -> str:
    head = "| from | to | action | effect |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {m.source} | {m.target} | `{m.action}` | {m.effect} |" for m in table.rows)


def _dot(table: TransitionTable) -> str:
    lines = [
        f'digraph "{table.name}" {{',
        '  node [shape=box style=rounded fontname="Helvetica"];',
        '  edge [fontname="Helvetica" fontsize=10];',
    ]
    lines += [f'  "{s}" [label="{short(s)}"{" peripheries=2" if s == table.initial else ""}];' for s in table.states]
    lines += [f'  "{m.source}" -> "{m.target}" [label="{m.action}" tooltip="{m.effect}"];' for m in table.rows]
    return "\n".join([*lines, "}"])


FORMATS: dict[str, Callable[[TransitionTable], str]] = {"text": _text, "md": _md, "dot": _dot}
"""The forms of a table: a grid, a Markdown table, a Graphviz digraph."""
