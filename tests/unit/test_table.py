"""The transition tables: sound, the same as Kafka's own relation, and readable in three formats."""

import re

import pytest
from prose import Prose

from kafka_ctl.errors import BadInput, InvalidTransition, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.partition import PARTITION, PartitionState
from kafka_ctl.replica import INELIGIBLE, REPLICA, ReplicaState
from kafka_ctl.table import Move, TransitionTable, short

ROWS = (Move("Shut", "Open", "open", "people pass"), Move("Open", "Shut", "shut", "nobody may"))
DOOR = TransitionTable("door", "Shut", "none", ROWS)

PREVIOUS = {
    # State machines of Kafka 0.10.2.2 and 2.0.1, validPreviousStates; 2.4.1 adds Offline before Ineligible.
    "NewPartition": "NonExistentPartition",
    "OnlinePartition": "NewPartition OnlinePartition OfflinePartition",
    "OfflinePartition": "NewPartition OnlinePartition OfflinePartition",
    "NonExistentPartition": "OfflinePartition",
    "NewReplica": "NonExistentReplica",
    "OnlineReplica": "NewReplica OnlineReplica OfflineReplica ReplicaDeletionIneligible",
    "OfflineReplica": "NewReplica OnlineReplica OfflineReplica ReplicaDeletionIneligible",
    "ReplicaDeletionStarted": "OfflineReplica",
    "ReplicaDeletionSuccessful": "ReplicaDeletionStarted",
    "ReplicaDeletionIneligible": "ReplicaDeletionStarted",
    "NonExistentReplica": "ReplicaDeletionSuccessful",
}


def test_the_relation_is_kafkas(generation: str) -> None:
    """Every set of previous states, for every generation."""
    wanted = {state: set(previous.split()) for state, previous in PREVIOUS.items()}
    if generation == "2.4":
        wanted["ReplicaDeletionIneligible"].add("OfflineReplica")
    tables = (PARTITION[generation], REPLICA[generation])
    assert {state: set(table.previous(state)) for table in tables for state in table.states} == wanted
    assert [len(table.rows) for table in tables] == [8, 14 if generation == "2.4" else 13]


def test_all_states_are_in_their_table(generation: str) -> None:
    assert set(PARTITION[generation].states) == set(PartitionState)
    assert set(REPLICA[generation].states) == set(ReplicaState)


def test_looking_up_moves() -> None:
    assert DOOR.previous("Open") == ("Shut",)
    assert DOOR.following("Open") == ("Shut",)
    assert DOOR.find("the door", "Shut", "Open").action == "open"
    assert DOOR.allows("Open", "Shut")
    assert not DOOR.allows("Open", "Open")
    assert repr(DOOR) == "TransitionTable(door: 2 moves among 2 states)"


def test_an_illegal_move_says_from_where_it_is_legal(prose: Prose) -> None:
    with prose.refused(InvalidTransition) as reported:
        DOOR.find("the door", "Open", "Open")
    assert (reported.value.subject, reported.value.source, reported.value.target, reported.value.allowed) == (
        "the door",
        "Open",
        "Open",
        ("Shut",),
    )


@pytest.mark.parametrize("look", [DOOR.previous, DOOR.following])
def test_an_unknown_state_lists_the_known_ones(prose: Prose, look: object) -> None:
    prose.refuses(UnknownName, look, "Ajar")


def test_an_unsound_table_is_refused(prose: Prose) -> None:
    """A move that stands twice, a state that nothing leads to."""
    prose.refuses(BadInput, TransitionTable, "door", "Shut", "none", (*ROWS, ROWS[0]))
    with prose.refused(BadInput):
        TransitionTable("door", "Shut", "none", (*ROWS, Move("Gone", "Shut", "mend", "it is back")))


def test_a_machine_needs_a_method_for_each_action(prose: Prose) -> None:
    class Porter:
        def _open(self) -> None:
            """Opens."""

    prose(*DOOR.problems(Porter))


def test_as_a_grid() -> None:
    assert f"{DOOR:text}" == "      Shut  Open\nShut  .     open\nOpen  shut  ."


def test_as_markdown() -> None:
    assert f"{DOOR:md}".splitlines()[2] == "| Shut | Open | `open` | people pass |"
    assert len(f"{REPLICA['2.0']:md}".splitlines()) == 2 + 13


def test_as_a_digraph() -> None:
    drawn = f"{PARTITION['2.0']:dot}"
    assert drawn.startswith('digraph "partition" {')
    assert len(re.findall(r" -> ", drawn)) == 8
    assert '"NonExistentPartition" [label="NonExistent" peripheries=2]' in drawn


def test_other_formats(prose: Prose) -> None:
    assert f"{DOOR}" == repr(DOOR)
    with prose.refused(UnknownName):
        f"{DOOR:svg}"


def test_tables_by_generation() -> None:
    """By name, by value, and for a hybrid by what it was made from."""
    assert PARTITION[Generation("2.0").but(pipelined=False)] is PARTITION["2.0"]
    with pytest.raises(UnknownName, match="unknown generation '9'; known: "):
        PARTITION["9"]


def test_states_without_their_noun() -> None:
    assert [short(state) for state in PartitionState] == ["NonExistent", "New", "Online", "Offline"]
    assert short(INELIGIBLE) == "ReplicaDeletionIneligible"
