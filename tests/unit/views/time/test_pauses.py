"""Time has length in the pictures: pauses, silent sessions; and every mark is in the legend, every actor in a lane."""

from functools import lru_cache
from itertools import combinations

import pytest
from filmed import failover
from labs import lab_of, play, until_quiet
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.trace import Record, Trace
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.captions import duration
from kafka_ctl.views.frames import film
from kafka_ctl.views.legend import MARKS, PREFIX, REPLICAS
from kafka_ctl.views.scene import halves
from kafka_ctl.views.status import session_state
from kafka_ctl.views.time.spacetime import PAUSE, ROW, gap


@lru_cache
def troubled() -> Trace:
    """Brokers that are killed, paused, cut off, lag and return; topics that are made and deleted."""
    with Lab(brokers=4, seed=7, generation="2.4") as lab:
        play(lab, "create_topic orders partitions=3 replication_factor=3")
        play(lab, "create_topic old partitions=1 replication_factor=2; settle; lag 4 orders 0; kill 1")
        play(lab, "delete_topic old; run_for 20; pause 2 3; disconnect 4 zookeeper; run_for 20; heal; start 1; settle")
        return lab.trace


@tabled
def test_a_duration_has_a_readable_unit(ms: float, text: str) -> None:
    assert duration(ms) == text


def test_the_axis_of_time_is_logarithmic() -> None:
    """Nothing up to 10 ms, and the same for each power of ten beyond."""
    assert gap(0) == gap(10) == 0
    assert gap(1000) - gap(100) == pytest.approx(gap(10_000) - gap(1000)) == pytest.approx(18)


def test_the_six_seconds_of_a_session_are_seen_in_space_and_time() -> None:
    """Two rows stand as far apart as the axis says, and the pause between them says how long it is."""
    made = film(failover(), "spacetime")
    rows = {f.index: made.looks(f.index)["band"].at[1] for f in made.frames[1:]}
    times = {f.index: f.time_ms for f in made.frames}
    for index in range(2, len(made)):
        assert rows[index] - rows[index - 1] == pytest.approx(ROW + gap(times[index] - times[index - 1]))
    kill = next(f.index for f in made.frames if f.kind == "fault")
    waited = times[kill + 1] - times[kill]
    assert waited > 6000
    assert made.scene.parts[f"pause:{kill}"].texts[0].text == f"{duration(waited)} pass"
    pauses = sum(times[i] - times[i - 1] >= PAUSE for i in range(2, len(made)))
    assert sum(name.startswith("pause:") for name in made.scene.parts) == pauses


def test_a_silent_session_counts_down() -> None:
    """From the kill on, until ZooKeeper ends it; a paused broker and one without ZooKeeper count, too."""
    trace = list(troubled())
    model, reported = ClusterModel(), dict[str, list[str]]()
    for record in trace:
        model.apply(record)
        for broker in model.brokers:
            if text := session_state(model, broker, record.time_ms):
                reported.setdefault(str(broker), []).append(text)
    assert set(reported) == {"1", "2", "4"}
    assert reported["1"][0] == reported["2"][0] == reported["4"][0] == "silent 0.0 of 6 s"
    numbers = [float(text.split()[1]) for text in reported["1"]]
    assert numbers == sorted(numbers) and numbers[-1] > 0
    assert model.brokers[1].silent is None


def test_the_countdown_stands_in_the_broker() -> None:
    made = film(failover())
    kill = next(f for f in made.frames if f.kind == "fault")
    broker = next(r.broker for r in failover() if r.kind == "fault")
    looks = made.looks(kill.index)
    assert "expiring" in looks[f"session:{broker}"].styles and "silent 0.0 of 6 s" in looks[f"head:{broker}"].texts
    expired = next(f for f in made.frames if f.index > kill.index and f"/brokers/ids/{broker}" in f.caption)
    assert "gone" in made.looks(expired.index)[f"session:{broker}"].styles


def counting(trace: Trace, of: str) -> dict[int, list[str]]:
    """What counts seconds with this word, by frame: on parts and on what travels."""
    made, found = film(trace), dict[int, list[str]]()
    for frame in made.frames:
        texts = [text for look in made.looks(frame.index).values() for text in look.texts]
        texts += [token.label for token in frame.picture.tokens]
        if counted := [text for text in texts if text.startswith(of) and text.endswith(" s")]:
            found[frame.index] = counted
    return found


@lru_cache
def unanswered(**config: int) -> Trace:
    """A request of the controller meets a broker that is paused, then one that is cut off for longer than it waits."""
    with Lab(brokers=3, seed=7, config={name.replace("_", "."): value for name, value in config.items()}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [2, 1], 1: [1, 2]})
        assert lab.controller is not None and lab.controller.id == 2
        lab.pause(1, seconds=4)
        until_quiet(lab.create_topic, "new", assignment={0: [1, 2]})
        lab.disconnect(2, 1)
        lab.create_topic("more", assignment={0: [1, 2]})
        play(lab, "run_for 40; heal; settle")
        return lab.trace


def test_a_request_without_answer_says_how_long_it_waits() -> None:
    """From its sending on, in every frame; then it is sent again; with the answer it is gone."""
    trace, made = unanswered(), film(unanswered())
    found = counting(trace, "LeaderAndIsr")
    texts = [text for _, logged in sorted(found.items()) for text in logged]
    sent = next(f for f in made.frames if f.index in found)
    assert texts[0] == "LeaderAndIsr 0.0 of 30 s" and "sends LeaderAndIsr" in sent.caption
    assert "LeaderAndIsr 4.0 of 30 s" in texts and "LeaderAndIsr again, 40.0 s" in texts
    assert not any(" of " in text and float(text.split()[1]) > 30 for text in texts)
    styles = [t.styles for f in made.frames if f.index in found for t in f.picture.tokens if "waiting" in t.styles]
    assert styles.count("parcel waiting") == 2 and "parcel waiting parked" in styles
    assert max(found) < len(made) - 1
    assert not counting(failover(), "UpdateMetadata"), "who is answered at once does not count"


def test_the_limits_are_those_of_the_lab() -> None:
    trace = unanswered(request_timeout_ms=20000, replica_lag_time_max_ms=5000)
    started = {r.detail for r in trace if r.action == "start" and r.kind == "broker"}
    assert started == {"request.timeout.ms=20000 replica.lag.time.max.ms=5000"}
    assert any("of 20 s" in text for logged in counting(trace, "LeaderAndIsr").values() for text in logged)
    assert any("of 5 s" in text for logged in counting(trace, "lag").values() for text in logged)
    assert {r.detail for r in unanswered() if r.action == "start" and r.kind == "broker"} == {None}


def test_a_produce_request_that_waits_says_so() -> None:
    """With acks=all it waits in its leader's purgatory until the follower is out of the ISR."""
    with lab_of("orders", {0: [1, 3]}, brokers=3, seed=7) as lab:
        play(lab, "lag 3 orders 0; produce orders 0 records=2; settle")
        trace = lab.trace
    texts = [text for logged in counting(trace, "Produce").values() for text in logged]
    answered = next(r for r in trace if r.kind == "response" and r.action == "Produce")
    asked = next(r for r in trace if r.kind == "request" and r.action == "Produce")
    assert answered.time_ms - asked.time_ms > 5000
    assert texts[0] == "Produce 0.0 of 30 s" and float(texts[-1].split()[1]) > 5


def test_a_follower_that_lags_counts_until_it_is_out_of_the_isr() -> None:
    """As its leader does, which looks every five seconds."""
    with lab_of("orders", {0: [1, 3], 1: [1, 2]}, brokers=3, seed=7) as lab:
        lab.lag(3, "orders", 0)
        lab.create_topic("later", assignment={0: [1, 2]})
        play(lab, "run_for 4; elect_preferred; settle")
        trace = lab.trace
    texts = [float(text.split()[1]) for logged in counting(trace, "lag").values() for text in logged]
    assert texts[0] == 0 and texts == sorted(texts) and any(4 <= text < 5 for text in texts)
    fell = next(r for r in trace if r.action == "lag")
    assert 10_000 <= next(r for r in trace if r.action == "shrink-isr").time_ms - fell.time_ms <= 15_000
    made = film(trace)
    last = made.looks(max(counting(trace, "lag")))
    assert [name for name, look in last.items() if "late" in look.styles.split()] == ["role:orders-0@3"]
    assert not any("late" in look.styles.split() for look in made.looks(len(made) - 1).values())


def test_who_is_killed_lags_until_the_controller_takes_it_out() -> None:
    """Where another broker leads; nobody counts for a partition whose leader is gone."""
    trace = troubled()
    made = film(trace)
    kill = next(f for f in made.frames if "is killed" in f.caption)
    model = ClusterModel().apply_all(r for r in trace if r.seq <= kill.seqs[-1])
    late = {name for name, look in made.looks(kill.index).items() if "lag 0.0 of 10 s" in look.texts}
    follows = {f"role:{t}-{p}@1" for (t, p), seen in model.partitions.items() if 1 in seen.isr and seen.leader != 1}
    assert follows and late == follows


def test_in_2_4_who_is_silent_and_has_all_does_not_lag() -> None:
    """KAFKA-7152: only a follower whose log is shorter than its leader's leaves the ISR."""
    with lab_of("orders", {0: [1, 3]}, brokers=3, seed=7, generation="2.4") as lab:
        play(lab, "pause 3 4; run_for 1")
        quiet = film(lab.trace, generation="2.4")
        play(lab, "produce orders 0 acks=1; run_for 1; settle")
        trace = lab.trace
    assert "lag" not in " ".join(quiet.looks(len(quiet) - 1)["role:orders-0@3"].texts)
    made = film(trace, generation="2.4")
    late = [text for f in made.frames for text in made.looks(f.index)["role:orders-0@3"].texts]
    assert any(text.startswith("lag") for text in late)


@pytest.mark.parametrize("brokers", [3, 5])
def test_what_travels_lies_on_nothing_else_that_does(brokers: int) -> None:
    """A request to all brokers is a pill for each of them."""
    with Lab(brokers=brokers, seed=7) as lab:
        play(lab, "create_topic orders partitions=4 replication_factor=3; settle; kill 1; settle")
        made = film(lab.trace)
    assert max(len(frame.picture.tokens) for frame in made.frames) == brokers
    for frame in made.frames:
        for one, other in combinations(frame.picture.tokens, 2):
            (x0, y0), (x1, y1) = one.place, other.place
            wide = (one.wide + other.wide) / 2
            assert abs(x0 - x1) >= wide or abs(y0 - y1) >= 18, (frame.index, one.label)


def test_the_legend_explains_every_mark() -> None:
    """Every style that a replica, a session, a znode, a broker or what travels has in any frame."""
    explained = {style for entry in (*REPLICAS, *MARKS) for style in entry.styles.split()}
    spoken = {
        "up", "down", "active", "lost", "bare", "frame", "gone", "broken", "zoo", "star", "on_leader", "faded",
        "absent", "late", "parked",
    }  # fmt: skip
    spoken |= {"badge", "differs"}  # both bear the sign of the legend
    for trace in (failover(), troubled()):
        made = film(trace)
        used = {style for track in made.tracks.values() for _, look in track for style in look.styles.split()}
        used |= {style for frame in made.frames for token in frame.picture.tokens for style in token.styles.split()}
        assert used - explained <= spoken, "in the legend, or said in words where it stands"
        entries = [part.styles.split() for name, part in made.scene.parts.items() if name.startswith(PREFIX)]
        assert explained <= {style for styles in entries for style in styles}


SPOKEN = {
    "zookeeper": {"wire", "wire faded", "wire gone", "plate up", "plate down", "plate absent"},
    "spacetime": {"plate", "band gone", "veil", "veil gone", "heading", "ask mark"},
    "timeline": {"veil", "veil gone", "wire", "wire broken"},
    "partition": set[str](),
    "replica": set[str](),
}
"""Looks that need no legend: they bear words, or are the lines of a tree or an axis."""


@pytest.mark.parametrize("view", SPOKEN)
def test_every_look_is_in_its_legend(view: str) -> None:
    """Of the views that are not the cluster: what is drawn with an outline or a sign looks as one of the entries."""
    for trace in (failover(), troubled()):
        made = film(trace, view)
        parts = made.scene.parts
        drawn = {name for name, part in parts.items() if part.shapes or part.glyph}
        explained = {look(parts[name].styles) for name in drawn if name.startswith(PREFIX)}
        shown = {look(parts[name].styles) for name in drawn - made.tracks.keys() if not name.startswith(PREFIX)}
        shown |= {look(state.styles) for name in drawn & made.tracks.keys() for _, state in made.tracks[name]}
        shown |= {look(token.styles) for frame in made.frames for token in frame.picture.tokens}
        assert shown - explained <= set(map(look, SPOKEN[view]))


def look(styles: str) -> frozenset[str]:
    """What a part looks like, whatever else is true of it: `hot` is an entry of its own."""
    words = frozenset(styles.split())
    return words - {"hot"} if "zoo" in words or ("plate" in words and len(words) > 2) else words


def test_administrators_have_a_lane() -> None:
    """Their requests begin there, and not at ZooKeeper; a run without any has none."""
    made = film(failover(), "spacetime")
    assert made.scene.parts["lane:admin"].texts[0].text == "admin"
    asked = next(p for n, p in made.scene.parts.items() if p.title == "command create topic")
    assert asked.glyph is not None
    assert asked.glyph[0] == made.scene.parts["lane:admin"].box.middle[0]
    started = [Record(0, 0.0, "broker-1", "broker", "start", broker=1)]
    assert "lane:admin" not in film(started, "spacetime").scene.parts


def test_words_in_two_lines_are_no_longer_than_the_room() -> None:
    lines = ["create /brokers/topics/orders", "/partitions/0/state"]
    assert halves("".join(lines), 30) == lines
    assert halves("short", 30) == ["short"]
    assert halves("AutoPreferredReplicaLeaderElection ends", 30) == ["AutoPreferredReplicaLeader", "Election ends"]
    assert [len(line) <= 20 for line in halves("x" * 100, 20)] == [True, True]
    assert all(len(line) <= 15 for line in halves("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20))
