"""Spark elsewhere: the same calls on a standalone cluster and through Spark Connect; and what is said without Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow.fs as pafs
import pytest
from sparkcluster import LOOPBACK, SHORT_LIVED, connect, standalone, why_no_cluster

from kafka_ctl import BadInput, Unavailable
from kafka_ctl.history import files, session
from kafka_ctl.history.files import filesystem
from kafka_ctl.history.session import SETTINGS
from kafka_ctl.paths import ROOT

BEGIN = """
import json, os, sys
from pathlib import Path
from kafka_ctl.history import Workload, generate, import_logs, live, load, load_arrow
from kafka_ctl.history import questions, simulate, spark, write_logs
folder, s = Path(sys.argv[1]), spark(master=sys.argv[2] if sys.argv[2:] else None)
small = Workload(brokers=(3, 3), topics=(2, 2), rate=6)
asked = {"clusters": 4, "hours": 1, "workload": small, "buckets": 4}
written = generate(s, **asked, out=(folder / "data").as_uri())
again = load_arrow(generate(None, **asked, out=folder / "here").path)
order = [("history", "ascending"), ("seq", "ascending")]
found = {"same": load_arrow(written.path).sort_by(order).equals(again.sort_by(order))}
"""
ANSWERS = """
trace = simulate(2, 1, workload=small)
write_logs(trace, folder / "logs")
logs = import_logs(s, (folder / "logs").as_uri())
live.keep(live.leaders(live.logs(s, folder / "logs")), folder / "leaders", once=True).awaitTermination()

def elections(records):
    return questions.leader_churn(records).agg({"elections": "sum"}).first()[0]

def named(table):
    return sum(row["kind"] == "partition" and (row["leader"] or -1) >= 0 for row in table.to_pylist())

found |= {
    "generated": [elections(load(s, (folder / "data").as_uri())), named(again)],
    "logs": [elections(logs), named(trace.to_arrow())],
    "live": s.read.parquet(str(folder / "leaders")).count(),
}
"""
CONF = """
found["conf"] = dict(s.sparkContext.getConf().getAll())
"""
END = """
def where(batches):
    import kafka_ctl, pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"file": [kafka_ctl.__file__], "folder": [os.getcwd()]})

places = s.range(0, 8, 1, 8).mapInArrow(where, "file string, folder string")
found |= {"session": type(s).__module__, "where": [tuple(row) for row in places.distinct().collect()]}
print(json.dumps(found))
"""
OF_ONE_RUN = re.compile(r"spark\.(app\.(id|initial|start|submit)|driver\.port|local\.dir|sql\.warehouse\.dir)")
"""Settings that Spark makes anew for each session."""


def run(folder: Path, program: str, settings: dict[str, str], *master: str) -> dict:
    """The program in a process that knows Spark's address from `master`, or else from the usual settings only."""
    outside = {n: v for n, v in os.environ.items() if n not in ("MASTER", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")}
    reported = subprocess.run(
        [sys.executable, "-c", BEGIN + program + END, str(folder), *master],
        cwd=ROOT,
        env=outside | {"JDK_JAVA_OPTIONS": SHORT_LIVED} | settings,
        capture_output=True,
        text=True,
    )
    assert reported.returncode == 0, reported.stderr[-3000:]
    return json.loads(reported.stdout)


def sound(reported: dict) -> None:
    """Every way of asking gives the same answers, and workers ran the package that was sent to them."""
    for asked in ("generated", "logs"):
        answer, plain = reported[asked]
        assert answer == plain > 0
    assert reported["live"] > 0
    sent(reported)


def sent(reported: dict) -> None:
    """Tasks generate what this process does, with the package that was sent to them."""
    assert reported["same"]
    assert reported["where"] and all("kafka_ctl.zip" in file for file, _ in reported["where"])


def test_a_standalone_cluster(tmp_path: Path) -> None:
    """Two workers, each with an executor that has done something; the address as an argument, and as a setting.

    Both give the same session, so one of them is asked the questions.
    """
    if reason := why_no_cluster():
        pytest.skip(reason)
    usual = LOOPBACK | SETTINGS | {"spark.executor.memory": "512m"}
    submit = " ".join(f"--conf {name}={value}" for name, value in usual.items())
    submit += f" --conf 'spark.executor.extraJavaOptions={SHORT_LIVED}' pyspark-shell"
    with standalone(tmp_path) as url:
        found = []
        for program, settings, master in ((ANSWERS + CONF, {}, (url,)), (CONF, {"MASTER": url}, ())):
            folder = tmp_path / ("argument" if master else "settings")
            folder.mkdir()
            reported = run(folder, program, settings | {"PYSPARK_SUBMIT_ARGS": submit}, *master)
            assert reported["session"] == "pyspark.sql.session"
            assert len({folder for _, folder in reported["where"]}) == 2
            sent(reported)
            found.append(reported)
    sound(found[0])
    same = [{n: v for n, v in each["conf"].items() if not OF_ONE_RUN.match(n)} for each in found]
    assert same[0] == same[1]


@pytest.mark.skipif(
    importlib.util.find_spec("grpc_status") is None, reason="grpcio-status is in benchmarks/requirements.txt"
)
def test_spark_connect(tmp_path: Path) -> None:
    """A client without a Java of its own."""
    with connect(tmp_path) as url:
        reported = run(tmp_path, ANSWERS, {"SPARK_REMOTE": url})
    sound(reported)
    assert reported["session"] == "pyspark.sql.connect.session"


def test_what_spark_connect_needs_is_reported() -> None:
    """Also where it is installed: the program is told that it is not."""
    code = "import importlib.util as u; find = u.find_spec; "
    code += "u.find_spec = lambda name, *more: None if name.startswith('grpc') else find(name, *more); "
    code += "from kafka_ctl.history import spark; spark()"
    reported = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"SPARK_REMOTE": "sc://127.0.0.1:1"},
        capture_output=True,
        text=True,
    )
    assert "Unavailable: Spark Connect needs grpc and grpc_status: pip install 'pyspark[connect]" in reported.stderr


def test_what_is_sent_is_the_package(tmp_path: Path) -> None:
    """All modules and the log messages, the same bytes each time; Python can run it, and reads lines with it."""
    (tmp_path / "again").mkdir()
    path = session.packed(tmp_path)
    assert path.read_bytes() == session.packed(tmp_path / "again").read_bytes()
    with zipfile.ZipFile(path) as zipped:
        names = zipped.namelist()
    tables = {"kafka_ctl/kafka_log/messages.txt", "kafka_ctl/trace/catalogue.txt", "kafka_ctl/brokers/config_keys.txt"}
    assert {"kafka_ctl/lab/lab.py", *tables} <= set(names)
    code = "import sys; sys.path[:0] = sys.argv[1:]; from kafka_ctl.history import simulate; "
    code += "from kafka_ctl.kafka_log.templates import templates_of; "
    code += "print(len(simulate(1, 1)) * len(templates_of('2.4').templates))"
    reported = subprocess.run(
        [sys.executable, "-I", "-c", code, str(path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert int(reported.stdout) > 0, reported.stderr


@pytest.mark.parametrize(
    ("asked", "remote", "message"),
    [
        ({"master": "here"}, None, "master='here': give a URL such as spark://host:7077"),
        ({"master": "spark://host:7077", "cores": 2}, None, "master and cores: give one of them"),
        ({"master": "spark://host:7077"}, "sc://127.0.0.1:1", "master and SPARK_REMOTE: give one of them"),
    ],
)
def test_a_master_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, asked: dict, remote: str | None, message: str
) -> None:
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    else:
        monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(BadInput, match=re.escape(message)):
        session.spark(**asked)


def test_without_spark_it_is_reported(tmp_path: Path) -> None:
    """Simulating, writing and reading Arrow need no Spark; questions do, and say so."""
    code = f"""
import sys
sys.modules["pyspark"] = None
from kafka_ctl.history import generate, load_arrow
generate(None, clusters=1, hours=1, out={str(tmp_path / "data")!r})
print(len(load_arrow({str(tmp_path / "data")!r})))
from kafka_ctl.history import questions
"""
    reported = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert int(reported.stdout) > 0
    assert "Unavailable: kafka_ctl.history.questions needs the package" in reported.stderr


def test_any_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, URIs, Hadoop's names for S3; what nobody knows is said with the cure."""
    assert filesystem(tmp_path) == (pafs.LocalFileSystem(), str(tmp_path), "")
    assert filesystem(tmp_path.as_uri())[1:] == (str(tmp_path), "file://")
    asked: list[str] = []

    def from_uri(uri: str) -> tuple[pafs.FileSystem, str]:
        asked.append(uri)
        return pafs.LocalFileSystem(), uri.partition("://")[2].rstrip("/")

    with monkeypatch.context() as patch:
        patch.setattr(files, "pafs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri)))
        assert filesystem("s3a://bucket/logs/")[1:] == ("bucket/logs", "s3a://")
        assert filesystem("s3a://bucket/logs")[1:] == ("bucket/logs", "s3a://")
    assert asked == ["s3://bucket/logs/", "s3://bucket/logs"]
    with pytest.raises(Unavailable, match="nowhere://"):
        filesystem("nowhere://host/path")
