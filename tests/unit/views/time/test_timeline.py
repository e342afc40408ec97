"""Who led when, and what the controllers' queues hold."""

from itertools import pairwise

from filmed import failover
from labs import play, until_quiet

from kafka_ctl import Lab
from kafka_ctl.trace import Record
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.captions import duration
from kafka_ctl.views.frames import film
from kafka_ctl.views.time.spacetime import gap
from kafka_ctl.views.time.timeline import LEFT, MARGIN, NARROW, WIDTH, Span, spans


def one(seq: int, time_ms: float, **columns: object) -> Record:
    return Record(**{"seq": seq, "time_ms": time_ms, "actor": "controller-2", **columns})


def test_a_partition_is_without_leader_from_the_kill_to_the_election() -> None:
    """Not from when the controller notices: clients are turned away before."""
    led = {"kind": "partition", "action": "elect", "topic": "a", "partition": 0, "target": "OnlinePartition"}
    records = [
        one(0, 0.0, kind="broker", action="start", actor="broker-1", broker=1),
        one(1, 0.0, kind="broker", action="start", actor="broker-2", broker=2),
        one(2, 100.0, leader=1, isr=(1, 2), **led),
        one(3, 500.0, kind="fault", action="kill", actor="fault", broker=1),
        one(4, 6500.0, leader=2, isr=(2,), **led),
        one(5, 9000.0, kind="event", action="x", actor="admin"),
    ]
    _, found = spans(records, 9000.0)
    assert found == {("a", 0): [Span(100.0, 500.0, 1), Span(500.0, 6500.0, None), Span(6500.0, 9000.0, 2)]}


def test_the_controllers_reign_ends_with_its_life() -> None:
    trace = list(failover())
    kill = next(r for r in trace if r.kind == "fault")
    ruled, _ = spans(trace, trace[-1].time_ms)
    reigns = [span for span in ruled if span.leader is not None]
    assert reigns[0].leader == kill.broker and reigns[0].end == kill.time_ms
    assert reigns[-1].end == trace[-1].time_ms
    assert all(before.end == after.begin for before, after in pairwise(ruled))


def test_the_timeline_has_the_axis_of_space_and_time() -> None:
    """Any two changes are as far apart as the logarithm of the time between them says, and the whole has the width."""
    trace = list(failover())
    made = film(trace, "timeline")
    ruled, led = spans(trace, trace[-1].time_ms)
    changes = {t for found in (ruled, *led.values()) for span in found for t in (span.begin, span.end)}
    times = sorted({trace[0].time_ms, trace[-1].time_ms, *changes})
    sizes = [NARROW + gap(after - before) for before, after in pairwise(times)]
    bars = [part for name, part in made.scene.parts.items() if name.startswith("span:")]
    for bar in bars:
        *_, who, _, seconds, _ = bar.title.split()
        pixels = {
            sum(sizes[times.index(s.begin) : times.index(s.end)]) * WIDTH * (1 - MARGIN) / sum(sizes)
            for found in (ruled, *led.values())
            for s in found
            if s.end != times[-1] and f"{(s.end - s.begin) / 1000:.3f}" == seconds
        }
        assert not pixels or min(abs(bar.box.width - wide) for wide in pixels) < 1.2, who
    assert max(bar.box.x + bar.box.width for bar in bars) == LEFT + WIDTH


def test_the_axis_of_who_led_when_is_labelled() -> None:
    """The time of a change at its tick, and below it how long no broker led; no two labels overlap."""
    trace = list(failover())
    parts = film(trace, "timeline").scene.parts
    assert parts["axis"].title.startswith("Logarithmic")
    missing = max(
        (p for p in parts.values() if p.title.startswith("no leader")), key=lambda p: float(p.title.split()[-2])
    )
    reported = {name: part.texts[0] for name, part in parts.items() if name.startswith(("tick:", "passes:"))}
    assert duration(float(missing.title.split()[-2]) * 1000)[:2] in {text.text[:2] for text in reported.values()}
    for kind in ("tick:", "passes:"):
        texts = sorted((text.x, len(text.text)) for name, text in reported.items() if name.startswith(kind))
        assert len(texts) >= 2
        assert all(x1 - x0 >= 3.2 * (n0 + n1) for (x0, n0), (x1, n1) in pairwise(texts))


def test_the_line_of_the_present_follows_the_axis() -> None:
    made = film(failover(), "timeline")
    places = [made.looks(frame.index)["now"].at[0] for frame in made.frames]
    assert places == sorted(places) and places[0] == LEFT and LEFT + WIDTH - 40 < places[-1] <= LEFT + WIDTH


def test_an_event_waits_is_worked_on_and_is_gone() -> None:
    """At the right, then at the left, then nowhere; one at a time."""
    trace = list(failover())
    made = film(trace, "queue")
    event = next(r for r in trace if r.kind == "event" and r.action == "TopicChange" and r.target == "queued")
    frames = {f.index: made.looks(f.index)[f"event:{event.seq}"] for f in made.frames}
    seen = {index: look for index, look in frames.items() if "gone" not in look.styles}
    places = [look.at[0] for look in seen.values() if look.at]
    assert places == sorted(places, reverse=True) and len(set(places)) > 1
    assert "active" in list(seen.values())[-1].styles
    for frame in made.frames:
        busy = [n for n, k in made.looks(frame.index).items() if n.startswith("event:") and "active" in k.styles]
        assert len(busy) <= 3, "each of three controllers works on one event at a time"


def test_a_deleted_topic_is_missed_by_nobody() -> None:
    """Its row ends with it, and a controller that comes later knows nothing of it."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "create_topic a partitions=2 replication_factor=3; settle; delete_topic a; settle")
        deleted = lab.now * 1000
        lab.create_topic("b", assignment={0: [1, 2]})
        until_quiet(lab.kill, lab.controller.id)
        records = lab.trace.records
    led = spans(records, records[-1].time_ms)[1]
    assert all(span.end <= deleted for key, found in led.items() if key[0] == "a" for span in found)
    assert led["b", 0][-1].end == records[-1].time_ms
    model = ClusterModel().apply_all(records)
    assert {seen.state for (topic, _), seen in model.partitions.items() if topic == "a"} == {"NonExistentPartition"}
    assert {state for (topic, _, _), state in model.replicas.items() if topic == "a"} <= {"NonExistentReplica"}
