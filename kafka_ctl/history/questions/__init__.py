"""Questions to histories: one function, one question, one DataFrame.

Each takes records (a DataFrame from `load`, `ImportedLogs` from `import_logs`, an Arrow table, or a lab's own `trace`)
and says in its docstring what the columns of its answer mean. Columns that end in `_ms` are milliseconds.
`resampled` takes the answer of `unavailability`: how far its numbers would move with other clusters.
"""

from kafka_ctl.history.questions.brokers import (
    broker_churn,
    preferred_leader_recovery,
    rolling_restarts,
    shutdown_vs_failure,
)
from kafka_ctl.history.questions.controllers import deletions, failover_time, reassignments, request_amplification
from kafka_ctl.history.questions.departures import departures
from kafka_ctl.history.questions.leaders import (
    imbalance,
    isr_churn,
    isr_states,
    leader_churn,
    transition_counts,
    unclean_exposure,
)
from kafka_ctl.history.questions.unavailability import compare, unavailability, unavailability_by
from kafka_ctl.history.questions.unavailability import resampled as resampled

__all__ = [
    "broker_churn",
    "compare",
    "deletions",
    "departures",
    "failover_time",
    "imbalance",
    "isr_churn",
    "isr_states",
    "leader_churn",
    "preferred_leader_recovery",
    "reassignments",
    "request_amplification",
    "rolling_restarts",
    "shutdown_vs_failure",
    "transition_counts",
    "unavailability",
    "unavailability_by",
    "unclean_exposure",
]
