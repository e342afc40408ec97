r"""The search of `kafka-server-stop.sh` for a broker: real processes, and the script's own pipe.

The script looks for `kafka\.Kafka` in what `ps ax` prints. That name stands behind the class path. Linux before 4.2
kept 4096 bytes of a command line, and the `ps` of BusyBox prints 2048 characters (KAFKA-4297). Where `COLUMNS` is in
the environment, `ps` prints no more than that.
Kafka 2.0.1: bin/kafka-server-stop.sh
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable

NAME = r"kafka\.Kafka"
"""The name that the script looks for: the class with which a broker starts."""
FIND = "grep -i '{}' | grep java | grep -v grep | awk '{{print $1}}'"
"""The script's filter for the lines of `ps ax`; it sends SIGTERM to every process whose number this prints."""
BROKER = "kafka.Kafka config/server.properties"
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain config/zookeeper.properties"
"""The ends of the command lines of a broker, and of the ZooKeeper that Kafka's own script starts."""
PROGRAMS = ("ps", "cut", "grep", "awk", "sh")
JAR = "/opt/kafka_2.12-2.0.1/libs/jetty-servlet-9.4.11.v20180605-{}.jar"


def why_not() -> str:
    """The reason why this cannot be tried here; empty when it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"no {', '.join(missing)} here" if missing else ""


def brokers_found(
    jars: Iterable[int], shown: int | None = None, *, name: str = NAME, program: str = BROKER
) -> dict[int, bool]:
    """Start a process for each of these numbers of jars on a class path.

    Returns, by number, whether the script's pipe finds the process.

    `shown`: how many characters of a line the script gets to see, as with an older `ps`; None for all that `ps` here
    shows. `name` is looked for, and `program` ends each command line. The processes are Python's and do nothing; they
    have ended when this returns, and nothing is sent to others.
    """
    stand_ins = {number: _stand_in(number, program) for number in jars}
    try:
        seen = f"ps ax | cut -c 1-{shown}" if shown else "ps ax"
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        command = ["sh", "-c", f"{seen} | {FIND.format(name)}"]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        return {number: str(process.pid) in found.split() for number, process in stand_ins.items()}
    finally:
        for process in stand_ins.values():
            process.kill()
            process.communicate()


def _stand_in(jars: int, ends: str) -> subprocess.Popen[bytes]:
    """A process that runs; Popen returns when its command line is what it is to be."""
    path = ":".join(JAR.format(number) for number in range(jars))
    program = (sys.executable, "-c", "input()", "java", "-Xmx1G", "-cp", path, *ends.split())
    return subprocess.Popen(program, stdin=subprocess.PIPE)
