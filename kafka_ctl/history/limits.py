"""Limits of generated histories.

Separate from `workload.py` because each start of the command line imports them, for the ranges of its options.
"""

MOST = {"clusters": 1_000_000, "seed": 1_000_000_000, "buckets": 100_000}
"""Seeds of clusters are counted in millions (`Job.seed_of`); Spark has at most that many buckets."""
LONGEST_LIFE = 100_000
"""Hours of a cluster, eleven years: its incidents are drawn before it starts, and its records are kept in memory."""
