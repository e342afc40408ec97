"""What controllers and brokers believe, folded from records: what they have in memory."""

from __future__ import annotations

from labs import acting, until_quiet
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.explore.play import Failure, apply
from kafka_ctl.explore.walk import walk
from kafka_ctl.lab import story
from kafka_ctl.museum import find
from kafka_ctl.partition import NON_EXISTENT
from kafka_ctl.replica import NON_EXISTENT as NO_REPLICA
from kafka_ctl.trace import SET
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.frames import film
from kafka_ctl.views.status import Differences


def believed(lab: Lab) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int, int], str]]:
    """The states in the acting controller's context; what does not exist is left out."""
    context = acting(lab).context
    partitions = {tuple(tp): str(state) for tp, state in context.partitions.items() if state is not NON_EXISTENT}
    return partitions, {tuple(r): str(state) for r, state in context.replicas.items() if state is not NO_REPLICA}  # type: ignore[misc]


def folded(model: ClusterModel) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int, int], str]]:
    """The same from the trace."""
    partitions = {key: seen.state for key, seen in model.partitions.items() if seen.state != NON_EXISTENT}
    return partitions, {key: state for key, state in model.replicas.items() if state != NO_REPLICA}


def test_folded_beliefs_are_those_in_memory(generation: str) -> None:
    """After every command of random walks: of brokers always, of the acting controller whenever all is quiet.

    The walks have failovers, deletions, reassignments and faults.
    """
    reported = contexts = compared = failovers = 0
    for seed in range(40):
        drawn = walk(generation, 9000 + seed)
        model = ClusterModel()
        with Lab(**story.opening(drawn.opening)) as lab:
            for line in drawn.commands:
                if isinstance(apply(lab, line), Failure):
                    break
                model.apply_all(lab.trace.records[model.seq + 1 :])
                where = f"seed {9000 + seed}, after {line}"
                for broker in lab.world.brokers.values():
                    if not broker.listening:
                        continue
                    beliefs = model.brokers[broker.id].beliefs
                    assert beliefs.hosted == {tuple(tp): h.state[:3] for tp, h in broker.hosted.items()}, where
                    assert beliefs.metadata == {tuple(tp): state[:3] for tp, state in broker.metadata.items()}, where
                    reported += len(beliefs.hosted)
                active = [broker.id for broker in lab.world.brokers.values() if broker.controller.is_active]
                reads = lab.world.store.up  # else a new controller has not read what there is
                if line.name == "settle" and reads and len(active) == 1 and lab.controller is not None:
                    assert folded(model) == believed(lab), where
                    compared += 1
                controller = lab.world.acting()
                if line.name != "settle" or controller is None:
                    continue
                seen, context = model.controllers[controller.id], controller.context
                if seen.reads or seen.live is None:  # the settling ended before it had read everything
                    continue
                assert (seen.acts, seen.epoch) == (True, context.epoch), where
                assert seen.live == context.brokers.keys(), where
                assert seen.shutting_down == context.shutting_down, where
                gone = context.topics_to_be_deleted
                kept = {tuple(tp): s[:3] for tp, s in context.leadership.items() if tp.topic not in gone}
                assert {key: led for key, led in seen.leadership.items() if key[0] not in gone} == kept, where
                contexts += 1
            failovers += any(r.action == SET and r.kind == "partition" for r in lab.trace)
    assert reported > 1000
    assert contexts > 100 and compared > 100 and failovers > 10


def test_what_is_reported_of_a_difference(prose: Prose) -> None:
    """Only the aspects in which somebody differs; many partitions that differ alike are told once."""
    for name in ("7235a", "7235b", "1382", "2300", "6879"):
        with find(name).show() as run:
            prose(f"KAFKA-{name}: {Differences().update(ClusterModel().apply_all(run.broken.trace)).text()}")


def test_a_controller_has_not_read_the_isr_that_its_own_broker_wrote_as_a_leader() -> None:
    """It differs until the notification, as any other broker's controller would."""
    with Lab(brokers=2, seed=7) as lab:
        leader = lab.controller.id  # type: ignore[union-attr]
        until_quiet(lab.create_topic, "orders", assignment={0: [leader, 3 - leader]})
        until_quiet(lab.lag, 3 - leader, "orders", 0)
        shrunk = next(r for r in lab.trace if r.action == "shrink-isr")
        model = ClusterModel().apply_all(lab.trace.records[: shrunk.seq + 1])
        assert Differences().update(model).partitions["orders", 0].contexts.keys() == {leader}


def test_the_living_cluster_says_who_differs() -> None:
    """In the frames that are sent, and in the marks of its picture."""
    with find("7235a").show() as run:
        live = run.broken.live()
        last = live.film["frames"][-1]
        assert "broker 3: not notified" in last["differs"]
        (cluster,) = live.film["views"]
        assert "differs" in cluster["tracks"]["replica:orders-0@3"][-1][1].split()
        assert cluster["tracks"]["role:orders-0@3"][-1][2] == ["not notified"]
        assert "gone" in cluster["tracks"]["differs:orders-0@1"][-1][1]


def test_a_large_cluster_counts_what_differs() -> None:
    """Where replicas are counted, those that differ are counted too, and add up to nothing when all is quiet."""
    with Lab(brokers=3, seed=7) as lab:
        until_quiet(lab.create_topic, "orders", partitions=61, replication_factor=3)
        made = film(lab.trace)
        counts = [made.looks(n)["count:1:differs"].texts[0] for n in range(len(made))]
        assert "differ 61" in counts and counts[-1] == "differ 0"
