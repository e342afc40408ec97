"""What things cost in virtual time: one table, in seconds.

The defaults come from published measurements: reading 100,000 partitions one ZooKeeper call at a time took
about 60 s for some 300,000 operations, so 0.2 ms each (KAFKA-5642, apache/kafka#3765). They are what makes
one ZooKeeper call at a time slow and a pipelined window of ten fast on the lab's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from kafka_ctl.errors import BadInput, UnknownName, short

MOST = 1_000_000
"""The highest cost, the longest time that a lab may be asked to let pass."""


@dataclass(frozen=True)
class Costs:
    """Seconds of virtual time; BadInput for what is no number of seconds."""

    zookeeper_round_trip: float = 0.0002
    """From sending an operation to having its answer; pipelined operations share it."""
    zookeeper_tick: float = 2.0
    """ZooKeeper's `tickTime`: how often it looks for sessions that have timed out. With it, a session ends between two
    thirds of its timeout and a tick after it, by the seed. With 0, it ends exactly at its timeout after its client fell
    silent, which makes a lesson's numbers round."""
    request: float = 0.0005
    """One way between two brokers (controller to broker, follower to leader)."""
    request_state: float = 0.000_005
    """What each partition state in a request adds for the broker that handles it."""
    byte: float = 0.000_000_008
    """What each byte of the records adds to a follower's fetch: 8 ns, a link of 1 Gbit/s."""
    boot: float = 0.05
    """From starting a broker's process to its first word to ZooKeeper; the seed spreads it."""
    stop: float = 0.1
    """From the end of a controlled shutdown to the end of the process: what is still to be sent gets sent."""
    catch_up: float = 0.2
    """From a follower's first fetch to its being in sync again."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
                raise BadInput(f"the cost {name} cannot be {short(value)}; it is a number of seconds, 0 or more")
            if value > MOST:
                raise BadInput(f"the cost {name} cannot be {short(value)}; it is a number of seconds, {MOST} or less")

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Costs:
        """The table with these entries changed; UnknownName or BadInput for what cannot stand in it."""
        known = [f.name for f in fields(cls)]
        if not isinstance(given, Mapping):
            raise BadInput(f"costs cannot be {short(given)}; they are a mapping, such as {{'boot': 0.1}}")
        for name in given:
            if name not in known:
                raise UnknownName("cost", name, known)
        return cls(**given)

    @property
    def changes(self) -> dict[str, float]:
        """The entries that are not as usual."""
        usual = asdict(Costs())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}
