"""What a controller has in its context, as text, computed from a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel

CONTEXT = ("Live", "Leaving", "Partitions", "Replicas", "Reassigned", "Deleted")
"""What is shown, in this order."""
REQUESTS = "/admin/reassign_partitions"
TOPICS = "/brokers/topics/"


def context(model: ClusterModel) -> dict[str, str]:
    """By the names of `CONTEXT`: brokers registered and in controlled shutdown, states counted, what is under way.

    Kafka 2.0.1: controller/ControllerContext.scala, ControllerContext
    """
    return {
        "Live": _listed(sorted(broker.id for broker in model.brokers.values() if broker.registered)),
        "Leaving": _listed(sorted(model.shutting_down)),
        "Partitions": _counted(seen.state for seen in model.partitions.values()),
        "Replicas": _counted(model.replicas.values()),
        "Reassigned": _listed(dict.fromkeys(reassigned(model))),
        "Deleted": _listed(sorted(model.topics_to_be_deleted)),
    }


def reassigned(model: ClusterModel) -> Iterator[str]:
    """The partitions that are to get other replicas: as the znode of requests says, or (2.4) those of the topics."""
    requests = details.json_object(model.znodes[REQUESTS].data).get("partitions") if REQUESTS in model.znodes else None
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            yield f"{request.get('topic')}-{request.get('partition')}"
    for path, node in sorted(model.znodes.items()):
        if path.startswith(TOPICS) and path.count("/") == 3:
            data = details.json_object(node.data)
            for key in ("adding_replicas", "removing_replicas"):
                moving = data.get(key)
                yield from (f"{path.removeprefix(TOPICS)}-{p}" for p in (moving if isinstance(moving, dict) else ()))


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "none"


def _counted(states: Iterable[str]) -> str:
    return _listed(
        f"{short(state)} {count}" for state, count in sorted(Counter(states).items()) if short(state) != "NonExistent"
    )
