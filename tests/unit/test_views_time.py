"""Time has length in the pictures: pauses, silent sessions; and every mark is in the legend, every actor in a lane."""

from __future__ import annotations

from functools import lru_cache

import pytest
from filmed import failover

from kafka_ctl import Lab
from kafka_ctl.trace import Record, Trace
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.frames import film
from kafka_ctl.views.legend import MARKS, REPLICAS
from kafka_ctl.views.scene import halves
from kafka_ctl.views.spacetime import PAUSE, ROW, gap
from kafka_ctl.views.status import session_state
from kafka_ctl.views.wording import duration


@lru_cache
def troubled() -> Trace:
    """Brokers that are killed, paused, cut off, lag and return; topics that are made and deleted."""
    with Lab(brokers=4, seed=7, generation="2.4") as lab:
        lab.create_topic("orders", partitions=3, replication_factor=3)
        lab.create_topic("old", partitions=1, replication_factor=2)
        lab.settle()
        lab.lag(4, "orders", 0)
        lab.kill(1)
        lab.delete_topic("old")
        lab.run_for(20)
        lab.pause(2, seconds=3)
        lab.disconnect(4, "zookeeper")
        lab.run_for(20)
        lab.heal()
        lab.start(1)
        lab.settle()
        return lab.trace


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.25, "0.25 ms"),
        (12.4, "12 ms"),
        (999, "999 ms"),
        (6000, "6 s"),
        (7699.7, "7.7 s"),
        (90_000, "1.5 min"),
        (1.104e7, "3.07 h"),
    ],
)
def test_a_duration_has_a_readable_unit(ms: float, text: str) -> None:
    assert duration(ms) == text


def test_the_axis_of_time_is_logarithmic() -> None:
    """Nothing up to 10 ms, and the same for each power of ten beyond."""
    assert gap(0) == gap(10) == 0
    assert gap(1000) - gap(100) == pytest.approx(gap(10_000) - gap(1000)) == pytest.approx(18)


def test_the_six_seconds_of_a_session_are_seen_in_space_and_time() -> None:
    """Two rows stand as far apart as the axis says, and the pause between them says how long it is."""
    made = film(failover(), "spacetime")
    rows = {f.index: made.looks(f.index)["band"].at[1] for f in made.frames[1:]}  # type: ignore[index]
    times = {f.index: f.time_ms for f in made.frames}
    for index in range(2, len(made)):
        assert rows[index] - rows[index - 1] == pytest.approx(ROW + gap(times[index] - times[index - 1]))
    kill = next(f.index for f in made.frames if f.kind == "fault")
    waited = times[kill + 1] - times[kill]
    assert waited > 6000
    pause = made.scene.parts[f"pause:{kill}"]
    assert pause.texts[0].text == f"{duration(waited)} pass"
    pauses = sum(times[i] - times[i - 1] >= PAUSE for i in range(2, len(made)))
    assert sum(name.startswith("pause:") for name in made.scene.parts) == pauses


def test_a_silent_session_counts_down() -> None:
    """From the kill on, until ZooKeeper ends it; a paused broker and one without ZooKeeper count, too."""
    trace = list(troubled())
    model, told = ClusterModel(), dict[str, list[str]]()
    for record in trace:
        model.apply(record)
        for broker in model.brokers:
            if text := session_state(model, broker, record.time_ms):
                told.setdefault(str(broker), []).append(text)
    assert set(told) == {"1", "2", "4"}
    assert told["1"][0] == told["2"][0] == told["4"][0] == "silent 0.0 of 6 s"
    numbers = [float(text.split()[1]) for text in told["1"]]
    assert numbers == sorted(numbers) and numbers[-1] > 0
    assert model.brokers[1].silent is None


def test_the_countdown_stands_on_the_session_of_the_broker() -> None:
    made = film(failover())
    kill = next(f for f in made.frames if f.kind == "fault")
    broker = next(r.broker for r in failover() if r.kind == "fault")
    look = made.looks(kill.index)[f"session:{broker}"]
    assert "expiring" in look.styles and look.texts == ("silent 0.0 of 6 s",)
    expired = next(f for f in made.frames if f.index > kill.index and f"/brokers/ids/{broker}" in f.caption)
    assert "gone" in made.looks(expired.index)[f"session:{broker}"].styles


def test_the_legend_explains_every_mark() -> None:
    """Every style that a replica, a session, a znode or a broker has in any frame."""
    explained = {style for entry in (*REPLICAS, *MARKS) for style in entry.styles.split()}
    spoken = {
        "up",
        "down",
        "active",
        "lost",
        "bare",
        "frame",
        "gone",
        "broken",
        "zoo",
        "star",
        "on_leader",
        "faded",
        "absent",
        "sent",
    }
    spoken |= {"badge", "differs"}  # both bear the sign of the legend
    for trace in (failover(), troubled()):
        made = film(trace)
        used = {style for track in made.tracks.values() for _, look in track for style in look.styles.split()}
        assert used - explained <= spoken, "in the legend, or said in words where it stands"
        shown = {
            style
            for name, part in made.scene.parts.items()
            if name.startswith("legend:")
            for style in part.styles.split()
        }
        assert explained <= shown


def test_administrators_have_a_lane() -> None:
    """Their requests begin there, and not at ZooKeeper; a run without any has none."""
    made = film(failover(), "spacetime")
    assert made.scene.parts["lane:admin"].texts[0].text == "admin"
    asked = next(p for n, p in made.scene.parts.items() if p.title == "asks for create topic")
    assert asked.glyph is not None
    assert asked.glyph[0] == made.scene.parts["lane:admin"].box.middle[0]
    started = [Record(0, 0.0, "broker-1", "broker", "start", broker=1)]
    assert "lane:admin" not in film(started, "spacetime").scene.parts


def test_words_in_two_lines_are_no_longer_than_the_room() -> None:
    assert halves("create /brokers/topics/orders/partitions/0/state", 30) == [
        "create /brokers/topics/orders",
        "/partitions/0/state",
    ]
    assert halves("short", 30) == ["short"]
    assert [len(line) <= 20 for line in halves("x" * 100, 20)] == [True, True]
    assert all(len(line) <= 15 for line in halves("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20))
