"""Answers to look at: each function takes the answer of a question and returns a picture that also says it in words.

    unavailability_by_cause, outages_over_time,
    outages_by_weight, compare                               of unavailability and compare     outages
    shutdown_vs_failure, rolling_restarts                    of the questions of that name     outages
    leader_churn, isr_churn, imbalance                       of the questions of that name     leaders
    failover_time, request_amplification, transition_counts  of the questions of that name     controllers
    durations                                                of reassignments and deletions    controllers

Spark counts; a few hundred numbers come here. `picture.alt` is the text that stands for it where it cannot be seen.
"""

from kafka_ctl.history.plots.controllers import durations, failover_time, request_amplification, transition_counts
from kafka_ctl.history.plots.leaders import imbalance, isr_churn, leader_churn
from kafka_ctl.history.plots.outages import (
    compare,
    outages_by_weight,
    outages_over_time,
    rolling_restarts,
    shutdown_vs_failure,
    unavailability_by_cause,
)

__all__ = [
    "compare",
    "durations",
    "failover_time",
    "imbalance",
    "isr_churn",
    "leader_churn",
    "outages_by_weight",
    "outages_over_time",
    "request_amplification",
    "rolling_restarts",
    "shutdown_vs_failure",
    "transition_counts",
    "unavailability_by_cause",
]
