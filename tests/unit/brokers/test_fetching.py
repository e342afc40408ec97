"""Followers catch up by leader, not by partition; their fetches wait in their leader's purgatory."""

import pytest
from labs import QUIET, lab_of, play, process_of, until_quiet
from tables import tabled

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.follower import CatchUp
from kafka_ctl.brokers.leader import FollowerFetch
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.requests import LeaderAndIsrRequest, PartitionState, StopReplicaRequest

CALM = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True}


def returned(generation: str, partitions: int) -> tuple[int, int]:
    """How many callbacks the death of a broker takes, and how many its return."""
    with Lab(brokers=3, generation=generation, seed=7, config=CALM) as lab:
        until_quiet(lab.create_topic, "orders", partitions=partitions, replication_factor=3)
        victim = next(id for id in lab.brokers if id != lab.controller.id)
        counts, loop = [], lab.world.clock.loop
        for act in (lab.kill, lab.start):
            before = loop.callbacks_run
            act(victim)
            lab.settle()
            counts.append(loop.callbacks_run - before)
        assert all(sorted(p.isr) == [1, 2, 3] for p in lab.partitions())
        return counts[0], counts[1]


@pytest.mark.parametrize(("generation", "most"), [("0.10", 9.5), ("2.0", 6.5), ("2.4", 6.5)])
def test_what_a_return_costs_for_each_partition(generation: str, most: float) -> None:
    """Each ISR is a write of its own, as in Kafka: some five callbacks; the follower's side is shared by all."""
    few, many = returned(generation, 100), returned(generation, 400)
    assert (many[1] - few[1]) / 300 <= most


def behind() -> Lab:
    """Broker 3 is back and about to catch up in what 1 and 2 lead."""
    lab = lab_of("orders", {n: [1 + n % 2, 3] for n in range(6)}, brokers=3, generation="2.0", seed=1, config=CALM)
    play(lab, "kill 3; settle; start 3")
    lab.run_until(lambda lab: len(fetchers(lab)) == 6, limit=30)
    return lab


def fetchers(lab: Lab) -> dict[TopicPartition, CatchUp]:
    """The partitions in which broker 3 catches up, and together with which."""
    partitions = process_of(lab, 3).as_follower.partitions.items()
    return {tp: p.catch_up for tp, p in partitions if p.catch_up is not None}


def caught_up(lab: Lab) -> dict[int, float]:
    """When each partition caught up, in seconds; the last time counts."""
    return {r.partition: r.time_ms / 1000 for r in lab.trace if r.action == "caught-up"}


def test_one_fetcher_for_each_leader() -> None:
    with behind() as lab:
        lab.run_for(0.01)
        by_leader = {one.leader: sorted(tp.partition for tp in one.partitions) for one in fetchers(lab).values()}
        assert by_leader == {1: [0, 2, 4], 2: [1, 3, 5]}
        assert len({id(fetcher) for fetcher in fetchers(lab).values()}) == 2
        play(lab, "settle; run_for 2")
        assert fetchers(lab) == {}
        assert len(set(caught_up(lab).values())) == 1


def test_a_leader_that_does_not_answer_holds_up_its_own_partitions_only() -> None:
    with behind() as lab:
        play(lab, "disconnect 2 3; run_for 3")
        assert {tp.partition for tp in fetchers(lab)} == {1, 3, 5}
        assert sorted(caught_up(lab)) == [0, 2, 4]
        play(lab, "heal; settle; run_for 2")
        assert fetchers(lab) == {}
        assert all(sorted(p.isr) == sorted(p.replicas) for p in lab.partitions())


def test_a_partition_that_is_stopped_leaves_the_others() -> None:
    with behind() as lab:
        lab.run_for(0.01)
        replication = process_of(lab, 3).as_follower
        lab.world.clock.call(replication.partitions[TopicPartition("orders", 2)].stop)
        assert {tp.partition for tp in fetchers(lab)} == {0, 1, 3, 4, 5}
        lab.run_for(3)
        assert sorted(caught_up(lab)) == [0, 1, 3, 4, 5]
        lab.world.clock.call(replication.end)
        assert fetchers(lab) == {}


def test_a_fetcher_without_partitions_ends() -> None:
    with behind() as lab:
        replication = process_of(lab, 3).as_follower
        lab.world.clock.call(replication.end)
        lab.settle()
        assert caught_up(lab) == {}


def test_a_partition_with_records_is_copied_by_itself() -> None:
    """Those that had records before get a fetcher at once, those that get some meanwhile when they are seen."""
    with lab_of("orders", {n: [1, 3] for n in range(4)}, brokers=3, generation="2.0", seed=1, config=CALM) as lab:
        play(lab, "produce orders 1 records=2; settle; kill 3; settle; start 3")
        lab.run_until(lambda lab: len(fetchers(lab)) == 4, limit=30)
        lab.run_for(0.01)
        groups = {tuple(sorted(tp.partition for tp in fetcher.partitions)) for fetcher in fetchers(lab).values()}
        assert groups == {(1,), (0, 2, 3)}
        play(lab, "produce orders 2 records=3 wait=false; run_for 0.2")
        groups = {tuple(sorted(tp.partition for tp in fetcher.partitions)) for fetcher in fetchers(lab).values()}
        assert (2,) in groups
        play(lab, "settle; run_for 2")
        assert fetchers(lab) == {}
        assert {log.broker: log.end for log in lab.log("orders", 2)} == {1: 3, 3: 3}
        assert all(sorted(p.isr) == [1, 3] for p in lab.partitions())
        assert lab.violations == ()


def test_it_repeats(generation: str) -> None:
    runs = []
    for _ in range(2):
        with Lab(brokers=3, generation=generation, seed=3, config=CALM) as lab:
            play(lab, "create_topic orders partitions=5 replication_factor=3; settle; produce orders 3 records=2")
            for broker in (1, 2, 3):
                lab.bounce(broker)
                until_quiet(lab.pause, 1 + broker % 3, 1.5)
            play(lab, "lag 1 orders 2; run_for 40; heal; settle")
            runs.append(list(lab.trace))
    assert runs[0] == runs[1]


# When a fetcher is started anew


@tabled
def test_what_becomes_of_a_fetcher(generation: str, fetchers: list[str]) -> None:
    """Kafka: cluster/Partition.scala, makeFollower, at each tag: first told, next epoch, a gap, another leader."""
    with Lab(brokers=3, generation=generation, seed=1, config=CALM) as lab:
        lab.settle()
        followed = process_of(lab, 3).as_follower
        known = LeaderAndIsr(1, (1, 3), leader_epoch=4)
        reported = [(None, 4, 1), (known, 5, 1), (known, 6, 1), (known, 5, 2)]
        assert [
            followed.fetcher_of(before, known._replace(leader=leader, leader_epoch=epoch))
            for before, epoch, leader in reported
        ] == fetchers


def test_the_next_epoch_of_one_leader(generation: str) -> None:
    """A follower dies: the others learn of the next epoch. 2.4 asks where the log of the leader's epoch ends."""
    with lab_of("orders", {0: [1, 2, 3]}, brokers=3, generation=generation, seed=1, config=CALM) as lab:
        until_quiet(lab.produce, "orders", 0)
        since = len(lab.trace)
        lab.elect_preferred()
        until_quiet(lab.reassign, {("orders", 0): [1, 3, 2]}, "zookeeper")
        reported = [r.detail for r in lab.trace[since:] if r.action == "become-follower" and r.broker == 3]
        assert reported and set(reported) == ({None} if generation == "2.4" else {"fetcher=kept"})
        assert lab.produce("orders", 0).acknowledged
        assert {log.broker: log.high_watermark for log in lab.log("orders", 0)}[1] == 2


@pytest.mark.parametrize(
    ("generation", "restarts", "isr"),
    [("0.10", False, (1, 2, 3)), ("2.0", False, (1, 2, 3)), ("2.4", False, (1, 2, 3)), ("2.4", True, (1, 2))],
)
def test_a_follower_that_missed_a_leader_epoch(generation: str, restarts: bool, isr: tuple[int, ...]) -> None:
    """It fetches on, and is answered and counted in.

    In 2.4 the first fetch of a session names the epoch (KAFKA-9338; the recordings of `cut_from_zookeeper`): so not
    where the connection to the leader breaks, too.
    """
    with lab_of("orders", {0: [1, 2, 3]}, brokers=3, generation=generation, seed=18883, config=CALM) as lab:
        play(lab, "produce orders 0; settle; disconnect 3 zookeeper")
        if restarts:
            play(lab, "disconnect 3 1; run_for 9")
            lab.world.network.heal()
        play(lab, "settle; produce orders 0; settle")
        assert (lab.partition("orders", 0).isr, lab.partition("orders", 0).leader_epoch) == (isr, 1)
        assert {log.broker: log.end for log in lab.log("orders", 0)}[3] == (2 if 3 in isr else 1)
        until_quiet(lab.heal)
        assert lab.partition("orders", 0).isr == (1, 2, 3)
        assert {log.end for log in lab.log("orders", 0)} == {2}


def test_a_fenced_follower_waits_for_the_next_leader_epoch() -> None:
    """Its leader's epoch is newer, and it has broken off its session; another partition's fetch begins the next one.

    Kafka 2.4.1: server/AbstractFetcherThread.scala, onPartitionFenced
    """
    with lab_of("orders", {0: [1, 2], 1: [1, 2]}, brokers=3, generation="2.4", seed=1, config=CALM) as lab:
        play(lab, "produce orders 0; produce orders 1; settle")
        tp, leader = TopicPartition("orders", 0), process_of(lab, 1)
        known = leader.hosted[tp].state
        raised = {tp: PartitionState(known._replace(leader_epoch=1), (1, 2))}
        lab.world.run(leader.replicas.leader_and_isr(LeaderAndIsrRequest(3, 1, raised, (1, 2, 3))))
        lab.disconnect(1, 2)
        play(lab, "produce orders 0 acks=1; run_for 2; heal; run_for 2; produce orders 1 acks=1; run_for 30")
        assert [log.end for log in (*lab.log("orders", 0), *lab.log("orders", 1))] == [2, 1, 2, 2]
        assert lab.partition(*tp).isr == (1,)
        play(lab, "delete_controller; settle; reassign '{\"orders-0\": [2, 1]}'; settle")
        assert [log.end for log in lab.log("orders", 0)] == [2, 2]


def test_a_stopped_copy_is_not_fetched_again_by_0_10_until_the_leader_is_another_one() -> None:
    """StopReplica without deletion removes the fetcher; `makeFollower` is false for the same leader."""
    with lab_of("orders", {0: [2, 3, 1]}, brokers=3, generation="0.10", seed=1, config=CALM) as lab:
        tp, broker = TopicPartition("orders", 0), process_of(lab, 3)
        stop = StopReplicaRequest(1, broker.replicas.controller_epoch, (tp,))
        lab.world.run(lab.world.network.call(1, 3, stop))
        lab.run_for(16)
        assert lab.partition("orders", 0).isr == (2, 1)
        until_quiet(lab.kill, 2)
        assert lab.partition("orders", 0).leader == 1
        assert lab.partition("orders", 0).isr == (1, 3)


ORDERS = TopicPartition("orders", 0)


def lab_with(records: int, generation: str = "2.0", partitions: int = 1) -> Lab:
    """Three replicas of each partition; broker 1 leads partition 0."""
    lab = Lab(brokers=3, generation=generation, seed=7, config=QUIET)
    until_quiet(
        lab.create_topic,
        "orders",
        assignment={n: [n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1] for n in range(partitions)},
    )
    for _ in range(records):
        until_quiet(lab.produce, "orders", 0)
    return lab


def gauges(lab: Lab, broker: int) -> tuple[object, object]:
    """NumDelayedOperations and PurgatorySize of fetches."""
    shown = lab.metrics(broker)
    names = (f"{name},delayedOperation=Fetch" for name in ("NumDelayedOperations", "PurgatorySize"))
    return tuple(shown[name] for name in names)


def waiting(lab: Lab, leader: int) -> list[tuple[int, int]]:
    """Which followers' fetches wait at a leader, and from which offset each is."""
    lists = process_of(lab, leader).as_leader.fetch_purgatory.watchers.values()
    found = [op for watchers in lists for op in watchers if not op.is_completed]
    assert all(isinstance(op, FollowerFetch) for op in found)
    return sorted((op.request.replica, op.request.offset) for op in found)


def test_an_idle_leader_has_a_fetch_of_each_follower(generation: str) -> None:
    """Each record releases them; each comes back from the new end of the log.

    Those whose half second was over are on the list until somebody looks, as in Kafka.
    """
    listed = 2 if generation == "2.4" else 4
    with lab_with(1, generation) as lab:
        for end in (1, 2, 3):
            assert waiting(lab, 1) == [(2, end), (3, end)]
            assert gauges(lab, 1) == (2, listed)
            until_quiet(lab.produce, "orders", 0)
        copied = [r for r in lab.trace.slice(action="copy") if r.broker == 2]
        assert len(copied) == 4
        lab.run_for(3600)  # a fetch that would bring nothing is not sent anew
        assert gauges(lab, 1) == (2, listed) and gauges(lab, 2) == (0, 0)


def test_where_nothing_was_written_nothing_waits() -> None:
    with lab_with(0, partitions=30) as lab:
        assert [gauges(lab, broker) for broker in lab.brokers] == [(0, 0)] * 3
        until_quiet(lab.produce, "orders", 0)
        assert [gauges(lab, broker) for broker in lab.brokers] == [(2, 4), (0, 0), (0, 0)]


@pytest.mark.parametrize(("generation", "least", "most"), [("0.10", 500, 510), ("2.0", 500, 510), ("2.4", 0, 5)])
def test_a_high_watermark_releases_followers_since_2_4(generation: str, least: float, most: float) -> None:
    """Before KAFKA-8443 they hear of it when their fetch has waited for half a second."""
    with lab_with(1, generation) as lab:
        news = play(lab, "produce orders 0; settle")
        raised = {r.broker: r.time_ms for r in news if r.action == "high-watermark"}
        assert all(least <= raised[follower] - raised[1] <= most for follower in (2, 3))


def test_a_record_ends_the_half_second_of_a_high_watermark() -> None:
    """The fetch is completed once: by the record, not by its time as well."""
    with lab_with(1) as lab:
        since = len(lab.trace)
        for _ in range(3):
            play(lab, "produce orders 0; run_for 0.1")
        lab.settle()
        copied = [r for r in lab.trace[since:] if r.action == "copy"]
        assert sorted(r.broker or 0 for r in copied) == [2, 2, 2, 3, 3, 3]
        assert waiting(lab, 1) == [(2, 4), (3, 4)]


def test_a_leader_that_leads_no_more_lets_them_go(generation: str) -> None:
    """They wait at the next one then, the old leader among them."""
    with lab_with(2, generation) as lab:
        until_quiet(lab.kill, 1)
        assert lab.partition(*ORDERS).leader == 2
        assert waiting(lab, 2) == [(3, 2)]
        until_quiet(lab.start, 1)
        assert waiting(lab, 1) == [] and waiting(lab, 2) == [(1, 2), (3, 2)]
        until_quiet(lab.elect_preferred)
        assert lab.partition(*ORDERS).leader == 1
        assert waiting(lab, 1) == [(2, 2), (3, 2)] and waiting(lab, 2) == []


def test_who_fetches_no_more_has_none(generation: str) -> None:
    """A follower that lags, and one whose process has ended; both have one again afterwards."""
    with lab_with(1, generation) as lab:
        lab.lag(2, "orders", 0)
        assert waiting(lab, 1) == [(3, 1)]
        lab.kill(3)
        assert waiting(lab, 1) == []
        play(lab, "settle; catch_up 2; start 3; settle")
        assert waiting(lab, 1) == [(2, 1), (3, 1)]
        until_quiet(lab.delete_topic, "orders")
        assert waiting(lab, 1) == ([] if generation != "0.10" else [(2, 1), (3, 1)])  # 0.10 does not delete by default


def test_completed_ones_are_purged() -> None:
    """Followers that come and go leave theirs on the list of a partition in which nothing happens."""
    with lab_with(1) as lab:
        purgatory = process_of(lab, 1).as_leader.fetch_purgatory
        purgatory.purge_interval = 3
        for _ in range(3):
            play(lab, "lag 2 orders 0; catch_up 2; settle")
        lab.run_for(1)
        assert purgatory.watched <= purgatory.delayed + 3
        assert waiting(lab, 1) == [(2, 1), (3, 1)]


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_a_follower_that_the_new_controller_thinks_in_sync_comes_back(generation: str) -> None:
    """The dead controller was a follower: its leader takes it out of the ISR before the next controller knows.

    2.4's next controller takes it out itself. Kafka 2.0.1: cluster/Partition.scala, maybeExpandIsr, at every fetch
    """
    config = {**QUIET, "replica.lag.time.max.ms": 2000, "zookeeper.session.timeout.ms": 1000}
    with lab_of("orders", {0: [2, 1, 3]}, brokers=3, generation=generation, config=config, costs={"boot": 0.0}) as lab:
        play(lab, "produce orders 0; settle; kill 1")
        lab.run_until(lambda: bool(lab.trace.slice(action="shrink-isr")))
        until_quiet(lab.start, 1)
        assert lab.trace.slice(action="become-follower", broker=1)[-1].isr == (2, 1, 3)
        assert lab.partition("orders", 0).isr == (2, 3, 1)
