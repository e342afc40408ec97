"""More questions to histories, each against plain Python and against answers known beforehand."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from history_plain import (
    GONE,
    NEW,
    OFFLINE,
    ONLINE,
    Departure,
    Run,
    dicts,
    plain_departures,
    plain_isr,
    plain_led,
    plain_unavailability,
    same,
)
from history_plain_controllers import equals_plain
from labs import lab_of, play, until_quiet
from prose import Prose, source
from pyspark.sql import DataFrame

from kafka_ctl import BadInput, Lab, Trace
from kafka_ctl.history import questions
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.trace import SET

SEEDS = range(20, 26)


@pytest.mark.parametrize("question", ["isr_states", "failover_time", "reassignments", "deletions"])
def test_an_answer_equals_the_plain_computation(
    question: str, clusters: dict[str, Trace], simulated: DataFrame
) -> None:
    """Row for row, on clusters to which everything happens."""
    plain = equals_plain(question, simulated, clusters)
    assert question != "failover_time" or any((row["detection_ms"] or 0) > 5000 for row in plain)


# Bands


def test_a_band_is_what_resampling_finds(simulated: DataFrame) -> None:
    """One history with 60 s, one with 6 s, two without an interval; alike for the same seed."""
    rows = [("a", 60_000.0, "pause"), ("b", 6000.0, "pause"), ("b", 1.0, "topic creation"), ("b", None, "pause")]
    answer = simulated.sparkSession.createDataFrame(rows, "history string, outage_ms double, cause string")
    one, many = questions.resampled(answer, 4, [1, 400])
    assert one == (1, (0.0, 60.0), (0.0, 1.0))
    assert many.median_s[0] >= 6 and many.median_s[1] <= 60
    mean = (60 + 6) / 60 / 4
    assert mean - 0.08 < many.minutes[0] < mean < many.minutes[1] < mean + 0.08
    assert questions.resampled(answer, 4, [1, 400]) == [one, many]
    assert questions.resampled(answer.limit(0), 3, [2]) == [(2, (0.0, 0.0), (0.0, 0.0))]
    for histories, sizes, samples in ((0, [1], 200), (4, [], 200), (4, [0], 200), (4, [1], 19)):
        with pytest.raises(BadInput, match="samples at least 20"):
            questions.resampled(answer, histories, sizes, samples)


def test_a_band_counts_every_history(simulated: DataFrame) -> None:
    """However many have an interval, and however many have none: the minutes of a cluster have their mean."""
    answer = simulated.sparkSession.range(1500).selectExpr(
        "format_string('%04d', id) AS history", "if(id < 1000, 60000D, 600000D) AS outage_ms", "'pause' AS cause"
    )
    for few, histories, mean in (
        (answer, 1500, 4.0),
        (answer, 6000, 1.0),
        (answer.where("history < '0100'"), 2000, 0.05),
    ):
        (band,) = questions.resampled(few, histories, [4000])
        assert band.minutes[0] < mean < band.minutes[1] < mean + 0.15
        assert band.minutes[0] > mean - 0.15
    with pytest.raises(BadInput, match="histories=1499"):
        questions.resampled(answer, 1499, [1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"histories": "4"},
        {"sizes": 3},
        {"sizes": [1.5]},
        {"sizes": "12"},
        {"samples": 20.5},
        {"seed": []},
        {"answer": []},
    ],
    ids=source,
)
def test_what_cannot_be_resampled(prose: Prose, simulated: DataFrame, wrong: dict[str, Any]) -> None:
    answer = simulated.selectExpr("history", "time_ms AS outage_ms", "'pause' AS cause")
    prose.refuses(BadInput, questions.resampled, **{"answer": answer, "histories": 6, "sizes": [1], **wrong})


@pytest.mark.parametrize("rate", ["fast", None, True, -1, math.nan, math.inf])
def test_what_is_no_rate_of_records(rate: Any) -> None:
    """It would become a part of the query."""
    with pytest.raises(BadInput, match="records_per_second="):
        questions.unclean_exposure(Trace(), rate)


# In-sync replicas


def test_isr_churn_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Counts and times, by partition."""
    plain = []
    for name, trace in clusters.items():
        by_partition: dict[tuple, list[dict[str, Any]]] = defaultdict(list)
        for state in plain_isr(trace):
            if state["isr"] is not None:
                by_partition[state["topic"], state["partition"]].append(state)
        for (topic, partition), states in by_partition.items():
            shrinks = [s for s in states if s["isr_before"] and set(s["isr_before"]) - set(s["isr"])]
            grows = [s for s in states if s["isr_before"] is not None and set(s["isr"]) - set(s["isr_before"])]
            under = [s for s in states if len(s["isr"]) < len(s["assigned"])]
            single = [s for s in states if len(s["isr"]) == 1 < len(s["assigned"])]
            plain.append(
                {
                    "history": name,
                    "topic": topic,
                    "partition": partition,
                    "shrinks": len(shrinks),
                    "shrinks_by_leader": sum(s["by_leader"] for s in shrinks),
                    "expansions": len(grows),
                    "smallest": min(len(s["isr"]) for s in states),
                    "under_ms": round(sum((s["until_ms"] - s["at_ms"] for s in under), 0.0), 4),
                    "single_ms": round(sum((s["until_ms"] - s["at_ms"] for s in single), 0.0), 4),
                }
            )
    same(questions.isr_churn(simulated), plain)
    assert sum(row["shrinks_by_leader"] for row in plain)
    assert sum(row["shrinks"] - row["shrinks_by_leader"] for row in plain)


def test_an_isr_that_shrinks_and_grows() -> None:
    """Ten seconds with two, five with one; a request that repeats the old state changes nothing."""
    run = Run().move(NEW, ONLINE, 0, leader=1, isr=(1, 2, 3), zk_version=0, replicas=(1, 2, 3))
    one = {"topic": "orders", "partition": 0}
    run.record("broker", "shrink-isr", 10_000, isr=(1, 2), zk_version=1, **one)
    run.record("request", "LeaderAndIsr", 11_000, isr=(1, 2, 3), zk_version=0, **one)
    run.record("request", "LeaderAndIsr", 20_000, isr=(1,), zk_version=2, **one)
    run.record("broker", "expand-isr", 25_000, isr=(1, 2, 3), zk_version=3, **one)
    assert dicts(questions.isr_churn(to_arrow(run.records))) == [
        {
            "history": "lab",
            "topic": "orders",
            "partition": 0,
            "shrinks": 2,
            "shrinks_by_leader": 1,
            "expansions": 1,
            "smallest": 1,
            "under_ms": 15_000.0,
            "single_ms": 5000.0,
        }
    ]


def test_a_topic_made_anew_begins_anew() -> None:
    """Its versions start at 0 again; between deletion and creation nobody is missing."""
    run = Run().move(GONE, NEW, 0, replicas=(1, 2)).move(NEW, ONLINE, 1, leader=1, isr=(1, 2), zk_version=0)
    run.record("broker", "shrink-isr", 1000, topic="orders", partition=0, isr=(1,), zk_version=1)
    run.move(ONLINE, OFFLINE, 3000).move(OFFLINE, GONE, 3000)
    run.move(GONE, NEW, 9000, replicas=(1, 2)).move(NEW, ONLINE, 9001, leader=1, isr=(1, 2), zk_version=0)
    (row,) = dicts(questions.isr_churn(to_arrow(run.records)), "shrinks", "expansions", "under_ms")
    assert row == {"shrinks": 1, "expansions": 0, "under_ms": 2000.0}
    run.record("election", "offline", 10_000, topic="orders", partition=0, leader=2, target="unclean")
    assert dicts(questions.unclean_exposure(to_arrow(run.records)), "leader", "out_since_ms", "behind_ms") == [
        {"leader": 2, "out_since_ms": None, "behind_ms": None}
    ]


def test_unclean_elections_of_a_lab() -> None:
    """A follower that fell behind leads when its leader dies: what it missed is at risk."""
    with Lab(brokers=3, seed=5) as lab:
        config = {"unclean.leader.election.enable": True}
        until_quiet(lab.create_topic, "orders", assignment={0: [2, 3]}, config=config)
        until_quiet(lab.lag, 3, "orders", 0)
        shrunk = next(r for r in reversed(lab.trace.records) if r.action == "shrink-isr")
        lab.run_for(60)
        until_quiet(lab.kill, 2)
        (row,) = questions.unclean_exposure(lab.trace, records_per_second=10).collect()
        election = next(r for r in lab.trace if r.kind == "election" and r.target == "unclean")
    assert (row.topic, row.leader, row.seq, row.at_ms) == ("orders", 3, election.seq, election.time_ms)
    assert (row.out_since_ms, row.behind_ms) == (shrunk.time_ms, round(election.time_ms - shrunk.time_ms, 4))
    assert row.behind_ms > 60_000
    assert row.records_at_risk == round(row.behind_ms / 100)


def test_clean_elections_put_nothing_at_risk(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """One row for every unclean election that there is, and for no other."""
    unclean = sorted(
        (name, r.seq) for name, t in clusters.items() for r in t if r.kind == "election" and r.target == "unclean"
    )
    answer = questions.unclean_exposure(simulated).select("history", "seq").collect()
    assert sorted(tuple(row) for row in answer) == unclean


# Balance


def test_imbalance_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """At every moment, for every broker."""
    plain = []
    for name, trace in clusters.items():
        stands: dict[tuple, tuple[int, bool]] = {}
        seen: dict[tuple, int] = {}
        at: dict[tuple[int, float], tuple[int, int]] = {}
        for r in trace:
            if r.kind != "partition" or r.action == SET or r.error:
                continue
            key = (r.topic, r.partition)
            touched = {stands[key][0]} if key in stands else set()
            if r.replicas:
                seen[key] = r.replicas[0]
            stands.pop(key, None)
            if r.target != GONE:
                stands[key] = (seen[key], not (r.target == ONLINE and r.leader == seen[key]))
                touched.add(seen[key])
            for broker in touched:
                mine = [led_elsewhere for preferred, led_elsewhere in stands.values() if preferred == broker]
                at[broker, r.time_ms] = (len(mine), sum(mine))
        plain += [
            {
                "history": name,
                "broker": broker,
                "at_ms": ms,
                "preferred": count,
                "led_elsewhere": led_elsewhere,
                "share": led_elsewhere / count if count else 0.0,
            }
            for (broker, ms), (count, led_elsewhere) in at.items()
        ]
    same(questions.imbalance(simulated), plain)


def test_imbalance_after_a_restart() -> None:
    """A broker that comes back leads nothing until somebody gives its partitions back."""
    with Lab(brokers=3, seed=4, config={"auto.leader.rebalance.enable": False}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2], 1: [1, 3], 2: [2, 3]})
        lab.shutdown(1)
        lab.start(1)
        until_quiet(lab.run_for, 30)
        before = len(lab.trace)
        until_quiet(lab.elect_preferred)
        share = "broker", "preferred", "led_elsewhere", "share"
        away = questions.imbalance(lab.trace[:before]).where("broker = 1").orderBy("at_ms").collect()[-1]
        back = questions.imbalance(lab.trace).where("broker = 1").orderBy("at_ms").collect()[-1]
    assert tuple(away[name] for name in share) == (1, 2, 2, 1.0)
    assert tuple(back[name] for name in share) == (1, 2, 0, 0.0)


# Brokers that leave


def test_costs_of_departures_equal_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """What each led, and what went without a leader because of it."""
    plain = []
    for name, trace in clusters.items():
        hurt: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
        for interval in plain_unavailability(trace):
            hurt[interval["cause_seq"]].append(interval)
        for d in plain_departures(trace):
            ended = [i["outage_ms"] for i in hurt[d.cause_seq] if i["outage_ms"] is not None]
            row = {"history": name, **d._asdict(), "duration_ms": round(d.at_ms - d.began_ms, 4)}
            row |= {"led": plain_led(trace, d.broker, row.pop("began_seq")), "leaderless": len(hurt[d.cause_seq])}
            row |= {"unfinished": row["leaderless"] - len(ended), "longest_ms": max(ended, default=0.0)}
            plain.append(row | {"outage_ms": round(sum(ended, 0.0), 4)})
    same(questions.shutdown_vs_failure(simulated).drop("attempts", "remaining"), plain)


def test_good_order_against_a_crash() -> None:
    """The same broker, the same partitions: nothing lost, and six seconds each."""
    with lab_of("orders", {0: [1, 2], 1: [1, 3], 2: [2, 3]}, brokers=3, seed=6, costs={"zookeeper_tick": 0}) as lab:
        lab.shutdown(1)
        lab.start(1)
        lab.run_for(30)
        play(lab, "elect_preferred; settle; kill 1; settle")
        answer = questions.shutdown_vs_failure(lab.trace).orderBy("at_ms").collect()
    shutdown, crash = answer
    assert (shutdown.cause, shutdown.led, shutdown.attempts, shutdown.remaining) == ("controlled shutdown", 2, 1, 0)
    assert (shutdown.leaderless, shutdown.outage_ms) == (0, 0.0)
    assert crash.cause.endswith("crash")
    assert (crash.led, crash.leaderless, crash.attempts) == (2, 2, None)
    assert 2 * 6000 <= crash.outage_ms < 2 * 6200


def test_a_shutdown_begins_when_it_was_asked_for() -> None:
    """Also if the session expires in between; a request that a crash made void begins nothing."""
    run = Run()
    for broker, between in ((1, "expire_session"), (2, "kill")):
        run.record("event", "shutdown", actor="admin", broker=broker)
        run.record("fault", between, actor="fault", broker=broker)
        run.record("broker", "registered", actor=f"broker-{broker}", broker=broker)
        if between == "kill":
            run.record("event", "shutdown", actor="admin", broker=broker)
        run.record("broker", "controlled-shutdown", broker=broker, detail="attempt=1 remaining=")
    answer = questions.departures(to_arrow(run.records)).where("cause = 'controlled shutdown'")
    assert dicts(answer, "broker", "began_seq") == [{"broker": 1, "began_seq": 0}, {"broker": 2, "began_seq": 7}]


def test_rolling_restarts_are_sessions() -> None:
    """A gap ends one; a single broker is none; the same broker twice is none."""
    run = Run()
    for minute, broker in ((0, 1), (5, 2), (10, 3), (60, 1), (120, 2), (121, 2), (200, 3), (215, 1), (231, 2)):
        at = 60_000.0 * minute
        run.record("event", "shutdown", at, actor="admin", broker=broker)
        detail = "attempt=1 remaining=" + ("orders-0" if minute == 5 else "")
        run.record("broker", "controlled-shutdown", at + 2000, broker=broker, detail=detail)
    records = to_arrow(run.records)
    columns = ("start_ms", "end_ms", "duration_ms", "brokers", "remaining")
    rows = [tuple(r) for r in questions.rolling_restarts(records).select(*columns).orderBy("start_ms").collect()]
    assert rows == [(0.0, 602_000.0, 602_000.0, [1, 2, 3], 1), (12_000_000.0, 12_902_000.0, 902_000.0, [3, 1], 0)]
    assert [r.brokers for r in questions.rolling_restarts(records, gap_minutes=16).orderBy("start_ms").collect()] == [
        [1, 2, 3],
        [3, 1, 2],
    ]
    with pytest.raises(BadInput, match="gap_minutes=-1"):
        questions.rolling_restarts(records, gap_minutes=-1)


def test_rolling_restarts_of_simulated_clusters(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """They are the controlled shutdowns in a row; every one of several brokers that the workload began is found."""
    plain = []
    for name, trace in clusters.items():
        sessions: list[list[Departure]] = []
        for d in plain_departures(trace):
            if d.cause == "controlled shutdown":
                if not sessions or d.began_ms - sessions[-1][-1].at_ms > 15 * 60_000:
                    sessions.append([])
                sessions[-1].append(d)
        plain += [
            {"history": name, "start_ms": s[0].began_ms, "end_ms": s[-1].at_ms, "brokers": [d.broker for d in s]}
            for s in sessions
            if len({d.broker for d in s}) > 1
        ]
    same(questions.rolling_restarts(simulated).select("history", "start_ms", "end_ms", "brokers"), plain)


# Controllers


def test_failover_takes_longer_with_more_partitions() -> None:
    """Reading is what grows; detection is the session timeout in either case."""
    rows = {}
    for partitions in (10, 200):
        with Lab(brokers=3, seed=2, costs={"zookeeper_tick": 0}) as lab:
            until_quiet(lab.create_topic, "orders", partitions, 2)
            controller = lab.controller.id
            until_quiet(lab.kill, controller)
            rows[partitions] = questions.failover_time(lab.trace).orderBy("elected_ms").collect()[-1]
    small, large = rows[10], rows[200]
    assert (small.partitions, large.partitions) == (10, 200)
    assert (small.epoch, small.previous) == (2, controller)
    assert large.reading_ms > small.reading_ms
    assert all(5900 < row.detection_ms < 6100 for row in rows.values())
    stages = ("taking_over_ms", "reading_ms", "replica_ms", "partition_ms")
    assert large.failover_ms == pytest.approx(sum(large[stage] for stage in stages))


def test_amplification_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Requests and states of each event, summed by its name."""
    plain = []
    for name, trace in clusters.items():
        logged: dict[int | None, list[int]] = defaultdict(lambda: [0, 0])
        for r in trace:
            if r.kind == "request" and r.actor.startswith("controller-"):
                logged[r.cause][0] += r.target == "sent"
                logged[r.cause][1] += r.topic is not None
        events: dict[str, list[list[int]]] = defaultdict(list)
        for r in trace:
            if r.kind == "event" and r.target == "started" and r.actor.startswith("controller-"):
                events[r.action].append(logged.get(r.seq, [0, 0]))
        plain += [
            {
                "history": name,
                "event": event,
                "events": len(each),
                "requests": sum(q for q, _ in each),
                "states": sum(s for _, s in each),
                "most_requests": max(q for q, _ in each),
                "most_states": max(s for _, s in each),
            }
            for event, each in events.items()
        ]
    same(questions.request_amplification(simulated), plain)


def test_one_broker_failure_and_what_is_reported() -> None:
    """With three brokers: the two that live hear of it."""
    with lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=3, seed=8) as lab:
        controller = lab.controller.id
        before = len(lab.trace)
        until_quiet(lab.kill, next(id for id in (1, 2, 3) if id != controller))
        logged = [r for r in lab.trace[before:] if r.kind == "request" and r.actor == f"controller-{controller}"]
        (row,) = questions.request_amplification(lab.trace[before:]).where("event = 'BrokerChange'").collect()
    assert row.events == 1
    assert row.requests == sum(r.target == "sent" and r.cause == logged[0].cause for r in logged) > 1
    assert row.states == sum(r.topic is not None for r in logged) > 1


# Administrators


def test_a_reassignment_that_is_stuck() -> None:
    """A replica on a dead broker never catches up: it has begun and has no end."""
    with Lab(brokers=4, seed=1) as lab:
        play(lab, """create_topic orders assignment='{"0":[1,2],"1":[2,3]}'; settle; kill 4; settle""")
        lab.reassign({("orders", 0): [1, 4], ("orders", 1): [3, 1]})
        lab.run_for(120)
        rows = questions.reassignments(lab.trace).orderBy("partition").collect()
    assert {row.partition for row in rows if row.end_ms is not None} == {1}
    assert [row.replicas for row in rows if row.partition == 1] == [[3, 1]]


def test_a_deletion_that_never_finishes() -> None:
    """One replica is on a dead broker; when that returns, the deletion goes on."""
    with Lab(brokers=3, seed=1) as lab:
        play(lab, """create_topic orders assignment='{"0":[1,2]}'; settle; kill 2; settle""")
        lab.delete_topic("orders")
        lab.run_for(600)
        (stuck,) = questions.deletions(lab.trace).collect()
        lab.start(2)
        lab.run_for(60)
        (done,) = questions.deletions(lab.trace).collect()
    assert (stuck.topic, stuck.completed_ms, stuck.duration_ms) == ("orders", None, None)
    assert done.duration_ms > 600_000
    assert done.asked_ms == stuck.asked_ms


# What if


def test_two_histories_side_by_side() -> None:
    """By cause, and all together; what only one of them has is empty in the other."""

    def reported(length: float, fault: str | None) -> Any:
        run = Run().move(ONLINE, ONLINE, 0, leader=1)
        if fault:
            run.record("fault", fault, 1000, broker=1)
        return to_arrow(run.move(ONLINE, OFFLINE, 1000).move(OFFLINE, ONLINE, 1000 + length, leader=2).records)

    rows = {row.cause: row for row in questions.compare(reported(500, "kill"), reported(200, None)).collect()}
    assert set(rows) == {"all", "broker crash", "unknown"}
    total = rows["all"]
    assert (total.intervals_before, total.intervals_after) == (1, 1)
    assert (total.outage_ms_before, total.outage_ms_after) == (500.0, 200.0)
    assert (total.median_ms_before, total.p99_ms_after) == (500.0, 200.0)
    crash = rows["broker crash"]
    assert (crash.intervals_after, crash.outage_ms_after, crash.median_ms_after) == (0, 0.0, None)


def test_deletion_is_no_unavailability() -> None:
    """A partition goes through Offline on its way out."""
    with Lab(brokers=3, seed=1) as lab:
        play(lab, "create_topic orders partitions=3 replication_factor=2; settle; delete_topic orders; settle")
        causes = {row.cause for row in questions.unavailability(lab.trace).collect()}
        assert lab.partitions() == []
    assert causes == {"topic creation"}
