"""The connections between brokers, as a leader sees its followers over them."""

import math

from labs import until_quiet

from kafka_ctl import Lab
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.requests import LeaderAndIsrRequest, PartitionState


def test_a_leader_that_is_a_broker_of_others(generation: str) -> None:
    """Its follower goes on: no broker of a lab is reached by it."""
    tp, state = TopicPartition("orders", 0), PartitionState(LeaderAndIsr(77, (77, 1), 0, 0, 1), (77, 1))
    with Lab(brokers=2, generation=generation) as lab:
        broker, network = lab.world.brokers[1], lab.world.network
        broker.live_brokers = (1, 2, 77)
        asked = LeaderAndIsrRequest(lab.controller.id, lab.controller.epoch, {tp: state}, (77,), broker.epoch)
        assert lab.world.run(broker.replicas.leader_and_isr(asked)).errors == {tp: None}
        lab.run_for(30)
        assert lab.brokers[1].state == "running"
        assert lab.world.clock.call(lambda: network.unreachable_since(77, 1)) == 0
        assert lab.world.clock.call(lambda: network.unreachable_since(2, 1)) == math.inf
        until_quiet(lab.kill, 2)
