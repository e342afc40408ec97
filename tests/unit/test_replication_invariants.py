"""Relations of a broker's fields that always hold, looked at after every command of random walks."""

from __future__ import annotations

import math

from kafka_ctl import Lab
from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.follower import FollowedPartition, State
from kafka_ctl.explore import play, walk
from kafka_ctl.lab import story

UNDER_WAY = {"task": (State.FETCHING, State.DELAYED), "waits": (State.WAITING,), "catch_up": (State.CATCHING_UP,)}


def check_followed(p: FollowedPartition) -> None:
    """The relations at `FollowedPartition`."""
    state = p.state
    assert (p.leader is None) == (state in (State.NONE, State.STOPPED))
    for field, states in UNDER_WAY.items():
        assert (getattr(p, field) is not None) == (state in states), field
    assert (p.stopped_since < math.inf) == (state is State.STOPPED)
    if state is State.LAGGING:
        assert p.lagging_since < math.inf
    elif state not in (State.NONE, State.STOPPED):
        assert p.lagging_since == math.inf
    if p.behind_since < math.inf:
        assert state in (State.FETCHING, State.DELAYED, State.CATCHING_UP)
    assert (p.tp in p.role.late) == (min(p.stopped_since, p.lagging_since, p.behind_since) < math.inf)
    if p.catch_up is not None:
        assert p.catch_up.partitions[p.tp] is p
        assert p.catch_up.leader == p.leader
    if p.leader is not None:
        assert p.known.leader == p.leader


def check(broker: Broker) -> None:
    """The relations at `FollowerRole`, `LeaderRole` and `Log`."""
    follower, leader, logs = broker.as_follower, broker.as_leader, broker.disk.logs
    for p in follower.partitions.values():
        check_followed(p)
    for id, thread in follower.threads.items():
        assert thread.partitions == sum(p.leader == id for p in follower.partitions.values())
    for log in logs.values():
        assert 0 <= log.start <= log.high_watermark <= log.end
        assert max(log.recovery_point, log.future_end) <= log.end
    for tp, ends in leader.follower_ends.items():
        assert broker.leads(tp)
        assert all(0 <= end <= logs[tp].end for end in ends.values())
    for tp, end in leader.epoch_start.items():
        assert broker.leads(tp)
        assert 0 <= end <= logs[tp].end
    for tp, hosted in broker.hosted.items():
        following = follower.partitions[tp].state is not State.NONE if tp in follower.partitions else False
        assert not (following and hosted.state.leader == broker.id), "a broker follows no partition that it leads"


def test_the_relations_hold_after_every_command(generation: str) -> None:
    """Records of many sizes, lags, deaths, pauses, cuts, moves and deletions; every state is met."""
    met = set()
    for seed in range(6):
        wanted = walk.busy(generation, seed)
        with Lab(**story.opening(wanted.opening)) as lab:
            for line in wanted.commands:
                if line.name == "produce" and seed % 2:
                    line = line._replace(kwargs={**line.kwargs, "records": 5, "size": 300_000})
                assert not isinstance(play.apply(lab, line), play.Failure)
                for broker in lab.world.brokers.values():
                    check(broker)
                    met |= {p.state for p in broker.as_follower.partitions.values()}
    assert met == set(State)
