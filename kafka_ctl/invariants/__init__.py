"""Invariants: properties that must always hold in a cluster, checked after every record of a run.

    of the controller   `controller.py`: what single records show
    quiescent           `quiescent.py`: what must be true when nothing is under way and nothing is broken
    of the data         `data.py`: what brokers promise to those who write and read

Each invariant is a class with a sentence that a learner understands. Some are broken by real Kafka: `mechanisms/` has a
class for each way, with its ticket and what must have happened; a violation is marked if that happened to its subject.
"""

from __future__ import annotations

from kafka_ctl.invariants.base import Invariant, Mechanism, Subject, Violation
from kafka_ctl.invariants.checker import INVARIANTS, Checker
from kafka_ctl.invariants.mechanisms import MECHANISMS

__all__ = ["INVARIANTS", "MECHANISMS", "Checker", "Invariant", "Mechanism", "Subject", "Violation"]
