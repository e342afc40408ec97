"""Writing a trace as the folders of logs that a real cluster of that generation leaves behind."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from kafka_ctl.history.files import naming
from kafka_ctl.kafka_log.write import NAMES, kafka_log
from kafka_ctl.trace.record import Recorder

HOUR = len("[2018-10-25 00")
"""Where the hour of a line ends."""


def write_logs(trace: Recorder, folder: str | os.PathLike[str], packed: bool = True) -> int:
    """Write each broker's `state-change.log` and `controller.log` and return how many files they are.

    There is one folder for each broker, `broker-1` and so on. As Kafka's own settings say, a log is rolled every hour:
    a finished one has the hour in its name, `state-change.log.2018-10-25-00`. With `packed` those are gzipped, as
    operators do. Files that are there already are replaced. Raises BadInput where nothing can be written, Unavailable
    where the disk is full.
    Kafka 2.0.1: config/log4j.properties
    """
    with naming(folder, "cannot be written"):
        return _write(trace, Path(folder), packed)


def _write(trace: Recorder, folder: Path, packed: bool) -> int:
    written, hour = 0, ""
    for broker in sorted({int(r.actor.removeprefix("broker-")) for r in trace if r.actor.startswith("broker-")}):
        place = folder / f"broker-{broker}"
        place.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            hours: dict[str, list[str]] = {}
            for line in kafka_log(trace, name, trace.generation, broker).splitlines(keepends=True):
                hour = line[1:HOUR].replace(" ", "-") if line.startswith("[") else hour  # an exception has no time
                hours.setdefault(hour, []).append(line)
            for hour, lines in hours.items():
                last = hour == max(hours)
                rolled = f"{name}.log" if last else f"{name}.log.{hour}"
                data = "".join(lines).encode()
                if packed and not last:
                    rolled, data = f"{rolled}.gz", gzip.compress(data, mtime=0)
                (place / rolled).write_bytes(data)
                written += 1
    return written
