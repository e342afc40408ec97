"""What Spark's tasks need to run our functions: an interpreter with pyarrow, and this package."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_ctl.history.session import runs_here, session_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).parents[1]
_SHIPPED = "spark.kafka_ctl.shipped"


def ship_package(spark: SparkSession) -> None:
    """Have the session's tasks find this package.

    On this machine they run in this interpreter. Elsewhere the package is sent to them, once a session, as a zip file;
    what they must have themselves is this version of Python with pyarrow (Spark's setting `PYSPARK_PYTHON` names it).
    """
    if runs_here(spark):
        # A session that somebody else made runs whatever `python3` comes first on PATH.
        spark.sparkContext.pythonExec = sys.executable
    elif spark.conf.get(_SHIPPED, "no") != "yes":
        with ExitStack() as sent:
            if "connect" in type(spark).__module__:  # which has sent it when the call returns
                folder = Path(sent.enter_context(tempfile.TemporaryDirectory(prefix="kafka_ctl-")))
            else:
                folder = session_folder()
            spark.addArtifacts(str(packed(folder)), pyfile=True)
        spark.conf.set(_SHIPPED, "yes")


def packed(folder: Path) -> Path:
    """The package as a zip file in `folder`: its modules and Kafka's log messages, always the same bytes."""
    path = folder / "kafka_ctl.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in sorted([*PACKAGE.rglob("*.py"), PACKAGE / "kafka_log" / "messages.txt"]):
            entry = zipfile.ZipInfo(file.relative_to(PACKAGE.parent).as_posix())
            zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path
