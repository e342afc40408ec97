"""Archives of the classes of Spark and of ZooKeeper: `python -m tools.java_classes` makes those that are missing.

Tests and notebooks start Spark forty times, and ZooKeeper more often. A Java that maps the archive need not read, check
and link the classes anew, which is half of its work: Spark has 10,000. A Java that the archive does not fit, and one
without an archive, load them as always.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafka_ctl.errors import Unavailable
from kafka_ctl.setup.java import java_executable
from kafka_ctl.zookeeper.real import server

ARCHIVE, ZOOKEEPER = (Path(sys.prefix, f"{name}-classes.jsa") for name in ("spark", "zookeeper"))
QUICK = "-XX:TieredStopAtLevel=1"
"""For a Java that is asked little: to compile its code well costs more than that saves."""
LONGEST = 300
"""Seconds for Java to write the archive."""


def options(archive: Path = ARCHIVE) -> list[str]:
    """The options of a Java that is asked little and may use the archive, if there is one."""
    if not archive.exists() or " " in str(archive):  # Java takes options from its environment apart at spaces
        return [QUICK]
    return [QUICK, f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"]


def fits(archive: Path = ARCHIVE) -> bool:
    """True if there is an archive, and this Java can map it for these jars."""
    import pyspark

    jars = [Path(pyspark.__file__).parent / "jars" / "*"] if archive == ARCHIVE else server.zookeeper_jars()
    path = os.pathsep.join(map(str, jars))
    command = [java_executable(), "-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", path, "-version"]
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


def make_zookeeper() -> None:
    """The same for a ZooKeeper that a client asks a little."""
    from kazoo.client import KazooClient

    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, ZOOKEEPER.name)
        server.JAVA_OPTIONS += (f"-XX:ArchiveClassesAtExit={written}",)
        with server.EmbeddedServer() as own:
            client = KazooClient(own.address)
            client.start()
            client.create("/made", ephemeral=True)
            client.get_children("/", watch=print)
            client.transaction().commit()
            client.stop()
            assert own.supervisor is not None
            java = subprocess.check_output(["pgrep", "-P", str(own.supervisor.pid)], text=True)
            os.kill(int(java), signal.SIGTERM)
            ends = time.monotonic() + LONGEST
            while own.running and time.monotonic() < ends:
                time.sleep(0.1)
        if written.exists():
            shutil.move(written, ZOOKEEPER)


if __name__ == "__main__":
    try:
        if not fits():
            make()
        if not fits(ZOOKEEPER):
            make_zookeeper()
    except (ImportError, OSError, Unavailable) as missing:
        print(f"No archive of classes: {missing}", file=sys.stderr)
