"""The control endpoint: calls over HTTP, what they answer, and `kafka-ctl serve` as a process."""

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from kafka_ctl.jupyter.launch import free_port
from kafka_ctl.testing.cluster import KafkaCluster
from kafka_ctl.testing.control import LARGEST, Server
from kafka_ctl.wire.client import ask

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(address: str, method: str = "POST", body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    try:
        with DIRECT.open(urllib.request.Request(address, body, headers, method=method), timeout=30) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.fixture(scope="module")
def control() -> Iterator[tuple[str, Server]]:
    server = Server(free_port())
    with KafkaCluster() as cluster:
        yield server.begin(cluster), server
        server.shutdown()
        server.server_close()


def test_calls_and_what_they_did(control: tuple[str, Server]) -> None:
    """Arguments stand in the address or in the body; state and story show what came of them."""
    address, _ = control
    assert call(f"{address}/create_topic", body=b'{"topic": "orders", "partitions": 2}') == (200, '{"result": null}\n')
    assert call(f"{address}/errors?kind=Produce&error=NOT_LEADER_FOR_PARTITION&requests=3")[0] == 200
    assert call(f"{address}/kill?broker=2")[0] == 200
    assert call(f"{address}/pause?broker=3&seconds=30")[0] == 200
    state = json.loads(call(f"{address}/state", "GET")[1])
    assert call(f"{address}/heal")[0] == 200
    assert state["brokers"][1:] == [
        {"id": 2, "state": "down", "paused": False},
        {"id": 3, "state": "running", "paused": True},
    ]
    assert [one["topic"] for one in state["partitions"]] == ["orders"] * 2
    assert state["faults"]["errors"][0]["requests"] == 3
    assert call(f"{address}/start?broker=2")[0] == 200
    story = call(f"{address}/story", "GET")[1].splitlines()
    assert story[0].startswith("lab ") and story[-4:] == ["kill 2", "pause 3 30", "heal", "start 2"]
    assert re.search(r"^POST /kill +broker$", call(address, "GET")[1], re.M)


@pytest.mark.parametrize(
    ("path", "method", "body", "status", "reply"),
    [
        ("kil?broker=1", "POST", None, 404, "unknown call 'kil'"),
        ("nothing", "GET", None, 404, "known: state, story"),
        ("kill", "GET", None, 405, "send it with POST"),
        ("kill", "POST", None, 400, "the call is"),
        ("kill?broker=9", "POST", None, 400, "kill: unknown broker 9; known: 1, 2, 3"),
        ("delete_topic?topic=x", "POST", None, 400, "delete_topic: unknown topic 'x'"),
        ("kill", "POST", b"[1]", 400, "be an object"),
        ("kill", "POST", b"{", 400, "is not JSON"),
        ("errors?kind=Produce&error=NONSENSE", "POST", None, 400, "unknown error of Kafka"),
    ],
)
def test_a_wrong_call(
    control: tuple[str, Server], path: str, method: str, body: bytes | None, status: int, reply: str
) -> None:
    """One sentence that says what is allowed."""
    answered, text = call(f"{control[0]}/{path}", method, body)
    assert answered == status and reply in json.loads(text)["error"]


def test_pages_of_a_browser_and_large_bodies_are_refused(control: tuple[str, Server]) -> None:
    address, server = control
    assert call(f"{address}/stop", Origin="http://elsewhere.example")[0] == 400
    assert call(f"{address}/kill", **{"Content-Length": str(LARGEST + 1)})[0] == 400
    assert not server.stopped.is_set()


@pytest.mark.parametrize("free", [False, True], ids=["given", "free"])
def test_serve_runs_until_stop(free: bool) -> None:
    """Its ready line comes when clients can connect; a port that is taken is one sentence and status 1."""
    port, control = (0, 0) if free else (free_port(21000), free_port(22000))
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", "serve", f"--port={port}", f"--control={control}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            line = serving.stdout.readline()
            found = re.fullmatch(r"Kafka 2\.4\.1 listens on (\S+); control: (\S+); ready after \d+\.\d s\n", line)
            assert found, line
            ports = [int(one.removeprefix("127.0.0.1:")) for one in found[1].split(",")]
            assert len({*ports}) == 3 and (free or ports == [port, port + 1, port + 2])
            assert len(ask(found[1], "Metadata", 9, {"topics": []})["brokers"]) == 3
            assert call(f"{found[2]}/state", "GET")[0] == 200
            control = int(found[2].rpartition(":")[2])
            command[-2:] = [f"--port={port}", f"--control={control}"]
            again = subprocess.run(command, capture_output=True, text=True)
            assert (again.returncode, again.stdout) == (1, "") and f"port {control} of" in again.stderr
            assert call(f"{found[2]}/stop")[0] == 200
            assert serving.wait(20) == 0
        finally:
            if serving.poll() is None:
                serving.send_signal(signal.SIGKILL)


def test_serve_says_how_many_ports_it_needs() -> None:
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", "serve", "--port=65535"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stdout == ""
    assert "--port 65535" in refused.stderr and "65533" in refused.stderr
