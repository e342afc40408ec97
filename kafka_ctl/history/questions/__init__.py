"""Questions to histories: one function, one question, one DataFrame.

Each takes records (a DataFrame from `load` or `import_logs`, an Arrow table, or a lab's own `trace`) and says
in its docstring what the columns of its answer mean. Columns that end in `_ms` are milliseconds.
"""

from kafka_ctl.history.questions.departures import departures
from kafka_ctl.history.questions.leadership import leader_churn
from kafka_ctl.history.questions.transitions import transition_counts
from kafka_ctl.history.questions.unavailability import unavailability

__all__ = ["departures", "leader_churn", "transition_counts", "unavailability"]
