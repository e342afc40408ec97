"""Mechanisms by which real Kafka breaks invariants: a class for each ticket, with conditions and subject.

    controllers.py   controllers that are deposed, elected, or know nothing of a broker's death
    metadata.py      requests that a broker never got, or that were wrong
    deletions.py     deletions that do not end, and what they leave behind
    requests.py      administrators' other requests: reassignments and changed assignments
    data.py          records that are lost, and replicas that join an ISR too early

A violation is excused only by a mechanism whose precondition is found in the records, for the partition, broker, topic
or controller that it is about. Where several apply, the first in the order here is named.
"""

from __future__ import annotations

from kafka_ctl.invariants.base import Mechanism, defined_in
from kafka_ctl.invariants.mechanisms import controllers, data, deletions, metadata, requests

MECHANISMS = defined_in((controllers, metadata, deletions, requests, data), Mechanism, "ticket")
"""All mechanisms."""


def breaking(invariant: str) -> tuple[type[Mechanism], ...]:
    """The mechanisms that break an invariant, given by its id."""
    return tuple(mechanism for mechanism in MECHANISMS if invariant in mechanism.breaks)
