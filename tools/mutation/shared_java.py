"""One Java process of Spark for the tests of all mutants.

Java starts for five seconds and compiles for thirty more. So it starts once, before any process is forked, and each
forked process connects to it anew: a connection that two processes shared would bring one the other's answers.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from kafka_ctl.history import session
from kafka_ctl.writing import temporary_folder

_where: dict[str, str] = {}
"""PySpark's variables that say where Java listens."""


def start() -> None:
    """Start Java, unless it runs; it ends with this process."""
    if not _where:
        folder = temporary_folder("kafka_ctl-mutation-")
        try:
            _where.update(session._start_java(folder / "connection", None, "1g"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def connect() -> None:
    """Connect this forked process to Java, where `spark()` finds the one context that there may be.

    Spark's tasks run in processes that import the package from its files. Here the functions that they call travel as
    code, so a mutant of a function gets there.
    """
    from pyspark import SparkContext, cloudpickle

    import kafka_ctl.history

    def context(self: Any, configuration: Any) -> Any:
        there = self._jvm.org.apache.spark.SparkContext.getOrCreate(configuration)
        return self._jvm.JavaSparkContext.fromSparkContext(there)

    setattr(SparkContext, "_initialize_context", context)  # noqa: B010 - mypy lets no method be replaced otherwise
    session.java = None  # it is the parent's to end
    os.environ.update(_where)
    SparkContext._ensure_initialized()
    for name in _where:
        del os.environ[name]  # programs that a test starts have a Java of their own
    cloudpickle.register_pickle_by_value(kafka_ctl.history)
