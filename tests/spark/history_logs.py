"""Lines of real logs, and files of them, for the tests of the import.

Separate from `history_plain.py` because that computes answers.
"""

from __future__ import annotations

from pathlib import Path

STATE = "(state.change.logger)"
OLD = [  # Kafka 0.8 to 0.10
    f"[2016-03-01 10:00:00,000] TRACE Controller 3 epoch 7 changed partition [page.views-eu,4] state from "
    f"NonExistentPartition to NewPartition with assigned replicas 3,5 {STATE}",
    f"[2016-03-01 10:00:00,100] TRACE Controller 3 epoch 7 changed partition [page.views-eu,4] from NewPartition to "
    f"OnlinePartition with leader 3 {STATE}",
    f"[2016-03-01 10:00:01,000] TRACE Controller 3 epoch 7 started leader election for partition [page.views-eu,4] "
    f"{STATE}",
    f"[2016-03-01 10:00:01,005] ERROR Controller 3 epoch 7 initiated state change for partition [page.views-eu,4] from "
    f"OfflinePartition to OnlinePartition failed {STATE}",
    "kafka.common.NoReplicaOnlineException: nobody is left",
    "\tat kafka.controller.OfflinePartitionLeaderSelector.selectLeader(PartitionLeaderSelector.scala:75)",
    "Caused by: java.lang.IllegalStateException: so it is",
    "\t... 7 more",
]


def lay(folder: Path, name: str, lines: list[str] | bytes) -> Path:
    """Write a file of lines."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode())
    return path
