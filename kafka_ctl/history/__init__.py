"""Histories: many clusters, or one over a long time, written down and questioned.

    spark()        a Spark session on this machine                     session
    generate()     simulate many clusters, write what happened         dataset, workload, layout
    grow()         write the same histories many times                 growth
    load()         read that again, as a DataFrame                     reading
    import_logs()  the logs of real clusters, in the same columns      log_import, log_chunks, log_files
    replay()       the same as a trace for every view, without Spark   log_replay
    incident()     the same as a report, with the player           log_report, outages
    simulate()     one of these clusters, as a trace                   workload
    write_logs()   a trace as the logs that brokers leave behind       log_folders
    [questions]    one function, one question, one answer
    [plots]        answers to look at
    [live]         questions to a cluster that is running

Simulating and writing need no Spark, nor does `load_arrow`; questions do, at any size, and say so where it is missing.
Records have the same columns everywhere (`schema`, explained in `docs/trace-format.md`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kafka_ctl.extras import needed_for

if TYPE_CHECKING:
    from kafka_ctl.history import live, plots, questions
    from kafka_ctl.history.dataset import Dataset, generate
    from kafka_ctl.history.growth import grow
    from kafka_ctl.history.log_folders import write_logs
    from kafka_ctl.history.log_import import ImportedLogs, import_logs
    from kafka_ctl.history.log_replay import Replay, replay
    from kafka_ctl.history.log_report import incident
    from kafka_ctl.history.reading import load, load_arrow
    from kafka_ctl.history.session import spark
    from kafka_ctl.history.workload import INCIDENTS, Workload, simulate

_MODULES = {
    "dataset": ("Dataset", "generate"),
    "growth": ("grow",),
    "log_folders": ("write_logs",),
    "log_import": ("ImportedLogs", "import_logs"),
    "log_replay": ("Replay", "replay"),
    "log_report": ("incident",),
    "reading": ("load", "load_arrow"),
    "session": ("spark",),
    "workload": ("INCIDENTS", "Workload", "simulate"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "INCIDENTS",
    "Dataset",
    "ImportedLogs",
    "Replay",
    "Workload",
    "generate",
    "grow",
    "import_logs",
    "incident",
    "live",
    "load",
    "load_arrow",
    "plots",
    "questions",
    "replay",
    "simulate",
    "spark",
    "write_logs",
]


def __getattr__(name: str) -> object:
    """Load a name at its first use: Spark and Arrow take their time."""
    if name not in __all__:
        raise AttributeError(f"kafka_ctl.history has no {name!r}; it has {', '.join(__all__)}")
    home = _HOMES.get(name)
    with needed_for(f"kafka_ctl.history.{name}"):
        module = import_module(f"kafka_ctl.history.{home or name}")
    value = globals()[name] = getattr(module, name) if home else module
    return value
