"""The cost of a failure to a producer: the longest time without an acknowledgement."""

from __future__ import annotations

from itertools import pairwise

from kafka_ctl.errors import BadInput
from kafka_ctl.lab import validate
from kafka_ctl.lab.lab import Lab


def longest_gap(
    lab: Lab, topic: str, partition: int, seconds: float, every: float = 0.05, acks: int | str = "all"
) -> float:
    """Send a record every so often, for so many seconds; the longest time between two acknowledgements, in ms.

    The first gap begins with the call, and the last one ends with these seconds; then the lab settles. The fault is
    made before the call. Raises BadInput for acks=0, and as `lab.produce` does.
    """
    if acks == 0:
        raise BadInput("acks cannot be 0: then nothing is acknowledged; it must be 1 or all")
    if not validate.seconds("every", every):
        raise BadInput("every cannot be 0; it must be a number of seconds, more than 0")
    validate.seconds("seconds", seconds)
    start, began = len(lab.trace), lab.now * 1000
    for _ in range(round(seconds / every)):
        lab.produce(topic, partition, acks=acks, wait=False)
        lab.run_for(every)
    answers = lab.trace.slice(start=start, kind="response", action="Produce", topic=topic, partition=partition)
    acknowledged = [answer.time_ms for answer in answers if answer.error is None]
    moments = [began, *acknowledged, lab.now * 1000]
    lab.settle()
    return max(later - earlier for earlier, later in pairwise(moments))
