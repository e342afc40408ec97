"""Kafka's own command line tools of three releases against labs of each generation, compared with real Kafka.

What they printed of real brokers is in `tests/conformance/tools/`. Needs Java, and Maven once; one JVM
runs all tools of a release.
"""

from collections.abc import Iterator

import pytest
from waiting import eventually
from wire_clients import listening
from zookeepers import beside_kafka, fetched, needed

from kafka_ctl import Lab
from tools.recorder import command_line as tools
from tools.recorder.release import RELEASES, TOOLS

pytestmark = [beside_kafka, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
pytest.importorskip("kafka", reason="needs kafka-python")


@pytest.fixture(scope="module", params=list(TOOLS))
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.Tools]:
    """The tools of one release; skipped where Maven cannot fetch them."""
    with tools.Tools(fetched(TOOLS[request.param]), tmp_path_factory.mktemp("tools")) as started:
        yield started


def is_known(lab: Lab) -> bool:
    """True if every broker's metadata has every partition."""
    known = [broker.metadata for broker in lab.brokers.values()]
    return all((p.topic, p.partition) in metadata for p in lab.partitions() for metadata in known)


@pytest.mark.parametrize("generation", list(RELEASES))
def test_tools_print_what_they_print_of_real_kafka(running: tools.Tools, generation: str) -> None:
    """Step by step: what they say, also of what this generation cannot do."""
    release = running.release.kafka
    by_zookeeper = release == "2.4.1"
    if by_zookeeper:
        needed()
    recorded = tools.read(tools.path(generation, release))
    store, config = "embedded" if by_zookeeper else "memory", {"delete.topic.enable": True}
    with listening(generation, zookeeper=store, config=config) as lab:
        found = []
        for step in tools.played(running, lab.bootstrap_servers, lab.world.address or ""):
            found.append(step)
            assert eventually(lambda: is_known(lab)), "the next tool may ask any broker"
        assert not lab.violations
        assert not lab.trace.slice(action="closed-connection")
    assert [step for step, _ in found] == [step for step, _ in recorded]
    differing = [place for place, one in enumerate(found) if one != recorded[place]]
    assert [found[place] for place in differing] == [recorded[place] for place in differing]
