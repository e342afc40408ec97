"""Real producers of five libraries write 100 records a second each while brokers come and go; none is lost.

Each producer is a process of its own: `pyclient.py`, or `goclient/`, which is built from the Go module proxy once.
"""

import importlib.util
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from wire_clients import PATIENCE, closed_connections, eventually, listening, read_to_end

from kafka_ctl import Lab, TopicPartition

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")

HERE = Path(__file__).parent
RATE = 100
"""Records a second that each producer sends."""
PYTHON = {"kafka-python": "kafka", "confluent": "confluent_kafka", "aiokafka": "aiokafka"}
"""The clients of `pyclient.py`, and the packages that they need."""
GO = ("franz-go", "franz-go-idempotent", "sarama")
"""The clients of `goclient/`."""
REFUSED = {
    ("0.10", "aiokafka"): "from 0.13 on it sends batches of magic 2 to any broker, and so does real 0.10.2.2 refuse it",
    ("0.10", "franz-go-idempotent"): "there is no idempotence before 0.11",
}
"""Generations that do not take the records of a client, and why."""
BROKERS, PARTITIONS = 4, 2


@pytest.fixture(scope="session")
def goclient(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program with the Go clients; skipped where there is no Go, or no module proxy."""
    if shutil.which("go") is None:
        pytest.skip("the Go clients need Go: apt-get install golang")

    def go(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["go", *map(str, arguments)], cwd=HERE / "goclient", capture_output=True, text=True)

    if (downloaded := go("mod", "download")).returncode:
        pytest.skip(f"the modules of the Go clients cannot be downloaded: {downloaded.stderr[-300:]}")
    program = tmp_path_factory.mktemp("goclient") / "goclient"
    built = go("build", "-o", program, ".")
    assert built.returncode == 0, built.stderr
    return str(program)


def python_clients() -> dict[str, list[str]]:
    """The program of each client that is installed."""
    program = [sys.executable, "-W", "ignore", str(HERE / "pyclient.py")]
    return {client: program for client, package in PYTHON.items() if importlib.util.find_spec(package) is not None}


class Producer:
    """A producer in a process of its own, and the records that it was told are kept."""

    def __init__(self, lab: Lab, program: list[str], client: str) -> None:
        self.client, self.topic = client, client
        self.acknowledged: list[str] = []
        options = {
            "client": client,
            "bootstrap": lab.bootstrap_servers,
            "topic": self.topic,
            "rate": RATE,
            "count": RATE * int(PATIENCE),
            "release": lab.generation.name,
        }
        words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
        self._process = subprocess.Popen(
            [*program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.status, self.errors = -1, ""
        """How the process ended, and the records that the client refused: it may where no partition has a leader."""
        self._threads = [threading.Thread(target=self._listen), threading.Thread(target=self._hear_errors)]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        for line in self._process.stdout:
            self.acknowledged.append(line.strip())

    def _hear_errors(self) -> None:
        self.errors = self._process.stderr.read()

    def end(self) -> None:
        """Let it send nothing more, and wait for the answers to what it has sent."""
        self._process.stdin.close()
        try:
            self.status = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            for thread in self._threads:
                thread.join(PATIENCE)


@contextmanager
def started(lab: Lab, programs: dict[str, list[str]]) -> Iterator[list[Producer]]:
    """Producers of these clients at the same time; their processes end at the end."""
    with ExitStack() as stack:
        producers = []
        for client, program in programs.items():
            producers.append(Producer(lab, program, client))
            stack.callback(producers[-1].end)
        yield producers


def more(producers: list[Producer], number: int = RATE) -> None:
    """Wait until each producer has had so many more records acknowledged."""
    wanted = {each.client: len(each.acknowledged) + number for each in producers}

    def behind() -> list[str]:
        return [each.client for each in producers if len(each.acknowledged) < wanted[each.client]]

    eventually(lambda: not behind(), f"{number} more records acknowledged")


def in_sync(lab: Lab) -> None:
    """Wait until every replica is."""
    eventually(lambda: all(len(view.isr) == len(view.replicas) for view in lab.partitions()), "all in sync")


def controller(lab: Lab) -> int:
    """The broker that is controller, once there is one."""
    eventually(lambda: lab.controller is not None, "a controller")
    return lab.controller.id


def upheavals(lab: Lab, producers: list[Producer]) -> None:
    """A leader and the controller are killed, a leader leaves in good order, and every partition moves."""
    more(producers)
    for leaves, is_controller in ((lab.kill, False), (lab.kill, True), (lab.shutdown, False)):
        acting = controller(lab)
        broker = acting if is_controller else next(p.leader for p in lab.partitions() if p.leader != acting)
        leaves(broker)
        more(producers)
        lab.start(broker)
        in_sync(lab)
    moves = {
        TopicPartition(view.topic, view.partition): [id % BROKERS + 1 for id in view.replicas]
        for view in lab.partitions()
    }
    lab.reassign(moves)
    eventually(lambda: all(lab.partition(*tp).replicas == tuple(to) for tp, to in moves.items()), "all moved")
    more(producers)


def check_upheavals(generation: str, programs: dict[str, list[str]]) -> None:
    """Every record that was acknowledged to any of these clients can be read afterwards."""
    with listening(generation, brokers=BROKERS, config={"min.insync.replicas": 2}) as lab:
        for client in programs:
            lab.create_topic(client, partitions=PARTITIONS, replication_factor=3)
        lab.settle()
        with started(lab, programs) as producers:
            upheavals(lab, producers)
        assert {each.client: each.errors for each in producers if each.status} == {}
        read = {client: read_to_end(lab, client, partitions=PARTITIONS) for client in programs}
        lost = {each.client: len(set(each.acknowledged) - set(read[each.client])) for each in producers}
        assert lost == dict.fromkeys(programs, 0), {each.client: len(each.acknowledged) for each in producers}
        strange = {client: [one for one in found if not one.startswith(f"{client}-")] for client, found in read.items()}
        assert not any(strange.values()), strange
        once = read.get("franz-go-idempotent", [])
        assert len(once) == len(set(once))
        assert closed_connections(lab) == []


def test_no_record_acknowledged_to_a_python_client_is_lost(generation: str) -> None:
    """Through the death of a leader, of the controller, a controlled shutdown and a reassignment."""
    check_upheavals(generation, {c: p for c, p in python_clients().items() if (generation, c) not in REFUSED})


def test_no_record_acknowledged_to_a_go_client_is_lost(generation: str, goclient: str) -> None:
    """The same with franz-go, whose batches are compressed with snappy, and sarama."""
    check_upheavals(generation, {client: [goclient] for client in GO if (generation, client) not in REFUSED})
