"""Traces that the tests of the views draw: short runs of the lab, each made once."""

from __future__ import annotations

from functools import lru_cache

from kafka_ctl import Lab
from kafka_ctl.trace import Record, Trace

NASTY = "<script>alert('1')</script>\"&amp;]]>\\N\n\x00{0}"
"""What somebody might put into a name to break out of a picture, a page or a DOT text."""


@lru_cache
def failover() -> Trace:
    """Three brokers and a topic; the controller dies, comes back, and another broker shuts down."""
    with Lab(brokers=3, seed=7) as lab:
        lab.create_topic("orders", partitions=4, replication_factor=3)
        lab.settle()
        first = lab.controller
        assert first is not None
        lab.kill(first.id)
        lab.settle()
        lab.start(first.id)
        lab.settle()
        second = lab.controller
        assert second is not None
        lab.shutdown(next(b for b in (1, 2, 3) if b not in (first.id, second.id)))
        lab.settle()
        return lab.trace


@lru_cache
def sixty() -> Trace:
    """Five brokers and sixty partitions; one broker dies and returns, again and again."""
    with Lab(brokers=5, seed=7) as lab:
        lab.create_topic("orders", partitions=60, replication_factor=3)
        lab.settle()
        for broker in (1, 2, 3, 4, 5, 1, 2):
            lab.kill(broker)
            lab.settle()
            lab.start(broker)
            lab.settle()
        return lab.trace


def every_kind(name: str = "orders") -> list[Record]:
    """One record of each kind, with `name` wherever text from outside can stand."""
    common = {"topic": name, "partition": 0, "broker": 1, "leader": 1, "isr": (1, 2), "replicas": (1, 2)}
    rows = [
        {"kind": "broker", "action": "start", "actor": "broker-1", "broker": 1},
        {"kind": "zk", "action": "connect", "actor": "broker-1", "detail": f"session={name}"},
        {"kind": "zk", "action": "create", "path": "/controller", "target": "ephemeral", "detail": name},
        {
            "kind": "zk",
            "action": "create",
            "path": f"/brokers/topics/{name}",
            "target": "persistent",
            "detail": '{"version":1,"partitions":{"0":[1,2]}}',
        },
        {"kind": "zk", "action": "set", "path": f"/admin/{name}", "zk_version": 3, "detail": name},
        {"kind": "zk", "action": "multi", "path": f"/{name}", "error": name},
        {"kind": "zk", "action": "expired", "actor": "zookeeper", "detail": f"session=1 of {name}"},
        {"kind": "watch", "action": "fired", "path": f"/{name}", "target": name},
        {"kind": "event", "action": name, "target": "started"},
        {"kind": "event", "action": name, "actor": "admin", "topic": name},
        {"kind": "controller", "action": "elected", "broker": 1, "controller_epoch": 1},
        {"kind": "controller", "action": name, "broker": 1, "detail": name},
        {"kind": "partition", "action": "elect", "source": "NewPartition", "target": "OnlinePartition", **common},
        {"kind": "partition", "action": name, "source": name, "target": name, "error": name, **common},
        {"kind": "replica", "action": "join", "source": "NewReplica", "target": "OnlineReplica", **common},
        {"kind": "election", "action": name, "target": "unclean", "detail": name, **common},
        {"kind": "request", "action": name, "target": "sent", "broker": 2, "detail": name},
        {"kind": "response", "action": name, "actor": "broker-2", "broker": 2, "error": name},
        {"kind": "broker", "action": name, "actor": "broker-2", **common},
        {"kind": "fault", "action": name, "actor": "fault", **common},
        {"kind": "violation", "action": name, "actor": name, "detail": name},
    ]
    return [Record(seq=seq, time_ms=seq * 10.0, **{"actor": "controller-1", **row}) for seq, row in enumerate(rows)]
