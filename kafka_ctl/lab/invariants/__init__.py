"""What must always be true of a cluster, checked after every record of a run.

    of the controller   `controller.py`: what single records show
    at rest             `rest.py`: what must be true when nothing is under way and nothing is broken
    of the data         `data.py`: what brokers promise to those who write and read

Each invariant is a class with a sentence that a learner understands. Some can be broken by a real Kafka: that is
data as well, with the ticket that ended it, and a violation that is known so is marked.
"""

from __future__ import annotations

from kafka_ctl.lab.invariants.base import Breakable, Invariant, Violation
from kafka_ctl.lab.invariants.checker import INVARIANTS, Checker

__all__ = ["INVARIANTS", "Breakable", "Checker", "Invariant", "Violation"]
