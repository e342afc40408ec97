"""What is watched as one step, and that pictures show what the records say."""

from collections.abc import Callable, Iterable

import pytest
from filmed import every_kind, failover, sixty
from labs import play, until_quiet
from prose import Prose, refuses

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.trace import Record, Trace
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.frames import VIEWS, Film, film, pill_width, relevant_to
from kafka_ctl.views.steps import Supergraph, newsworthy, steps, supergraph
from kafka_ctl.views.time.event_queue import context, slot_label


def test_the_model_folded_from_records_is_the_lab() -> None:
    """Leaders, ISRs, states, the controller, the brokers and the znodes, after a run with failures."""
    with Lab(brokers=3, seed=3) as lab:
        until_quiet(lab.create_topic, "orders", partitions=5, replication_factor=2)
        for broker in (1, 2):
            until_quiet(lab.kill, broker)
            model = ClusterModel().apply_all(lab.trace)
            for seen in lab.partitions():
                reported = model.partitions[seen.topic, seen.partition]
                for what in ("leader", "isr", "leader_epoch", "zk_version", "state"):
                    assert getattr(reported, what) == getattr(seen, what), what
            assert {r: model.replicas[r.topic, r.partition, r.broker] for r in lab.replicas()} == {
                r: r.state for r in lab.replicas()
            }
            assert (model.controller, model.controller_epoch) == (lab.controller.id, lab.controller.epoch)
            assert {p: (z.data.encode(), z.version) for p, z in model.znodes.items()} == {
                p: (data, version) for p, (data, version, _) in lab.znodes().items()
            }
            up = {b.id for b in model.brokers.values() if b.alive}
            assert up == {b for b, seen in lab.brokers.items() if seen.state == "running"}


def test_every_newsworthy_record_is_in_one_step() -> None:
    trace = failover()
    reported = [seq for step in steps(list(trace)) for seq in step.seqs]
    assert sorted(reported) == [r.seq for r in trace if newsworthy(r)]
    assert len(reported) == len(set(reported))


def test_steps_of_a_batch_are_one() -> None:
    """Four partitions that come online together are one step; those of another time are another."""
    records = [
        Record(i, 100.0 if i < 4 else 900.0, "controller-1", "partition", "elect", "a", i, source="NewPartition",
               target="OnlinePartition", leader=1, isr=(1,))
        for i in range(5)
    ]  # fmt: skip
    assert [step.seqs for step in steps(records)] == [(0, 1, 2, 3), (4,)]


def test_a_step_knows_its_cause() -> None:
    """The nearest step up the chain of causes, also across records that make no step."""
    records = [
        Record(0, 0.0, "fault", "fault", "kill", broker=1),
        Record(1, 6000.0, "zookeeper", "zk", "expired", cause=0, detail="session=0x1 of broker-1"),
        Record(2, 6000.0, "controller-2", "zk", "get", path="/controller", cause=1),
        Record(3, 6001.0, "controller-2", "controller", "elected", broker=2, cause=2),
    ]
    assert [step.cause for step in steps(records)] == [None, 0, 1]
    assert [frame.cause for frame in film(records).frames] == [None, None, 1, 2]


@pytest.mark.parametrize("limit", [1, 5, 30])
def test_a_long_trace_is_reported_in_fewer_steps(limit: int) -> None:
    """Nothing is left out; neighbours are told together, and the last picture is the same."""
    trace = failover()
    short, whole = film(trace, limit=limit), film(trace)
    assert len(short) <= limit + 1 < len(whole)
    last, full = short.looks(-1), whole.looks(-1)
    calm = {name: look for name, look in full.items() if "hot" not in look.styles}
    assert {n: last[n].glyph for n in calm} == {n: look.glyph for n, look in calm.items()}
    assert sorted(s for f in short.frames for s in f.seqs) == sorted(s for f in whole.frames for s in f.seqs)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_jumps(view: str) -> None:
    """Every look belongs to a part of the one scene, and the same records give the same film."""
    made = film(failover(), view)
    assert set(made.tracks) <= {*made.scene.parts, "camera"}
    again = film(list(failover()), view)
    assert again.tracks == made.tracks
    assert again.frames == made.frames
    assert again.scene.parts == made.scene.parts


@pytest.mark.parametrize("view", VIEWS)
def test_every_frame_is_reported_in_words(view: str) -> None:
    made = film(failover(), view)
    assert all(frame.caption.endswith(".") and len(frame.alt) > len(frame.caption) for frame in made.frames)
    assert made.text().count("\n") == len(made)


def test_the_cluster_shows_who_leads() -> None:
    """After each step a partition's star is on the chip of its leader, and nowhere without one."""
    trace = list(failover())
    made = film(trace)
    model, place = ClusterModel(), 0
    for frame, step in zip(made.frames[1:], steps(trace), strict=True):
        model.apply_all(trace[place : step.upto])
        place = step.upto
        looks = made.looks(frame.index)
        for (topic, partition), seen in model.partitions.items():
            star = looks[f"star:{topic}-{partition}"]
            if seen.leader is None or seen.leader < 0:
                assert "gone" in star.styles
                continue
            chip = made.scene.parts[f"replica:{topic}-{partition}@{seen.leader}"].box
            assert star.at is not None and "gone" not in star.styles
            assert chip.x < star.at[0] < chip.x + chip.width and chip.y < star.at[1] < chip.y + chip.height


def test_a_dead_broker_that_zookeeper_still_believes_in() -> None:
    """Between the kill and the end of the session the picture says both."""
    made = film(failover())
    killed = next(f for f in made.frames if f.kind == "fault")
    states = [look.texts[1] for name, look in made.looks(killed.index).items() if name.startswith("head:")]
    assert next(state for state in states if state != "up") == "dead, still registered"


def test_requests_travel_from_the_controller() -> None:
    made = film(failover())
    sent = next(f for f in made.frames if "sends LeaderAndIsr to brokers 1, 2 and 3" in f.caption)
    assert [token.label for token in sent.picture.tokens] == ["LeaderAndIsr (4)"] * 3


@pytest.mark.parametrize("view", ["partition", "replica"])
def test_what_moves_leaves_its_arrow_in_sight(view: str) -> None:
    """Its label stands where the name of its move was, beside the arrow."""
    made = film(failover(), view)
    arrows = {part.line: part.texts[0] for name, part in made.scene.parts.items() if name.startswith("move:")}
    moved = [token for frame in made.frames for token in frame.picture.tokens]
    assert len(moved) >= 4
    for token in moved:
        name, half = arrows[token.line], pill_width(token.label) / 2
        assert token.place[1] == name.y - 6
        left = token.place[0] + made.scene.offset[0] - half
        assert 0 <= left <= made.scene.width - 2 * half, "none of it is cut off"
        cut = name.x + made.scene.offset[0] + half > made.scene.width - 2
        assert token.place[0] == name.x or (cut and token.place[0] < name.x), "else it stands where the name was"
        assert token.label.startswith(f"{name.text}: ")


def test_machines_count_their_members_and_show_what_is_legal() -> None:
    made = film(failover(), "partition")
    online = next(f for f in made.frames if "New → Online" in f.caption)
    looks = made.looks(online.index)
    assert looks["state:OnlinePartition"].texts[:2] == ("Online", "4")
    assert "taken" in looks["move:NewPartition>OnlinePartition"].styles
    assert "legal" in looks["move:OnlinePartition>OfflinePartition"].styles
    assert "legal" not in looks["move:OfflinePartition>OnlinePartition"].styles


def test_the_tree_shows_what_is_there() -> None:
    made = film(failover(), "zookeeper")
    gone = next(f for f in made.frames if "there is no controller now" in f.caption)
    assert "faded" in made.looks(gone.index)["znode:/controller"].styles
    assert "zoo ephemeral" in made.looks(gone.index - 2)["znode:/controller"].styles


def test_part_of_a_trace_can_be_filmed(prose: Prose) -> None:
    """Earlier records set the scene but make no frames."""
    trace = failover()
    kill = next(r.seq for r in trace if r.kind == "fault")
    made = film(trace, start=kill)
    prose(made.frames[0].caption)
    assert made.frames[1].seqs == (kill,)
    assert "gone" not in made.looks(0)["star:orders-0"].styles
    assert len(film(trace, start=len(trace))) == 1
    prose.refuses(BadInput, film, trace, start=10**9)


def test_views_can_keep_step() -> None:
    names = ("cluster", "partition", "zookeeper")
    films = [film(failover(), name, is_relevant=relevant_to(names)) for name in names]
    assert len({tuple(f.seqs for f in made.frames) for made in films}) == 1


def test_many_partitions_are_counted() -> None:
    with Lab(brokers=4) as lab:
        until_quiet(lab.create_topic, "orders", partitions=61, replication_factor=3)
        made = film(lab.trace)
    assert not [name for name in made.scene.parts if name.startswith("replica:")]
    leads = [made.looks(-1)[f"count:{b}:leader"].texts[0] for b in (1, 2, 3, 4)]
    assert sum(int(text.split()[1]) for text in leads) == 61


@pytest.mark.parametrize("view", VIEWS)
def test_every_step_of_sixty_partitions_has_a_frame(view: str) -> None:
    """How long two hundred of them take is measured by `python -m benchmarks views`."""
    assert view in ("partition", "replica") or len(film(sixty(), view)) > 200


def test_wrong_calls_are_reported(prose: Prose) -> None:
    prose.refuses(UnknownName, film, failover(), "clutser")
    refuses(UnknownName, "unknown view", relevant_to, ["cluster", "x"])
    refuses(BadInput, "no records", film, Trace())
    refuses(BadInput, "limit", film, failover(), limit=0)


def test_a_union_keeps_what_has_gone() -> None:
    records = [
        Record(0, 0.0, "broker-1", "zk", "create", path="/brokers/ids/1", target="ephemeral", detail="{}"),
        Record(1, 1.0, "controller-1", "partition", "assign", "a", 0, target="NewPartition", replicas=(1, 2)),
        Record(2, 2.0, "controller-1", "partition", "assign", "a", 0, target="NewPartition", replicas=(2, 3)),
        Record(3, 3.0, "zookeeper", "zk", "delete", path="/brokers/ids/1"),
    ]
    whole = supergraph(records)
    assert sorted(whole.brokers) == [1, 2, 3]
    assert whole.members(("a", 0)) == (1, 2, 3)
    assert list(whole.znodes) == ["/brokers/ids/1"]


@pytest.mark.parametrize("run", [failover, sixty, every_kind], ids=["failover", "sixty", "kinds"])
def test_a_layout_needs_less_than_a_live_cluster_keeps(run: Callable[[], Iterable[Record]]) -> None:
    """A film's supergraph folds fewer records; a layout from either is the same."""
    records = run()
    few, all_of_them = supergraph(records), Supergraph().add(records).model()
    for things in ("brokers", "replicas", "znodes"):
        assert sorted(getattr(few, things)) == sorted(getattr(all_of_them, things))
    held = [{key: seen.replicas for key, seen in one.partitions.items()} for one in (few, all_of_them)]
    assert held[0] == held[1]


@pytest.mark.parametrize("view", VIEWS)
def test_every_kind_of_record_can_be_drawn(view: str) -> None:
    made: Film = film(every_kind(), view, is_relevant=lambda record: True)
    assert len(made) > 15


@pytest.mark.parametrize("again", [False, True], ids=["down", "started-again"])
def test_a_controller_whose_process_has_ended_is_none(again: bool) -> None:
    """Though its znode stands, as long as its session does; the words below the picture agree with the box."""
    with Lab(brokers=3, seed=7) as lab:
        lab.settle()
        first = lab.controller.id
        play(lab, f"kill {first}; start {first}; run_for 1" if again else f"kill {first}; run_for 1")
        made = film(lab.trace)
    assert made.frames[-1].picture.summary.startswith(f"No controller: /controller names broker {first}, ")


def test_a_partition_without_a_leader_yet_is_named() -> None:
    """Before its first election; once its topic is to be deleted, nobody waits for a leader."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "create_topic orders partitions=2 replication_factor=2; settle; delete_topic orders; settle")
        summaries = [frame.picture.summary for frame in film(lab.trace).frames]
    waits = next(n for n, text in enumerate(summaries) if text.endswith("No leader yet: orders-0, orders-1."))
    led = next(n for n, text in enumerate(summaries) if text.endswith("Every partition has a leader."))
    assert waits < led and not any("leader" in text for text in summaries[-3:])


def test_what_has_been_deleted_is_not_drawn() -> None:
    """A replica that the controller has forgotten: of a deleted topic, or after a reassignment."""
    with Lab(brokers=4, seed=7) as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        until_quiet(lab.create_topic, "old", assignment={0: [4, 1]})
        lab.reassign({("orders", 0): [1, 2, 4]})
        until_quiet(lab.delete_topic, "old")
        made = film(lab.trace)
    drawn = [line.split()[0] for line in made.described(len(made) - 1).splitlines() if line.startswith("replica:")]
    assert drawn == [f"replica:orders-0@{broker}" for broker in (1, 2, 4)]
    looks = {name: [look.styles for _, look in track] for name, track in made.tracks.items()}
    for gone in ("orders-0@3", "old-0@4", "old-0@1"):
        shown = looks[f"replica:{gone}"]
        assert any("deleting" in styles for styles in shown) and "new" not in shown[-2]


def test_the_context_names_what_is_under_way() -> None:
    """Who is live and who leaves, what gets other replicas and what is deleted."""
    with Lab(brokers=4, seed=7, generation="2.4") as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        until_quiet(lab.create_topic, "old", assignment={0: [4, 1]})
        lab.reassign({("orders", 0): [4, 1, 2]})
        play(lab, "kill 4; run_for 10; delete_topic old; run_for 1")
        reported = context(ClusterModel().apply_all(lab.trace.records))
        assert reported["Live"] == "1, 2, 3" and reported["Reassigned"] == "orders-0" and reported["Deleted"] == "old"
        assert "Deleted: old." in film(lab.trace, "queue").frames[-1].picture.summary
        lab.shutdown(3)
        texts = [look.texts for _, look in film(lab.trace, "queue").tracks["context:1"]]
        assert ("Shutting down", "3", "") in texts


def test_the_context_has_a_dead_broker_until_its_event_is_processed() -> None:
    """The names of the live ones are the controller's; those of ZooKeeper may differ."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "kill 3; settle")
        made = film(lab.trace, "queue")
        found = [frame.index for frame in made.frames if frame.caption.endswith("event BrokerChange.")]
        assert made.looks(found[-1])["context:0"].texts[1] == "1, 2, 3"
        assert made.looks(len(made) - 1)["context:0"].texts[1] == "1, 2"


def test_a_broker_counts_as_registered_while_its_znode_is_there() -> None:
    """From the first start on."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "kill 3; settle; start 3; settle; shutdown 2; settle")
        model = ClusterModel()
        for record in lab.trace:
            model.apply(record)
            there = {broker for broker in (1, 2, 3) if f"/brokers/ids/{broker}" in model.znodes}
            assert there == {broker.id for broker in model.brokers.values() if broker.registered}, record


def test_a_long_event_has_two_lines() -> None:
    for lines in (["LeaderAndIsr", "ResponseReceived 3"], ["BrokerChange"]):
        assert [text.text for text in slot_label("".join(lines))] == lines
