"""Everything that ever appears in some records: what a layout must have room for."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_ctl.trace import Record
from kafka_ctl.views.fold import Model, ZNode


def union(records: Sequence[Record]) -> Model:
    """A model with every broker, partition, replica and znode of the records, also those gone at the end.

    A partition's `replicas` are all that ever held it; a znode has the data it was created with.
    """
    model = Model()
    znodes: dict[str, ZNode] = {}
    members: dict[tuple[str, int], dict[int, None]] = {}
    for record in records:
        model.apply(record)
        path, key = (
            record.path or "",
            (record.topic or "", record.partition if record.partition is not None else -1),
        )
        if record.kind == "zk" and path in model.znodes:
            znodes.setdefault(path, model.znodes[path])
            if path.startswith("/brokers/topics/") and path.count("/") == 3:
                for found, seen in model.partitions.items():
                    if found[0] == path.rpartition("/")[2]:
                        members.setdefault(found, {}).update(dict.fromkeys(seen.replicas))
        if record.replicas and key in model.partitions:
            members.setdefault(key, {}).update(dict.fromkeys(record.replicas))
        if record.kind == "replica" and record.broker is not None:
            model.partition(*key)
            members.setdefault(key, {})[record.broker] = None
        if record.broker is not None and record.broker >= 0:
            model.broker(record.broker)
    for key, seen in model.partitions.items():
        seen.replicas = tuple(members.get(key, seen.replicas))
        for broker in seen.replicas:
            model.broker(broker)
            model.replicas[(*key, broker)] = ""
    model.znodes = znodes
    return model
