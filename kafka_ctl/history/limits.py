"""Limits of generated histories, and the check of whole numbers.

Separate from `workload.py` because each start of the command line imports them, for the ranges of its options.
"""

from kafka_ctl.cluster import whole
from kafka_ctl.errors import BadInput, short

MOST = {"clusters": 1_000_000, "seed": 1_000_000_000, "buckets": 100_000}
"""Seeds of clusters are counted in millions (`Job.seed_of`); Spark has at most that many buckets."""
LONGEST_LIFE = 100_000
"""Hours of a cluster, eleven years: its incidents are drawn before it starts, and its records are kept in memory."""


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise BadInput unless an argument is a whole number in this range."""
    number = whole(value)
    if number is None or number < least or (most is not None and number > most):
        end = "on" if most is None else f"to {most:,}"
        raise BadInput(f"{name}={short(value)}: give a whole number from {least} {end}")
