"""The live lab without a browser: every click makes one call, is in the script, and only what is new is sent."""

import contextlib
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from labs import until_quiet
from prose import refuses

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.lab.lab import COMMANDS
from kafka_ctl.lab.menu import MENU, THINGS, buttons, clicked, menu
from kafka_ctl.views.frames import VIEWS, film
from kafka_ctl.views.status import broker_state
from kafka_ctl.views.steps import newsworthy
from kafka_ctl.views.widget.live import Live, script
from kafka_ctl.views.widget.live_film import KEPT, LiveFilm, together
from kafka_ctl.views.widget.payload import LOGS
from kafka_ctl.views.widget.side_by_side import side_by_side

PLAN = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,2],"log_dirs":["any","any"]}]}'
GIVEN = {"rate": "1000", "value": "true",
         "topic": "more", "partitions": "2", "replication_factor": "1", "seconds": "1.5", "partition": "orders-0",
         "replicas": "3, 2, 1", "total": "9", "other": "2", "path": "/x", "data": "y", "records": "2", "acks": "1",
         "broker": "9", "directory": "/d1", "broker_id": "", "topics": "orders", "brokers": "1, 2, 3",
         "commands": "delete_topic orders\nadd_partitions orders 9", "plan": PLAN, "throttle": "1000",
         "way": "only what it receives", "when": "after it is applied"}  # fmt: skip

REFUSED = ("start", "start_empty", "set_broker_id", "set_meta", "delete_znode", "start_zookeeper")
"""What a lab in which all is well has no use for."""


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(brokers=3, seed=7) as made:
        until_quiet(made.create_topic, "orders", partitions=4, replication_factor=3)
        yield made


@pytest.fixture
def live(lab: Lab) -> Live:
    return lab.live()


def sent(live: Live) -> list[dict[str, Any]]:
    """What goes to the browser from now on."""
    messages: list[dict[str, Any]] = []
    live.send = lambda content, buffers=None: messages.append(json.loads(json.dumps(content)))
    return messages


def every_button() -> set[str]:
    return {button.do or name for thing in THINGS for name, button in buttons(thing)}


def act(live: Live, thing: str, action: str, frame: int | None = None, **given: str) -> dict[str, Any]:
    live.receive({"do": "act", "thing": thing, "action": action, "given": given, "frame": frame})
    return live.now["reply"]


def step(live: Live, words: str) -> int:
    """The first frame whose sentence has these words."""
    return next(n for n, frame in enumerate(live.film["frames"]) if words in frame["caption"])


def makes_the_same_run(lab: Lab) -> bool:
    """True if the script and the story of a lab make its records again, and its script."""
    names: dict[str, Any] = {"Lab": Lab}
    exec("\n".join(script(lab)), names)
    made, again = names["lab"], Lab.replay(lab.story)
    return made.trace.records == again.trace.records == lab.trace.records and script(made) == script(lab)


def test_a_click_is_a_call_in_the_script(lab: Lab, live: Live) -> None:
    messages = sent(live)
    assert act(live, "broker:1", "kill") == {"text": "lab.kill(1)"}
    assert live.now["script"] == [
        'lab = Lab(brokers=3, generation="2.0", seed=7)',
        'lab.create_topic("orders", partitions=4, replication_factor=3)',
        "lab.settle()",
        "lab.kill(1)",
    ]
    assert [live.live_film.things[f"broker:{broker}"][0] for broker in (1, 2, 3)] == ["down", "up", "up"]
    assert repr(live) == f"The living cluster of {lab!r}"
    message, done = messages
    assert done == {"do": "done", "reply": {"text": "lab.kill(1)"}, "form": 0}
    assert message["do"] == "grow" and len(message["frames"]) == 1
    assert message["frames"][0]["caption"].startswith("Broker 1 is killed")
    assert message["views"]["cluster"]["tracks"] and not message["redrawn"]


def test_the_script_makes_the_same_run(lab: Lab, live: Live) -> None:
    act(live, "partition:orders-1", "reassign", replicas="3 2")
    act(live, "time", "settle")
    act(live, "broker:2", "lag", partition="orders-0")
    act(live, "", "create_topic", topic="new_1", partitions="1", replication_factor="1")
    assert makes_the_same_run(lab)


def test_numbers_of_brokers_and_partitions_are_numbers_in_the_script() -> None:
    with Lab(brokers={1: "a", 2: None}, seed=7) as lab:
        lab.create_topic("7", assignment={0: [1, 2]}, config={"min.insync.replicas": 2})
        lab.reassign({"7-0": [2, 1]})
        assert script(lab)[0] == 'lab = Lab(brokers={1: "a", 2: None}, generation="2.0", seed=7)'
        assert script(lab)[1] == 'lab.create_topic("7", assignment={0: [1, 2]}, config={"min.insync.replicas": 2})'
        assert script(lab)[2] == 'lab.reassign({"7-0": [2, 1]})'
        assert makes_the_same_run(lab)


def test_a_refusal_is_one_sentence_and_nothing_happens(live: Live) -> None:
    act(live, "broker:1", "kill")
    before, reported = live.now["script"], act(live, "broker:1", "kill")
    assert reported["refused"] and reported["text"].startswith("broker 1 is down")
    assert live.now["script"] == before
    wrong = ("broker:x", "kill"), ("broker:1", "fly"), ("partition:orders-0", "reassign"), ("broker:2", "__init__")
    for thing, action in wrong:
        assert act(live, thing, action)["refused"]
    assert act(live, "", "run_for", seconds="soon")["refused"]


def test_undo_is_the_same_story_without_its_last_command(lab: Lab, live: Live) -> None:
    records = list(lab.trace.records)
    act(live, "broker:2", "kill")
    act(live, "time", "settle")
    live.receive({"do": "undo"})
    live.receive({"do": "undo"})
    assert lab.trace.records == records and lab.brokers[2].state == "running"
    assert live.now["reply"] == {"text": "undone: lab.kill(2)"}
    assert len(live.film["frames"]) == live.index + 1
    live.set_state({"index": 999})  # the page can be late, and name a step of the run that was undone
    assert live.index == len(live.film["frames"]) - 1
    for _ in range(3):
        live.receive({"do": "undo"})
    assert live.now["reply"]["refused"]


def test_a_command_acts_at_the_moment_that_is_shown(lab: Lab, live: Live) -> None:
    """In the middle of a command: the lab is that future from then on, and plays on from there."""
    act(live, "broker:1", "kill")
    act(live, "time", "settle")
    later, end = live.film, lab.now
    shown = step(live, "Elections (offline)")
    messages = sent(live)
    assert act(live, "broker:2", "kill", shown) == {"text": "lab.kill(2)"}
    *_, stopped, last = live.now["script"]
    assert stopped.startswith("lab = lab.fork(at=") and last == "lab.kill(2)"
    assert lab.brokers[2].state == "down" and lab.now < end
    assert live.index == shown and messages[:-1] == [{"do": "play", "from": shown + 1}]
    assert messages[-1] == {"do": "done", "reply": {"text": "lab.kill(2)"}, "form": 0}
    assert live.film["frames"][: shown + 1] == later["frames"][: shown + 1]
    assert live.film["frames"][shown + 1]["caption"].startswith("Broker 2 is killed")
    assert makes_the_same_run(lab)
    assert live.now["futures"] == [f"lab.kill(1), up to {end:.4f} s"]


def test_a_command_takes_the_place_of_the_one_given_at_its_moment(lab: Lab, live: Live) -> None:
    act(live, "broker:1", "kill")
    act(live, "broker:2", "kill", step(live, "Broker 1 is killed") - 1)
    assert live.now["script"][2:] == ["lab.settle()", "lab.kill(2)"]
    act(live, "broker:3", "kill", 0)
    assert lab.brokers[3].state == "down" and makes_the_same_run(lab)
    assert [kept.split(",")[0] for kept in live.now["futures"]] == ["lab.kill(1)", "lab.kill(2)"]


def test_a_command_acts_while_the_clock_runs_between_two_steps(lab: Lab, live: Live) -> None:
    """At the time that is shown, and never after the next step."""
    act(live, "broker:1", "kill")
    act(live, "time", "settle")
    act_at = {"do": "act", "thing": "broker:3", "action": "kill", "frame": step(live, "Broker 1 is killed")}
    live.receive({**act_at, "since": 1500})
    assert live.now["script"][3:] == ["lab.kill(1)", "lab.run_for(1.5)", "lab.kill(3)"]
    assert makes_the_same_run(lab)
    live.receive({"do": "return", "future": 0})
    live.receive({**act_at, "since": 9999})
    assert lab.now <= live.film["frames"][act_at["frame"]]["time"] / 1000 + 5.001


def test_a_kept_future_is_returned_to(lab: Lab, live: Live) -> None:
    """The one that is left is kept in its place; undo goes back in what is shown."""
    act(live, "broker:1", "kill")
    act(live, "time", "settle")
    first, frames = list(lab.trace.records), [frame["caption"] for frame in live.film["frames"]]
    shown = step(live, "session expires")
    act(live, "broker:2", "kill", shown)
    second = list(lab.trace.records)
    live.receive({"do": "return", "future": 0})
    assert lab.trace.records == first and [frame["caption"] for frame in live.film["frames"]] == frames
    assert live.index == shown, "nothing jumps"
    live.receive({"do": "return", "future": 0})
    assert lab.trace.records == second
    live.receive({"do": "undo"})
    assert lab.trace.records == first[: len(lab.trace)] and live.index == shown
    live.receive({"do": "return", "future": 3})
    assert live.now["reply"]["refused"] and len(live.now["futures"]) == 1


def test_where_no_command_was_given_there_is_none_to_name_or_undo() -> None:
    with Lab(brokers=3) as lab:
        lab.back()
        live = lab.live()
        assert not live.now["undo"]
        act(live, "broker:1", "kill", 5)
        assert live.now["futures"][0].startswith("no command") and live.now["undo"]


def test_each_step_knows_the_things_that_there_were(lab: Lab, live: Live) -> None:
    """Their states decide what is offered at a moment; its forms begin with the replicas that there were."""
    was = ", ".join(map(str, lab.partition("orders", 0).replicas))
    act(live, "partition:orders-0", "reassign", replicas="1, 2")
    act(live, "time", "settle")
    killed = len(live.film["frames"])
    for broker in (1, 2):
        act(live, f"broker:{broker}", "kill")
        act(live, "time", "settle")
    frames = live.film["frames"]
    assert together(frames) == live.live_film.things
    assert together(frames)["partition:orders-0"] == ["leaderless", "1, 2"]
    assert together(frames[:killed])["broker:1"] == ["up", ""] and together(frames)["broker:1"] == ["down", ""]
    assert "partition:orders-0" not in together(frames[:1])
    assert ["", was] in [frame.get("things", {}).get("partition:orders-0") for frame in frames[:killed]]


@pytest.mark.parametrize(
    "fault",
    "pause 1 30, disconnect 1 2, disconnect 1 zookeeper, delay 1 2 1, lose 1 2, slow 1 2, lag 2 orders 0".split(", "),
)
def test_heal_is_offered_while_there_is_something_to_heal(lab: Lab, live: Live, fault: str) -> None:
    """At the menu of the cluster, which is the state of the thing without a name."""
    [heal] = [button for button in menu(lab)[""] if button["do"] == "heal"]
    states = [heal["when"] == live.live_film.things[""][0]]
    for command in (fault, "heal"):
        lab.do(command)
        live.refresh()
        states.append(heal["when"] == live.live_film.things[""][0])
    assert states == [False, True, False]


def test_a_closed_lab_stays_closed(lab: Lab, live: Live) -> None:
    """No click opens it again, neither a command nor undo nor a return to a kept future."""
    act(live, "broker:1", "kill", 5)
    assert live.now["futures"] and live.now["undo"]
    lab.close()
    story = lab.story
    assert act(live, "broker:1", "kill", 5)["refused"]
    for asked in ("undo", "return"):
        live.receive({"do": asked, "future": 0})
        reply = live.now["reply"]
        assert reply["refused"] and asked in reply["text"] and "closed" in reply["text"]
    refuses(BadInput, "closed", lab.back)
    assert lab.closed and lab.story == story and not live.now["undo"] and len(live.futures) == 1


def test_what_is_refused_in_the_past_changes_nothing(lab: Lab, live: Live) -> None:
    act(live, "broker:1", "kill")
    act(live, "time", "settle")
    before = live.film, live.index, lab.trace, lab.story
    assert act(live, "broker:1", "start", 12)["refused"]
    assert (live.film, live.index, lab.trace, lab.story) == before and live.now["futures"] == []
    act(live, "time", "settle", len(live.film["frames"]) - 4)
    assert lab.trace.records == before[2].records and live.now["futures"] == [], "the same run is no other future"


def test_time_that_runs_by_itself_is_in_the_script(lab: Lab, live: Live) -> None:
    """Virtual seconds to real ones; a crash comes when it comes, and all pieces between two clicks are one call."""

    def run(passed: int, speed: float | None, frame: int | None = None) -> float:
        before = lab.now
        live.receive({"do": "run", "passed": passed, "speed": speed, "frame": frame})
        return round(lab.now - before, 3)

    assert [run(200, 1), run(210, 1), run(203, 10.0), run(5000, 1)] == [0.2, 0.21, 2.03, 1], "a late page makes no jump"
    act(live, "broker:2", "kill")
    assert [run(200, 10) for _ in range(4)] == [2, 2, 2, 2]
    assert live.now["script"][3:] == ["lab.run_for(3.44)", "lab.kill(2)", "lab.run_for(8.0)"]
    assert "Broker 2's ZooKeeper session expires" in "".join(frame["caption"] for frame in live.film["frames"])
    assert makes_the_same_run(lab)
    live.receive({"do": "undo"})
    assert live.now["script"][3:] == ["lab.run_for(3.44)", "lab.kill(2)"]
    messages = sent(live)
    run(1, 3)
    assert live.now["reply"]["refused"] and messages[-1] == {"do": "ran", "refused": True}
    run(200, 1)
    assert live.now["reply"]["refused"], "the refusal stays readable"
    assert messages[-1] == {"do": "ran", "refused": False}


def test_time_that_runs_by_itself_ends_where_a_function_of_ones_own_fails() -> None:
    """In the second piece: the story has all pieces as one call that was refused."""

    def fails(*_: object) -> None:
        raise ValueError("no")

    with Lab(brokers=3, elections={"offline": fails}) as lab:
        until_quiet(lab.create_topic, "t", partitions=1, replication_factor=3)
        lab.kill(lab.partition("t", 0).leader)
        live = lab.live()
        messages = sent(live)
        while not (messages and messages[-1].get("refused")):
            live.receive({"do": "run", "passed": 1000, "speed": 1})
        assert lab.commands[-1].name == "refused" and lab.commands[-1].args[1] > 1
        assert Lab.replay(lab.story, elections={"offline": fails}).trace.records == lab.trace.records
        act(live, "broker:1", "kill", 5)
        assert live.now["futures"][0].startswith("lab.kill(") and "refused" not in live.now["futures"][0]


def test_silence_is_skipped(lab: Lab) -> None:
    """From step to step; where all is quiet time stands still. What runs ahead of the picture is not kept."""
    live, skip = lab.live(), {"do": "run", "passed": 1, "speed": None, "frame": None}
    act(live, "broker:2", "kill")
    while lab.quiet is False:
        before = len(live.film["frames"])
        live.receive(skip)
        assert len(live.film["frames"]) > before or lab.quiet
    begun = lab.now
    live.receive(skip)
    assert lab.now == begun and lab.brokers[1].state == "running" and makes_the_same_run(lab)
    given = {"do": "act", "thing": "broker:3", "action": "kill", "given": {}, "frame": live.index + 1, "live": True}
    live.receive(given)
    assert live.now["script"][-1] == "lab.kill(3)" and live.now["futures"] == []


def test_on_real_time_a_command_acts_at_the_end() -> None:
    with Lab(brokers=1, wire=True) as lab:
        live, records = lab.live(), list(lab.trace.records)
        assert not live.now["travels"]
        act(live, "", "create_topic", 1, topic="a", partitions="1", replication_factor="1")
        assert lab.trace.records[: len(records)] == records and live.now["futures"] == []
        live.receive({"do": "run", "passed": 10, "speed": 1})
        assert "by itself already" in live.now["reply"]["text"]


def test_it_says_that_nobody_acts(lab: Lab) -> None:
    """A broker that somebody has written into `/controller` has no crown, and a gauge says why."""
    live, controller = lab.live(), lab.controller
    assert controller is not None
    other = controller.id % 3 + 1
    data = json.dumps({"version": 1, "brokerid": other, "timestamp": "0"})
    act(live, "zookeeper", "write_znode", path="/controller", data=data)
    gauge = next(frame["gauges"] for frame in reversed(live.film["frames"]) if "gauges" in frame)[2]
    assert gauge == [f"controller: /controller names {other}", "no", "bad"]
    act(live, "time", "settle")
    assert f"No controller: /controller names broker {other}" in live.film["frames"][-1]["summary"]
    assert step(live, f"it names broker {other}")
    model = live.live_film.supergraph.now
    assert model.controller is None and broker_state(model, other) == ("", "up")
    until_quiet(lab.delete_controller)
    live.refresh()
    assert lab.controller is not None and model.controller == lab.controller.id
    assert "names" not in live.now["title"]


def test_a_fork_is_another_future(lab: Lab, live: Live) -> None:
    live.receive({"do": "fork", "frame": None})
    assert live.other is not None and live.beside == live.other.model_id
    assert live.now["compared"]["rows"] == []
    act(live.other, "broker:3", "kill")
    rows = {what: (left, right) for what, left, right in live.now["compared"]["rows"]}
    ended, killed = rows["first different fact"]
    assert ended == "has ended" and killed.startswith("0.0896 s: Broker 3 is killed")
    assert live.other.now["script"][-1] == "lab_2.kill(3)"
    assert lab.brokers[3].state == "running"
    assert act(live, "broker:1", "start")["refused"]
    act(live.other, "broker:1", "kill")
    assert live.now["reply"]["refused"], "it is still there to be read"
    live.receive({"do": "fork", "frame": 12})
    assert len(live.other.lab.trace) < len(lab.trace)
    live.receive({"do": "close"})
    assert live.beside == "" and live.other is None


def test_calls_made_elsewhere_are_shown_too(lab: Lab, live: Live) -> None:
    lab.kill(3)
    live.refresh()
    assert live.now["script"][-1] == "lab.kill(3)"
    assert live.film["frames"][-1]["caption"].startswith("Broker 3 is killed")
    assert lab.live() is live


@pytest.mark.parametrize("view", VIEWS)
def test_a_grown_film_shows_what_a_film_of_all_shows(lab: Lab, view: str) -> None:
    """Every part has the look it has in a film made at once."""
    live_film = LiveFilm(lab.trace, "2.0")
    live_film.film_data([view])
    for command in ("kill 1", "settle", "start 1", "settle", "create_topic b", "settle"):
        lab.do(command)
        live_film.read()
        if live_film.grow(view) is None:
            live_film.show(view)
    grown = live_film.builders[view][0].film
    assert len(grown) == len(live_film.frames)
    filmed = film(lab.trace, view, is_relevant=newsworthy, limit=10_000, generation="2.0")
    end = {name: look._replace(at=None) if "gone" in look.styles else look for name, look in grown.looks(-1).items()}
    for name, look in filmed.looks(-1).items():
        if name in end and "hot" not in look.styles + end[name].styles and view in ("cluster", "partition", "replica"):
            assert end[name] == (look._replace(at=None) if "gone" in look.styles else look), name


def test_a_long_run_forgets_its_beginning(lab: Lab) -> None:
    live_film = LiveFilm(lab.trace, "2.0")
    live_film.film_data(["cluster"])
    while not live_film.too_long:
        until_quiet(lab.bounce, 1)
        live_film.read()
    live_film.forget()
    assert together(live_film.frames) == live_film.things
    reported = live_film.film_data(["cluster"])
    assert len(reported["frames"]) == KEPT // 2 + 1 == len(reported["views"][0]["tokens"])
    assert all(f["cause"] is None or f["cause"] < n for n, f in enumerate(reported["frames"]))
    lab.kill(2)
    assert live_film.read()[-1]["caption"].startswith("Broker 2 is killed")
    again = LiveFilm(lab.fork().trace, "2.0", before=live_film)
    for what in ("caption", *LOGS.values()):
        assert [frame[what] for frame in again.frames[1:]] == [frame[what] for frame in live_film.frames[1:]]


def test_a_picture_that_has_forgotten_plays_what_is_new(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = sent(live)
    monkeypatch.setattr("kafka_ctl.views.widget.live_film.KEPT", len(live.live_film.steps))
    act(live, "broker:1", "kill")
    assert live.film["frames"][live.index]["caption"].startswith("Broker 1 is killed")
    assert messages == [{"do": "play", "from": live.index}, {"do": "done", "reply": {"text": "lab.kill(1)"}, "form": 0}]


def test_every_button_is_a_call_the_lab_understands(lab: Lab) -> None:
    """Each action, with its fields filled in, is either carried out or refused in a sentence."""
    offered = menu(lab)
    only_in_24 = {"cancel_reassignment", "list_reassignments", "elect_leaders"}
    assert every_button() - only_in_24 == {action["do"] for actions in offered.values() for action in actions}
    things = {"broker": "broker:1", "partition": "partition:orders-0", "time": ""}
    for kind, actions in offered.items():
        for action in actions:
            moved = {"broker": "3"} if kind == "partition" else {}  # to another disk
            wanted = clicked(things.get(kind, kind), action["do"], GIVEN | moved)
            with Lab(brokers=3, seed=7) as fresh:
                until_quiet(fresh.create_topic, "orders", partitions=4, replication_factor=3)
                refused = pytest.raises(KafkaCtlError) if action["do"] in REFUSED else contextlib.nullcontext()
                with refused:
                    getattr(fresh, wanted.name)(*wanted.args, **wanted.kwargs)


def test_no_field_need_be_filled_in(lab: Lab) -> None:
    """A click without its fields is a call, or refused in a sentence."""
    things = {"broker": "broker:1", "partition": "partition:orders-0", "time": ""}
    for kind, actions in menu(lab).items():
        for action in actions:
            with contextlib.suppress(KafkaCtlError):
                clicked(things.get(kind, kind), action["do"], {})
    assert clicked("", "at_once", {}).args == ([],)


def test_an_unclean_election_is_clicked_in_2_4() -> None:
    for generation, offered in (("0.10", False), ("2.0", False), ("2.4", True)):
        with Lab(brokers=1, generation=generation) as lab:
            assert ("elect_leaders" in [action["do"] for action in menu(lab)["partition"]]) is offered
            wanted = clicked("partition:orders-0", "elect_leaders", {})
    assert (wanted.name, wanted.args) == ("elect_leaders", ("unclean", [("orders", 0)]))


def test_every_command_has_its_row() -> None:
    """And every row its command: the source of a command begins with nothing but a word above its `def`."""
    assert set(MENU) == set(COMMANDS)
    assert {inspect.getsource(getattr(Lab, name)).split(" def ")[0].strip() for name in COMMANDS} == {"@command"}


def test_every_command_is_a_click_away() -> None:
    """All but `order`: its numbers come from `kafka-ctl explore`, and nobody sees which events are pending."""
    assert {name for thing in THINGS for name, _ in buttons(thing)} == set(COMMANDS) - {"order"}


def test_the_reassignment_tool_is_clicked(lab: Lab, live: Live) -> None:
    """What it proposes is the plan that is offered next; its words are shown; a copy goes to another disk."""
    reported = act(live, "tool", "generate_reassignment", topics="orders", brokers="1, 2")
    assert "replication factor" in reported["text"] and reported["refused"]
    reported = act(live, "tool", "generate_reassignment", topics="orders", brokers="1, 2, 3")
    assert reported["text"] == live.now["plan"]
    reported = act(live, "tool", "execute_reassignment", plan=live.now["plan"], throttle="1000")
    assert reported["text"].endswith("Successfully started reassignment of partitions.")
    act(live, "time", "settle")
    reported = act(live, "tool", "verify_reassignment", plan=live.now["plan"])
    assert "Reassignment of partition orders-0 completed successfully" in reported["text"]
    first = lab.partition("orders", 0).replicas
    given = {"replicas": ", ".join(map(str, first)), "broker": "2", "directory": "/d1"}
    before = {(at.partition, at.broker): at.path for at in lab.log_dirs()}
    act(live, "partition:orders-0", "execute_reassignment", **given)
    act(live, "time", "settle")
    assert {(at.partition, at.broker): at.path for at in lab.log_dirs()} == before | {(0, 2): "/d1"}
    assert makes_the_same_run(lab)


def test_a_broker_that_is_down_gets_another_identity(live: Live) -> None:
    assert act(live, "broker:1", "set_broker_id", broker_id="5")["refused"]
    act(live, "broker:1", "kill")
    assert act(live, "broker:1", "set_broker_id", broker_id="")["text"] == "lab.set_broker_id(1, None)"
    reported = act(live, "broker:1", "set_meta", directory="/d1", broker_id="", cluster="")
    assert reported["text"] == 'lab.set_meta(1, "/d1", None)'
    reported = act(live, "broker:1", "set_meta", directory="/d0", broker_id="1", cluster="other")
    assert reported["text"] == 'lab.set_meta(1, "/d0", 1, "other")'
    assert act(live, "", "add_broker", broker="", rack="r")["text"] == 'lab.add_broker(None, rack="r")'


def test_a_choice_becomes_an_argument(lab: Lab) -> None:
    """One way or both, before or after; nothing but what is offered."""
    calls = {
        ("disconnect", "way", "only what it sends"): "lab.disconnect(1, 2, one_way=True)",
        ("disconnect", "way", "only what it receives"): "lab.disconnect(2, 1, one_way=True)",
        ("disconnect", "way", ""): "lab.disconnect(1, 2)",
        ("lose", "when", "after it is applied"): "lab.lose(1, 2, applied=True)",
    }
    for (action, field, value), reported in calls.items():
        assert act(lab.live(), "broker:1", action, **{"other": "2", field: value})["text"] == reported
    assert act(lab.live(), "broker:1", "disconnect", other="2", way="sideways")["refused"]
    lab.heal()
    live = lab.live()
    reported = act(live, "partition:orders-0", "produce", records="2", acks="1")
    assert live.now["script"][-1] == 'lab.produce("orders", 0, records=2, acks=1)'
    assert reported["answer"] and reported["text"].startswith("records 1,2 by broker 1")


def test_the_page_takes_nothing_back(live: Live) -> None:
    """It may send a state that is older than what Python has written since."""
    old = live.get_state()
    act(live, "broker:1", "kill")
    new = {name: getattr(live, name) for name in ("film", "menu", "now", "beside")}
    live.set_state({**old, "index": 3})
    assert {name: getattr(live, name) for name in new} == new
    assert live.index == 3


def test_a_quiet_cluster_says_so(live: Live) -> None:
    """Where a click changes nothing, its reply says why."""
    for action in ("step", "settle"):
        assert act(live, "time", action)["text"] == f"lab.{action}(): nothing is under way"
    assert act(live, "time", "run_until_violation")["text"] == "lab.run_until_violation(): no violation"


def test_only_a_replica_moves_to_another_disk(lab: Lab) -> None:
    live, first = lab.live(), lab.partition("orders", 0).replicas
    given = {"replicas": ", ".join(map(str, first)), "broker": "9", "directory": "/d1"}
    refused = act(live, "partition:orders-0", "execute_reassignment", **given)
    assert refused["refused"] and "replica of orders-0 on broker 9" in refused["text"]


def test_a_refused_command_leaves_a_script_to_read(lab: Lab, live: Live) -> None:
    assert act(live, "zookeeper", "delete_znode", path="/nothing")["refused"]
    act(live, "time", "settle")
    text = "\n".join(live.now["script"])
    assert text.startswith('lab = Lab.replay("""\nlab ') and "\nrefused delete_znode /nothing\n" in text
    assert makes_the_same_run(lab)


def test_what_shows_without_a_widget(lab: Lab) -> None:
    bundle, _ = lab._repr_mimebundle_()
    assert {"image/svg+xml", "text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= bundle.keys()
    assert bundle["text/html"].startswith("<img alt=")
    lab.close()
    assert "application/vnd.jupyter.widget-view+json" not in lab._repr_mimebundle_()[0]


def test_a_why_is_answered(live: Live) -> None:
    messages = sent(live)
    act(live, "broker:1", "kill")
    act(live, "time", "settle")
    frame = next(n for n, f in enumerate(live.film["frames"]) if f["kind"] == "election")
    live.receive({"do": "why", "frame": frame})
    reported, done = messages[-2:]
    assert done == {"do": "done", "reply": {}, "form": 0}
    assert reported["do"] == "why" and reported["frame"] == frame
    assert reported["why"]["rule"] and any(executed for _, _, executed in reported["why"]["sources"][0]["lines"])


def test_a_broken_rule_is_shown_with_its_first_step(lab: Lab, live: Live) -> None:
    assert live.now["violations"] == []
    for _ in range(2):
        lab.trace.add("checker", "violation", "leader-in-isr", detail="broker 9 leads, but is not in the ISR")
        live.refresh()
    [broken] = live.now["violations"]
    assert "broker 9 leads" in broken["text"]
    assert live.film["frames"][broken["frame"]]["kind"] == "violation"
    assert live.film["frames"][broken["frame"] - 1]["kind"] != "violation"


ODD: list[Any] = [
    None, 3, "undo", [], {}, {"do": None}, {"do": []}, {"do": "fly"}, {"do": "act"},
    {"do": "act", "thing": 3, "action": "kill"}, {"do": "act", "thing": "broker:1"},
    {"do": "act", "thing": "broker:1", "action": []},
    {"do": "act", "thing": "broker:x", "action": "kill"},
    {"do": "act", "thing": "broker:1", "action": "kill", "given": 3},
    {"do": "act", "thing": "broker:1", "action": "kill", "given": {"x": 3}},
    {"do": "act", "thing": "partition:", "action": "lag", "given": {}},
    {"do": "act", "thing": "time", "action": "run_for", "given": {"seconds": "nan"}},
    {"do": "act", "thing": "time", "action": "run_for", "given": {"seconds": "inf"}},
    {"do": "act", "thing": "time", "action": "run_for", "given": {"seconds": "9" * 10_000}},
    {"do": "act", "thing": "", "action": "create_topic", "given": {"topic": "x", "partitions": "9" * 10_000}},
    {"do": "act", "thing": "tool", "action": "execute_reassignment", "given": {"plan": "[" * 100}},
    {"do": "fork", "frame": "x"}, {"do": "fork", "frame": -1}, {"do": "fork", "frame": 1e9},
    {"do": "fork", "frame": True}, {"do": "return"}, {"do": "return", "future": 0}, {"do": "run"},
    {"do": "run", "passed": 10, "speed": "fast"}, {"do": "run", "passed": -1, "speed": 1},
    {"do": "why"}, {"do": "why", "frame": None}, {"do": "why", "frame": 10**9},
    {"do": "why", "frame": -1},
    {"do": "undo"},
]  # fmt: skip


@pytest.mark.parametrize("content", ODD)
def test_a_message_that_cannot_be_understood_is_refused_in_a_sentence(content: Any) -> None:
    """It changes nothing, and no error reaches the kernel."""
    with Lab(brokers=2, seed=7) as lab:
        live, text = lab.live(), lab.story
        live.receive(content)
        reply = live.now["reply"]
        assert reply["refused"] and 10 < len(reply["text"]) < 1500
        assert lab.story in (text, f"{text}refused execute_reassignment {'[' * 100}\n")


WHYS: list[Any] = [
    None, 3, {}, {"do": "why"}, {"do": "why", "frame": "1", "side": 0}, {"do": "why", "frame": 10**9, "side": 0},
    {"do": "why", "frame": -1, "side": -1},
]  # fmt: skip


@pytest.mark.parametrize("content", WHYS)
def test_players_refuse_what_they_cannot_understand(content: Any, lab: Lab) -> None:
    """With a message that the page leaves alone."""
    with lab.fork() as fork:
        for shown in (lab.player(), side_by_side(lab, fork)):
            messages: list[dict[str, Any]] = []
            shown.send = lambda content, buffers=None, to=messages: to.append(content)
            shown._handle_custom_msg(content, [])
            assert [message["do"] for message in messages] == ["refused"]
