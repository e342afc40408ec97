"""A lab that plays the cluster of others: its znodes are read by a session that is no part of the lab."""

from __future__ import annotations

from kafka_ctl import Lab
from kafka_ctl.foreign.cluster import Cluster
from kafka_ctl.foreign.read_only import ReadOnlyStore
from kafka_ctl.foreign.reading import Reader
from kafka_ctl.foreign.watch import Watch
from kafka_ctl.lab.foreign import options_of


def read(lab: Lab) -> Cluster:
    """The lab's cluster as somebody else reads it."""
    reader = Reader("zk:2181/kafka")

    async def once() -> None:
        session = await ReadOnlyStore(lab.world.store).connect("reader", 18, lambda _: None, lambda _: None)
        await reader.read(session)
        await session.close()

    lab.world.run(once())
    return reader.cluster


def taken_over(lab: Lab, **options: object) -> Lab:
    """A lab that begins as this one is now, by its znodes alone."""
    given, origin = options_of("zk:2181/kafka", read(lab), options)
    made = Lab(**given)
    made.origin = origin
    return made


def watched(lab: Lab, seconds: float = 18.0) -> Watch:
    """A watch of the lab's cluster, on the lab's own clock."""
    return Watch(ReadOnlyStore(lab.world.store), lab.world.clock, "zk:2181/kafka", seconds=seconds)
