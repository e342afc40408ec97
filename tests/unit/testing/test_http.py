"""The control endpoint: calls over HTTP, what they answer, and `kafka-ctl serve` as a process."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import Prose

from kafka_ctl.cli.commands import status
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


def test_texts_in_an_address_stay_texts(control: tuple[str, Server]) -> None:
    """A topic may be called 42 or true; null is none where there may be none, and quotes are those of JSON."""
    address, server = control
    for given in ("42", "true", "null", "%221e3%22"):
        assert call(f"{address}/create_topic?topic={given}&partitions=2")[0] == 200
    assert {"42", "true", "null", "1e3"} <= {one.topic for one in server.cluster.lab.partitions()}
    asked = "entity_type=topics&entity_name=42&config=%7B%22retention.ms%22:1%7D"
    assert call(f"{address}/alter_config?{asked}")[0] == 200
    assert call(f"{address}/add_broker?broker=7&rack=1")[0] == 200
    assert call(f"{address}/add_broker?broker=8&rack=null")[0] == 200
    assert call(f"{address}/disconnect?source=7&target=zookeeper")[0] == 200
    story = call(f"{address}/story", "GET")[1].splitlines()
    added = """add_broker broker=7 rack='"1"'"""
    assert story[-3:] == [added, "add_broker broker=8", "disconnect 7 zookeeper"]


def test_the_story_and_the_end_wait_for_no_call(control: tuple[str, Server]) -> None:
    """Calls and the state wait for the call before them."""
    address, server = control
    asked, ended, release = threading.Event(), threading.Event(), threading.Event()

    def holds() -> bool:
        asked.set()
        return release.is_set()

    waiting = threading.Thread(target=server.cluster.wait_until, args=(holds,))
    state = threading.Thread(target=lambda: call(f"{address}/state", "GET") and ended.set())
    waiting.start()
    assert asked.wait(30)
    state.start()
    assert call(f"{address}/story", "GET")[0] == 200
    assert call(f"{address}/stop")[0] == 200
    assert server.stopped.wait(30) and not ended.is_set()
    server.stopped.clear()
    release.set()
    waiting.join(30)
    state.join(30)
    assert ended.is_set()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "PATCH"])
def test_other_methods(control: tuple[str, Server], method: str) -> None:
    """An error as JSON, too; after HEAD without a body."""
    status, text = call(f"{control[0]}/state", method)
    assert status == 405 and (method == "HEAD" or "GET" in json.loads(text)["error"])


def test_an_address_that_is_none(control: tuple[str, Server]) -> None:
    with socket.create_connection(control[1].server_address) as connection:
        connection.sendall(b"GET http://[ HTTP/1.0\r\n\r\n")
        assert b"unknown page" in connection.makefile("rb").read()


def test_a_line_that_is_no_request(control: tuple[str, Server]) -> None:
    """Python's own refusals are JSON as well."""
    with socket.create_connection(control[1].server_address) as connection:
        connection.sendall(b"GET / more HTTP/1.0\r\n\r\n")
        head, _, text = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert b" 400 " in head and "GET / more" in json.loads(text)["error"]


@pytest.mark.parametrize(
    ("path", "method", "body", "status", "reply"),
    [
        ("kil?broker=1", "POST", None, 404, "unknown call 'kil'"),
        ("nothing", "GET", None, 404, "known: state, story"),
        ("kill", "GET", None, 405, "send it with POST"),
        ("kill", "POST", None, 400, "the call is"),
        ("kill?self=1&broker=1", "POST", None, 400, "the call is kill"),
        ("kill?broker=9", "POST", None, 400, "kill: unknown broker 9; known: 1, 2, 3"),
        ("delete_topic?topic=x", "POST", None, 400, "delete_topic: unknown topic 'x'"),
        ("kill", "POST", b"[1]", 400, "be an object"),
        ("kill", "POST", b"{", 400, "is not JSON"),
        ("kill", "POST", b"broker=1", 400, 'an object such as {"broker": 1}'),
        ("sto", "POST", None, 404, "stop"),
        ("", "POST", None, 405, "with GET"),
        ("state", "POST", None, 405, "state is a page; ask for it with GET"),
        ("story/", "POST", None, 405, "with GET"),
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
    assert "Content-Length" in call(f"{address}/kill", **{"Transfer-Encoding": "chunked"})[1]
    for size in (LARGEST + 1, "1" * 5000):
        assert call(f"{address}/kill", **{"Content-Length": str(size)})[0] == 400
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
            assert again.stderr.endswith("; port 0 takes a free one\n")
            assert call(f"{found[2]}/stop")[0] == 200
            assert serving.wait(20) == 0
        finally:
            if serving.poll() is None:
                serving.send_signal(signal.SIGKILL)


def test_serve_begins_with_a_story(tmp_path: Path) -> None:
    """The file may be called as a story begins."""
    (tmp_path / "lab.txt").write_text("lab brokers=1 generation=2.0\n", "utf-8")
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", "serve", "--port=0", "--control=0", "--story=lab.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as serving:
        try:
            assert serving.stdout is not None
            line = serving.stdout.readline()
            assert re.match(r"Kafka 2\.0\.1 listens on 127\.0\.0\.1:\d+; control: ", line), line
        finally:
            serving.kill()


def test_serve_says_how_many_ports_it_needs() -> None:
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", "serve", "--port=65535"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stdout == ""
    assert "--port 65535" in refused.stderr and "65533" in refused.stderr


def test_serve_refuses_a_port_of_a_storys_brokers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, story = free_port(20100), tmp_path / "story.txt"
    story.write_text("lab brokers=2\n", "utf-8")
    assert status(["serve", f"--story={story}", f"--port={port}", f"--control={port + 1}"]) == 2
    assert f", {port} to {port + 1}; " in capsys.readouterr().err


@pytest.mark.parametrize(("options", "ports"), [((), "19700 to 19702"), (("--brokers", "1"), "19700")])
def test_serve_refuses_one_port_for_two(prose: Prose, options: tuple[str, ...], ports: str) -> None:
    """The port of control must not be one of the brokers'; where a story has these, at least not that of the first."""
    control = ports[-5:]
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", "serve", "--port=19700", f"--control={control}"]
    refused = subprocess.run([*command, *options], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "") and ports in refused.stderr
    prose(refused.stderr)
