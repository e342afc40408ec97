"""The acts of a controller after a moment, as times: to lay several runs of one story beside each other.

All times are milliseconds of the lab's clock after that moment.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.trace.record import Record, Recorder

OPERATIONS = ("get", "set", "exists", "children", "create", "delete", "multi")
"""The actions of a ZooKeeper server."""


class Timing(NamedTuple):
    """Times: `operations` at ZooKeeper, by the controller's broker; `elections`; `requests` as pairs
    (sent, answered); `leaders`, by partition, when the elected broker first knew that it leads; `done`, when the last
    leader or follower had taken over what a LeaderAndIsr request says. `moment` is the zero, in ms."""

    moment: float
    operations: tuple[float, ...]
    elections: tuple[float, ...]
    requests: tuple[tuple[float, float], ...]
    leaders: dict[str, float]
    done: float

    def __str__(self) -> str:
        known = [f"{min(self.leaders.values()):.1f}", f"{max(self.leaders.values()):.1f}"] if self.leaders else []
        leaders = f"leaders known {' to '.join(dict.fromkeys(known))} ms" if known else "no new leader"
        return (
            f"{len(self.operations)} ZooKeeper operations, {len(self.elections)} elections, "
            f"{len(self.requests)} requests; {leaders}, all done {self.done:.1f} ms"
        )


def timing(trace: Recorder, moment: str, start: int = 0) -> Timing:
    """The times after the first record from `start` on whose action is `moment`, such as `expired`.

    Raises BadInput where there is none, or no controller that elects a leader or handles an event afterwards.
    """
    found = list(trace.slice(start=start))
    begin = next((n for n, record in enumerate(found) if record.action == moment), None)
    if begin is None:
        raise BadInput(f"no record from {start} on has the action {moment!r}")
    zero, after = found[begin].time_ms, found[begin:]
    acts = (r.actor for r in after if r.kind in ("election", "event"))
    actor = next((actor for actor in acts if actor.startswith("controller-")), None)
    if actor is None:
        raise BadInput(f"no controller elects a leader or handles an event after {moment!r}")
    broker = actor.replace("controller", "broker")
    elected = {(r.topic, r.partition) for r in after if r.kind == "election" and r.leader is not None}
    leaders: dict[str, float] = {}
    for r in after:
        if r.action == "become-leader" and (r.topic, r.partition) in elected:
            leaders.setdefault(f"{r.topic}-{r.partition}", r.time_ms - zero)
    return Timing(
        zero,
        tuple(r.time_ms - zero for r in after if r.kind == "zk" and r.action in OPERATIONS and r.actor == broker),
        tuple(r.time_ms - zero for r in after if r.kind == "election"),
        tuple(_requests(after, actor, zero)),
        leaders,
        max((r.time_ms - zero for r in after if r.action in ("become-leader", "become-follower")), default=0.0),
    )


def _requests(found: list[Record], controller: str, zero: float) -> list[tuple[float, float]]:
    """The times at which each request of a controller was sent and answered, without those that have no answer.

    A connection has one request on its way at a time, so the next answer of this kind is that of the oldest request.
    """
    waiting: dict[tuple[str, int | None], list[float]] = {}
    pairs = []
    for r in found:
        if r.kind == "request" and r.target == "sent" and r.actor == controller:
            waiting.setdefault((r.action, r.broker), []).append(r.time_ms - zero)
        elif r.kind == "response" and waiting.get((r.action, r.broker)):
            pairs.append((waiting[r.action, r.broker].pop(0), r.time_ms - zero))
    return sorted(pairs)
