"""The Kafka releases that stories are recorded from, or whose tools are run: their jars, how their JVMs are started.

Maven resolves them, once, into a folder of the user's cache, outside the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.paths import ROOT

HERE = Path(__file__).parent
RECORDINGS = ROOT / "tests" / "conformance"
"""The folder of stories and recordings."""
LOGGING = HERE / "kafka" / "log4j.properties"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-ctl" / "conformance"
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Release(NamedTuple):
    """One Kafka release: the kit's name of its generation, its version, its Scala, its ZooKeeper, how it runs."""

    generation: str
    kafka: str
    scala: str
    zookeeper: str
    logging: Path = LOGGING
    options: tuple[str, ...] = JAVA_OPTIONS
    profile: str = ""
    """The Maven profile that adds what the release has in other artifacts."""

    @property
    def jars(self) -> Path:
        return CACHE / self.kafka

    def resolve(self) -> Path:
        """The folder with the release's jars; Maven fetches them at the first need."""
        if not any(self.jars.glob("kafka_*.jar")):
            maven = shutil.which("mvn")
            if maven is None:
                raise SystemExit("recording needs Maven (`mvn`), which is not installed")
            subprocess.run(
                [
                    maven,
                    "-q",
                    "-B",
                    "-f",
                    str(HERE / "kafka" / "pom.xml"),
                    f"-Dkafka={self.kafka}",
                    f"-Dscala={self.scala}",
                    f"-Dzookeeper={self.zookeeper}",
                    *([f"-P{self.profile}"] if self.profile else []),
                    "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                    f"-DoutputDirectory={self.jars}",
                ],
                check=True,
            )
        return self.jars

    def java(self, *arguments: str, logs: Path | None = None) -> list[str]:
        """The command line of a JVM with the release on its class path."""
        logging = [f"-Dlog4j.configuration={self.logging.as_uri()}", f"-Dlogs={logs}"] if logs is not None else []
        return ["java", *self.options, *logging, "-cp", f"{self.resolve()}/*", *arguments]


RELEASES = {
    r.generation: r
    for r in (
        Release("0.10", "0.10.2.2", "2.12", "3.4.9"),
        Release("2.0", "2.0.1", "2.12", "3.4.9"),
        Release("2.4", "2.4.1", "2.12", "3.5.7"),
    )
}
"""By the name of the generation."""

TOOLS = {
    r.kafka: r
    for r in (
        RELEASES["2.4"],
        Release("", "2.8.2", "2.12", "3.5.9"),
        Release("", "3.9.0", "2.12", "3.8.4", profile="tools"),
    )
}
"""Releases whose command line tools are run against labs, by version."""
