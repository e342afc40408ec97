"""Every public call of a lab, given anything: an error of the package's own that names it, and nothing half done."""

import copy
import inspect
import math
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labs import until_quiet
from prose import Prose, refuses

from kafka_ctl.errors import (
    ApiException,
    BadInput,
    ConditionNotMet,
    KafkaCtlError,
    PluginFailed,
    Unavailable,
    UnknownName,
)
from kafka_ctl.lab.description import parse_description
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.lab.validate import form
from kafka_ctl.latencies import Costs

PICTURES = ("export", "live", "player", "why")
"""Slow, or with options of their own: a few values for each of them below."""
CALLS = sorted(
    name
    for name in dir(Lab)
    if not name.startswith("_") and inspect.isroutine(getattr(Lab, name)) and name not in (*PICTURES, "close")
)
ODD: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 10**5000, -(10**400), 2**63, math.nan, math.inf, -math.inf, 0.5, 1.0, 1e400),
    *("", " ", "t", "t-0", "zookeeper", "controller", "\n", "\x1b[31m", "\ud800", "a=b", "x" * 100_000, "9" * 5000),
    *(b"", b"t", [], {}, (), set(), [[1]], [None], [[]], {1: 2}, {"t": []}, {"t-0": [1]}, {("t", 0): [2]}),
    *([("t", 0)], ("t", 0), ("t", "0"), [1, 2], ["kill 1"], ["kill"], [b"x"], {b"x": b"y"}, {(): ()}, {None: None}),
    *({1: [1], "1": [1]}, object(), Ellipsis, print, range(3), iter([1]), (n for n in [("t", 0)]), lambda: 1 / 1),
    *(Command("kill", (), {}), Command([], (), {}), Command("kill", ([],), {"x": 1}), "kill 1", "kill"),
    *("kill 1 2\nkill 2", "until 3", "refused kill 9"),
]
slow = settings(suppress_health_check=list(HealthCheck), deadline=None)


@st.composite
def deep(draw: st.DrawFn) -> Any:
    """Something nested without measure, or in itself."""
    value: list[Any] = []
    inner = value
    for _ in range(draw(st.sampled_from([3, 3000]))):
        inner.append([])
        inner = inner[0]
    inner.append(draw(st.sampled_from([value, 1, "t"])))
    return value


values = (
    st.sampled_from(ODD) | deep() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(-1, 3))
)
arguments = st.tuples(
    st.lists(values, max_size=4),
    st.dictionaries(st.sampled_from(["broker", "topic", "n", "wait", "limit", "config", "at", "until", "x"]), values),
)


def opened() -> Lab:
    lab = Lab(brokers=2, seed=3)
    until_quiet(lab.create_topic, "t", 1, 2)
    return lab


@pytest.fixture(scope="module")
def unharmed() -> Iterator[Lab]:
    """A lab for calls that are refused, and leave everything as it was."""
    with opened() as lab:
        yield lab


def state(lab: Lab) -> object:
    """Everything that a refused call must leave as it was."""
    return (
        *(len(lab.trace), lab.now, lab.znodes(), lab.brokers, lab.partitions(), lab.story, lab.logs(), lab.log_dirs()),
        *(lab.config, lab.world.random.getstate(), lab.world.callbacks_run, len(lab.world.clock.loop.pending)),
    )


def fitting(name: str, data: st.DataObject) -> tuple[list[Any], dict[str, Any]]:
    """As many values as the call takes, each by name or not."""
    parameters = [p for p in inspect.signature(getattr(Lab, name)).parameters.values() if p.name != "self"]
    given = [p for p in parameters if p.default is p.empty or data.draw(st.booleans())]
    return [], {p.name: data.draw(values, p.name) for p in given}


def reported(error: KafkaCtlError, *names: str) -> bool:
    """Whether an error is short, and names the call, or is in Kafka's own words, or about a line of a story."""
    text = str(error)
    return len(text) < 4000 and (any(name in text for name in names) or text.startswith("line 1"))


@settings(slow, max_examples=200)
@given(st.sampled_from(CALLS), st.data())
def test_any_call_with_anything(name: str, data: st.DataObject) -> None:
    """Refused in words that name the call, leaving all as it was; or done, and then the story replays."""
    with opened() as lab:
        before = state(lab)
        args, kwargs = fitting(name, data) if data.draw(st.booleans()) else data.draw(arguments)
        refused: KafkaCtlError | None = None
        try:
            made = getattr(lab, name)(*args, **kwargs)
            if isinstance(made, Lab):
                made.close()
        except KafkaCtlError as error:
            refused = error
        if refused is not None and not isinstance(refused, (ConditionNotMet, Unavailable)):
            asked = "\nrefused " in lab.story  # then it is ZooKeeper, or a tool, that would not have it
            assert asked or isinstance(refused, ApiException) or name == "do" or reported(refused, name), refused
            assert asked or state(lab) == before, refused
        if state(lab) != before:
            with suppress(ConditionNotMet, Unavailable), Lab.replay(lab.story) as again:  # as the call was
                assert again.trace.records == lab.trace.records and again.story == lab.story


@settings(slow, max_examples=100)
@given(
    st.dictionaries(st.sampled_from([*inspect.signature(Lab).parameters, "x"]), values, min_size=1),
    st.lists(values, max_size=2),
)
def test_a_lab_opened_with_anything(options: dict[str, Any], args: list[Any]) -> None:
    """The constructor names itself, or the option, and what is allowed."""
    refused: KafkaCtlError | None = None
    try:
        with Lab(*args, **options) as lab, Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records
    except KafkaCtlError as error:
        refused = error
    assert refused is None or reported(refused, "Lab", *options)


@pytest.mark.parametrize("name", CALLS)
def test_too_many_too_few_and_unknown_arguments(unharmed: Lab, name: str) -> None:
    """The error shows the call with its signature."""
    method, shape = getattr(unharmed, name), form(getattr(Lab, name))
    wrong: list[Callable[[], object]] = [lambda: method(*[1] * 12), lambda: method(nonsense=1)]
    if name == "from_description":
        wrong = wrong[:1]
    parameters = list(inspect.signature(method).parameters.values())
    if any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters):
        wrong.append(method)
    for ask in wrong:
        with pytest.raises(BadInput) as refused:
            ask()
        assert shape in str(refused.value) and str(refused.value).startswith(f"{name}: ")


DESCRIPTION = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"
DESCRIBED = parse_description(DESCRIPTION)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda lab: Lab(costs=99), "Lab: costs cannot be 99; they must be a mapping, such as {'boot': 0.1}"),
        (lambda lab: Lab(described=[1]), "Lab: described cannot be [1]; it must be a Description"),
        (lambda lab: Lab(brokers=[[1]]), "Lab: broker id [1]: an id is a whole number, 0 or more, or None in a list"),
        (lambda lab: Lab(colour=1), "Lab: got an unexpected keyword argument 'colour'; the call is Lab(brokers: int"),
        (lambda lab: Lab(settle=1), "Lab: settle cannot be 1; it must be True or False"),
        (
            lambda lab: lab.execute_reassignment(5),
            "execute_reassignment: a plan cannot be 5; it must be JSON, or a mapping: {('orders', 0): [2, 3]}",
        ),
        (
            lambda lab: lab.execute_reassignment("", throttle=2**63),
            "execute_reassignment: a throttle cannot be 9223372036854775808; it must be a whole number, "
            "9223372036854775807 or less",
        ),
        (lambda lab: lab.partition([], 0), "partition: a topic cannot be []; it must be a name"),
        (lambda lab: lab.kill(), "kill: missing a required argument: 'broker'; the call is kill(broker: int)"),
        (lambda lab: lab.back(9999), "back(n=9999): only"),
        (
            lambda lab: lab.back(10**5000),
            "back: a number of moments cannot be a number of very many digits; it must be a",
        ),
        (
            lambda lab: lab.fork(at=10**5000),
            "fork: at cannot be a number of very many digits; it must be a whole number of",
        ),
        (lambda lab: lab.link(step=10**5000), "link: "),
        (
            lambda lab: Lab(seed=10**5000),
            "Lab: a seed cannot be a number of very many digits; it must be a whole number of",
        ),
        (lambda lab: Lab(costs={"boot": 10**400}), "it must be a number of seconds, 1000000 or less"),
        (
            lambda lab: Lab(config={"num.partitions": 2**31}),
            "'num.partitions' cannot be 2147483648; it must be 2147483647 or",
        ),
        (lambda lab: lab.do("kill"), "kill: missing a required argument: 'broker'; the call is kill(broker: int)"),
        (
            lambda lab: lab.do("kill 1\nkill 2"),
            "do: a command cannot be 'kill 1\\nkill 2'; it must be one line of a story",
        ),
        (lambda lab: lab.do(5), "do: a command cannot be 5; it must be one line of a story"),
        (lambda lab: lab.lose(1, 2, applied="no"), "lose: applied cannot be 'no'; it must be True or False"),
        (lambda lab: lab.run_for(math.nan), "run_for: seconds cannot be nan; the call is run_for(seconds: float)"),
        (
            lambda lab: Lab.from_description(DESCRIPTION, described=None),
            "from_description: it reads the description itself; it does not take described",
        ),
        (lambda lab: Lab(described=DESCRIBED._replace(live=("a",))), "described: a live broker cannot be 'a'; it must"),
        (lambda lab: Lab(described=DESCRIBED._replace(live=(-1,))), "described: a live broker cannot be -1; it must"),
        (lambda lab: Lab(described=DESCRIBED._replace(live=5)), "Lab: described cannot be"),
        (lambda lab: lab.kill(9), "kill: unknown broker 9; known: 1, 2"),
    ],
)
def test_what_was_wrong_is_reported(unharmed: Lab, ask: Callable[[Lab], object], words: str) -> None:
    before = state(unharmed)
    refuses(BadInput, re.escape(words), ask, unharmed)
    assert state(unharmed) == before


def test_a_command_as_text() -> None:
    """A line of a story is understood, also with named arguments and quoted values."""
    with opened() as lab, opened() as other:
        lab.do("kill 1")
        lab.do("settle limit=9")
        produced = lab.do("produce t 0 records=2 # two of them")
        other.kill(1)
        other.settle(limit=9)
        assert produced == other.produce("t", 0, records=2)
        assert lab.story == other.story and lab.trace.records == other.trace.records


def test_costs_as_a_mapping() -> None:
    """Like a configuration: only what differs."""
    with Lab(costs={"boot": 0.1}) as lab, Lab(costs=Costs(boot=0.1)) as same, Lab.replay(lab.story) as again:
        assert lab.trace.records == same.trace.records == again.trace.records
        assert "costs='{\"boot\":0.1}'" in lab.story == same.story


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1, "long", None, True, 10**400])
def test_costs_are_numbers_of_seconds(seconds: Any) -> None:
    """Also those of a table that somebody has made."""
    refuses(BadInput, "cost boot", Costs, boot=seconds)
    refuses(BadInput, "Lab: the cost", Lab, costs={"boot": seconds})


def test_arguments_are_kept_as_they_were_given() -> None:
    """What is changed, or used up, afterwards is in no story; and text is kept to the letter."""
    with opened() as lab:
        plan = {("t", 0): [2, 1]}
        lab.reassign(plan)
        plan.clear()
        lab.settle()
        lab.elect_preferred(partition for partition in [("t", 0)])
        until_quiet(lab.create_topic, "u", 1, 1)
        lab.generate_reassignment(("t", "u"), {1, 2})
        for text in ("a\nb", "\u2028", "x=y", "'\"", "#", " ", "1", "null", "\x1b", "\x85", "é", "--", "{}"):
            lab.write_znode("/odd", text)
            assert lab.znodes()["/odd"][0].decode() == text
        with Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records and again.znodes() == lab.znodes()


def test_every_command_is_fuzzed() -> None:
    assert set(COMMANDS) <= set(CALLS)


PLAIN = [odd for odd in ODD if not callable(odd)]
OPTIONS = "start limit is_relevant index speed loop theme playing generation lines nonsense".split()


def test_pictures_of_anything(tmp_path: Path) -> None:
    """Players, exports, the living cluster and "why?" say what is wrong with a view or an option."""
    with opened() as lab:
        short = tmp_path / "film.svg"
        asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [("why", (odd,), {}) for odd in PLAIN]
        asked += [("why", (0, odd), {}) for odd in PLAIN if odd is not True]
        asked += [("live", (odd,), {}) for odd in PLAIN] + [("player", (odd,), {}) for odd in PLAIN]
        asked += [("player", (), {"start": 150, name: odd}) for name in OPTIONS for odd in PLAIN]
        asked += [("export", (short, odd), {}) for odd in PLAIN] + [("export", (odd,), {}) for odd in PLAIN]
        asked += [("export", (short,), {name: odd}) for name in OPTIONS for odd in PLAIN if odd is not None]
        for name, args, kwargs in asked:
            try:
                getattr(lab, name)(*args, **kwargs)
            except (BadInput, Unavailable) as error:
                assert isinstance(error, Unavailable) or reported(error, name), error  # noqa: PT017


def test_an_id_is_no_larger_than_kafkas(prose: Prose) -> None:
    """Above that no znode could be read any more."""
    with Lab() as lab:
        until_quiet(lab.create_topic, "o", 1, 2)
        for call in (
            lambda: lab.create_topic("z", assignment={0: [2**31]}),
            lambda: lab.create_topic("z", assignment={2**31: [1]}),
            lambda: lab.reassign({("o", 0): [2**31]}, through="zookeeper"),
            lambda: lab.reassign({("o", 2**31): [1]}),
            lambda: lab.produce("o", 0, acks=[]),  # type: ignore[arg-type]
        ):
            prose.refuses(BadInput, call)
        with prose.refused(UnknownName):
            Lab(generation=2.4)  # type: ignore[arg-type]
        until_quiet(lab.kill, 1)
        prose.refuses(BadInput, lab.set_meta, 1, "/d0", 2**31)
        assert len(lab.partitions()) == 1
    with Lab(brokers=[1, 2**31 - 1], generation="2.4") as lab:
        assert lab.controller is not None and not lab.violations


def test_numbers_of_a_data_frame() -> None:
    """A whole number of numpy is one, also in the name of a partition."""
    one = pytest.importorskip("numpy").int64(1)
    with Lab(brokers=[one, 2], seed=one, generation="2.4") as lab:
        until_quiet(lab.create_topic, "o", 2, 2)
        until_quiet(lab.reassign, {("o", one): [2, one]})
        assert lab.partition("o", one).replicas == (2, 1) and lab.why(one) == lab.why(1)
        story = lab.fork(at=one * 150).story
        assert story == Lab.replay(lab.story, until=one * 150).story == lab.fork(at=150).story
        lab.back(one)
        assert "int64" not in lab.story and Lab.replay(lab.story).trace == lab.trace


def test_a_negative_partition_is_none(prose: Prose) -> None:
    """It is not the name of another topic, `o-`; a pair is not the name of a topic, nor the id of a broker."""
    with Lab(generation="2.4") as lab:
        before = lab.story
        for call in (
            lambda: lab.reassign({("o", -1): [2]}),
            lambda: lab.elect_leaders("preferred", [("o", -1)]),
            lambda: lab.cancel_reassignment([("o", -1)]),
            lambda: lab.create_topic(("o", 1)),  # type: ignore[arg-type]
            lambda: lab.kill(lab.controller),  # type: ignore[arg-type]
            lambda: Lab(brokers=bytearray(b"x")),
        ):
            prose.refuses(BadInput, call)
        assert lab.story == before


def test_a_closed_lab_stays_as_it_is(prose: Prose) -> None:
    """No time passes for a condition. A copy would share its world: it is refused, open or closed."""
    with Lab(brokers=1) as lab:
        before = lab.story
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            prose.refuses(BadInput, copied, lab)
    prose.refuses(BadInput, lab.run_until, lambda: True)
    assert lab.story == before


@pytest.mark.parametrize(("data", "written"), [(True, b"true"), (None, b"null"), ("True", b"True"), ((1, 2), b"[1,2]")])
def test_what_is_no_text_is_written_as_json(data: object, written: bytes) -> None:
    with Lab(brokers=1) as lab:
        lab.write_znode("/n", data)
        assert lab.znodes()["/n"][0] == written


@pytest.mark.parametrize("text", ["", "1", "true", "é", '{"a":1}'])
def test_the_bytes_of_a_znode_can_be_written_back(text: str) -> None:
    """The story has them as text; bytes that are no text are refused."""
    with Lab(brokers=1) as lab:
        lab.write_znode("/n", text)
        lab.write_znode("/m", lab.znodes()["/n"][0])
        assert lab.znodes()["/m"][0] == text.encode()
        with Lab.replay(lab.story) as again:
            assert again.znodes() == lab.znodes()
        refuses(BadInput, "data cannot be", lab.write_znode, "/m", b"\xff")


def test_one_unreadable_znode_hides_nothing_else() -> None:
    """Neither from looks at the cluster nor from pictures and logs."""
    with Lab() as lab:
        until_quiet(lab.create_topic, "o", 1, 2)
        until_quiet(lab.write_znode, "/brokers/topics/n", "{}")
        until_quiet(lab.write_znode, "/admin/preferred_replica_election", "{}")
        assert [p.topic for p in lab.partitions()] == ["o"] and lab.produce("o", 0).error is None
        assert lab.trace.kafka_log("controller") and lab.player()


def test_a_command_within_the_run_is_refused(prose: Prose) -> None:
    """It would not be where the story has it. Looking is allowed, and the lab goes on as its story says."""

    def offline(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> None:
        lab.shutdown(3)

    def given(command: Callable[[], object]) -> bool:
        return lab.partitions() == () or bool(command())

    with Lab(seed=4, elections={"offline": offline}) as lab:
        until_quiet(lab.create_topic, "o", 2, 2)
        for command in (lambda: lab.kill(3), lambda: lab.run_for(1), lambda: lab.back(), lambda: lab.run_until(bool)):
            prose.refuses(BadInput, lab.run_until, partial(given, command))
        prose.refuses(PluginFailed, until_quiet, lab.kill, lab.partition("o", 0).leader)
