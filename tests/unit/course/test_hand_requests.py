"""Requests by hand that wait at a broker."""

from collections.abc import Iterator

import pytest

from kafka_ctl import Lab, UnknownName
from kafka_ctl_course.hand_requests import HandRequests, fetch_body

pytest.importorskip("crc32c", reason="needs what the wire needs")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(brokers=1, wire=True, costs={"boot": 0}) as lab:
        lab.create_topic("orders", assignment={0: [1]})
        lab.settle()
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
    with pytest.raises(UnknownName, match="waits"):
        requests.wait("wait")
