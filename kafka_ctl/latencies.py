"""The costs of operations in virtual time: one table, in seconds.

The defaults come from published measurements: reading 100,000 partitions one ZooKeeper call at a time took
63 s for some 300,000 operations, so 0.2 ms each (KAFKA-5642, apache/kafka#3765). They are what makes
one ZooKeeper call at a time slow and a pipelined window of ten fast on the lab's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from kafka_ctl.errors import BadInput, UnknownName, short

MOST = 1_000_000
"""The highest cost, the longest time that a lab may be asked to let pass."""


@dataclass(frozen=True)
class Costs:
    """Seconds of virtual time. Raises BadInput for anything that is not a number of seconds.

        from kafka_ctl import Costs, Lab
        costs = Costs(boot=1.0, zookeeper_tick=0.0)
        costs.changes  # {'zookeeper_tick': 0.0, 'boot': 1.0}
        lab = Lab(brokers=1, costs=costs)
        lab.now > 1.0  # True

    Each has a default from published or our own measurements.
    """

    zookeeper_round_trip: float = 0.0002
    """From sending an operation to having its answer; pipelined operations share it."""
    zookeeper_tick: float = 2.0
    """ZooKeeper's `tickTime`: how often it looks for sessions that have timed out. With it, a session ends between two
    thirds of its timeout and a tick after it, by the seed. With 0, it ends exactly at its timeout after its client fell
    silent, which makes a lesson's numbers round."""
    request: float = 0.0005
    """One way between two brokers (controller to broker, follower to leader)."""
    request_state: float = 0.000_005
    """The addition of each partition state in a request, for the broker that handles it."""
    deletion: float = 0.005
    """Each copy that a StopReplica deletes: the log is closed and its folder renamed. Brokers of 0.10.2.2 and
    2.0.1 on a busy machine needed 1 to 36 ms."""
    first_deletion: float = 0.25
    """The first of these copies in a process, which loads classes for it: there 185, 209 and 239 ms."""
    byte: float = 0.000_000_008
    """The addition of each byte of records to a follower's fetch: 8 ns, a link of 1 Gbit/s."""
    boot: float = 0.05
    """From starting a broker's process to its first word to ZooKeeper; the seed spreads it."""
    stop_processing: float = 0.02
    """From the end of a controlled shutdown, or SIGTERM without one, until the broker stops answering requests: other
    parts are closed first. With this time leaving brokers give the last answers that recorded ones gave."""
    stop: float = 0.1
    """From the moment a broker that stops answers nothing any more until it closes its session: logs are flushed and
    closed. With and without a controlled shutdown."""
    recover_log: float = 0.001
    """Each copy at the first start after an unclean shutdown; those of one log directory come one after the
    other."""
    recover_byte: float = 0.000_000_01
    """Each byte that was not flushed when the process ended."""
    catch_up: float = 0.2
    """From a follower's first fetch to its being in sync again; also before a copy between log directories begins."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
                raise BadInput(f"the cost {name} cannot be {short(value)}; it must be a number of seconds, 0 or more")
            if value > MOST:
                raise BadInput(
                    f"the cost {name} cannot be {short(value)}; it must be a number of seconds, {MOST} or less"
                )

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Costs:
        """The table with these entries changed; UnknownName or BadInput for what cannot stand in it."""
        known = [f.name for f in fields(cls)]
        if not isinstance(given, Mapping):
            raise BadInput(f"costs cannot be {short(given)}; they must be a mapping, such as {{'boot': 0.1}}")
        for name in given:
            if name not in known:
                raise UnknownName("cost", name, known)
        return cls(**given)

    @property
    def changes(self) -> dict[str, float]:
        """The entries that are not as usual."""
        return {name: value for name, value in vars(self).items() if value != getattr(Costs, name)}
