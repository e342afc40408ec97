"""Requests by hand that wait at a broker."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from labs import lab_of
from prose import refuses

from kafka_ctl import Lab, Unavailable, UnknownName
from kafka_ctl_course.hand_requests import HandRequests, fetch_body

pytest.importorskip("crc32c", reason="needs what the wire needs")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_of("orders", {0: [1]}, brokers=1, wire=True, costs={"boot": 0}) as lab:
        yield lab


def test_an_answer_comes_when_there_is_something(lab: Lab) -> None:
    """Names stand in the order of the answers; a fetch that does not wait has its answer at once."""
    requests = HandRequests(lab, 1)
    requests.send("waits", "Fetch", 8, fetch_body("orders", {0: 0}))
    requests.send("asks", "Metadata", 1, {"topics": None})
    assert requests.wait("asks")["controller_id"] == 1 and requests.fetched("orders", 0)["high_watermark"] == 0
    lab.produce("orders", 0)
    part = requests.wait("waits")["responses"][0]["partitions"][0]
    assert requests.answered == ["asks", "waits"] and part["high_watermark"] == 1
    refuses(UnknownName, "waits", requests.wait, "wait")


def test_a_broker_that_stops_answers_nothing() -> None:
    with lab_of("orders", {0: [1]}, brokers=1, wire=True, costs={"boot": 0}) as lab:
        requests = HandRequests(lab, 1)
        requests.send("waits", "Fetch", 8, fetch_body("orders", {0: 0}))
    with pytest.raises(Unavailable):
        requests.wait("waits")


def test_a_program_ends_without_the_answer() -> None:
    """A port that takes a connection and is silent."""
    program = (
        "import socket, types; from kafka_ctl_course.hand_requests import HandRequests, fetch_body; "
        "port = socket.create_server(('127.0.0.1', 0)); address = f'127.0.0.1:{port.getsockname()[1]}'; "
        "requests = HandRequests(types.SimpleNamespace(bootstrap_servers=address, brokers=[1]), 1); "
        "requests.send('waits', 'Fetch', 8, fetch_body('orders', {0: 0})); port.accept()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
