"""An archive of the classes that Spark loads: `python -m tools.java_classes` makes it where there is none that fits.

Tests and notebooks start Spark forty times. A Java that maps the archive need not read, check and link 10,000 classes
anew, which is half of its work. A Java that the archive does not fit, and one without an archive, load them as always.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kafka_ctl.errors import Unavailable
from kafka_ctl.setup.java import java_executable

ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
QUICK = "-XX:TieredStopAtLevel=1"
"""For a Java that is asked little: to compile its code well costs more than that saves."""
LONGEST = 300
"""Seconds for Java to write the archive."""


def options() -> list[str]:
    """The options of a Java that is asked little and may use the archive, if there is one."""
    if not ARCHIVE.exists() or " " in str(ARCHIVE):  # Java takes options from its environment apart at spaces
        return [QUICK]
    return [QUICK, f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:cds*=off"]


def fits() -> bool:
    """True if there is an archive, and this Java can map it for these jars."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [java_executable(), "-Xshare:on", f"-XX:SharedArchiveFile={ARCHIVE}", "-cp", jars, "-version"]
    return subprocess.run(list(map(str, command)), capture_output=True).returncode == 0


def make() -> None:
    """Have the Java of a small session write the classes that it has loaded."""
    from kafka_ctl.history import Workload, generate, import_logs, load, questions, session, simulate, write_logs

    workload = Workload(brokers=(3, 3), topics=(2, 2), rate=6)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, ARCHIVE.name)
        os.environ["JDK_JAVA_OPTIONS"] = f"{QUICK} -XX:+UseSerialGC -XX:ArchiveClassesAtExit={written}"
        spark = session.spark(cores=1)
        generate(spark, clusters=1, hours=1, workload=workload, buckets=1, out=f"{folder}/data")
        write_logs(simulate(1, 1, workload=workload), Path(folder, "logs"))
        for records in (load(spark, f"{folder}/data"), import_logs(spark, f"{folder}/logs")):
            questions.leader_churn(records).collect()
        java = session.java
        assert java is not None and java.stdin is not None
        spark.stop()
        java.stdin.close()
        java.wait(LONGEST)
        if written.exists():  # not by a Java that has no archive of its own classes
            shutil.move(written, ARCHIVE)


if __name__ == "__main__":
    try:
        if not fits():
            make()
    except (ImportError, Unavailable) as missing:
        print(f"No archive of Spark's classes: {missing}", file=sys.stderr)
