"""Who the brokers of a lab are: new ones, and what configurations and disks say of their ids."""

from __future__ import annotations

import functools

from kafka_ctl.brokers.disk import PATHS
from kafka_ctl.brokers.identity import NOT_CONFIGURED, Meta, check_configured
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.menu import BROKER, CLUSTER, DISK, WHEN_DOWN, Button, Call, Field, Given

BROKER_ID = Field("broker_id", "broker.id", "optional", read=menu.maybe)


def _join(_: str, given: Given) -> Call:
    rack = menu.text(given, "rack")
    return (menu.maybe(given, "broker"),), {"rack": rack} if rack else {}


def _meta(broker: str, given: Given) -> Call:
    cluster = menu.text(given, "cluster")
    said = int(broker), DISK.choice(given), menu.maybe(given, "broker_id")
    return (*said, cluster) if cluster else said, {}


class BrokerIdCommands(Commands):
    """Brokers that join, and ids that do not match."""

    @command(
        Button(CLUSTER, "Add broker…", "one more joins the cluster; without an id it gets a generated one",
               (Field("broker", "Its id", "optional"), Field("rack", "Rack", "optional")), call=_join, rank=-1)
    )  # fmt: skip
    def add_broker(self, broker: int | None = None, rack: str | None = None) -> None:
        """Start one more broker, with this id or, without one, with an id from ZooKeeper."""
        world, configured = self._world, self._configured(broker)
        if broker in world.brokers:
            raise BadInput(f"broker {broker} is there already: {', '.join(map(str, sorted(world.brokers)))}")
        self._needs_zookeeper("add_broker")
        place = min([0, *world.brokers]) - 1 if broker is None else broker
        process = world.add_broker(place, rack if rack is None else validate.name("a rack", rack))
        delay = world.boot_delay()
        self._fault("add_broker", broker, lambda: process.start(delay), detail=f"broker.id={configured}")

    @command(
        Button(BROKER, "Change broker.id…", "another id in its configuration, or none", (BROKER_ID,), WHEN_DOWN, rank=1)
    )
    def set_broker_id(self, broker: int, broker_id: int | None) -> None:
        """Change `broker.id` in the configuration of a broker that is down; None for none."""
        process, configured = self._broker(broker, "set_broker_id", running=False), self._configured(broker_id)
        change = functools.partial(setattr, process, "configured", configured)
        self._fault("set_broker_id", broker, change, detail=f"broker.id={configured}")

    @command(
        Button(BROKER, "Change meta.properties…", "what a disk says of its owner; no id removes the file",
               (DISK, BROKER_ID, Field("cluster", "cluster.id", "optional")), WHEN_DOWN, _meta, rank=1)
    )  # fmt: skip
    def set_meta(self, broker: int, directory: str, broker_id: int | None, cluster: str | None = None) -> None:
        """Change what `meta.properties` in a log directory (`/d0` or `/d1`) of a broker that is down says.

        None for the id removes the file.
        """
        files = self._broker(broker, "set_meta", running=False).disk.meta
        if directory not in PATHS:
            raise UnknownName("log directory", directory, PATHS)
        name = cluster if cluster is None else validate.name("a cluster", cluster)
        said = None if broker_id is None else Meta(validate.integer("a broker id", broker_id), name)
        change = functools.partial(files.__setitem__, directory, said)
        self._fault("set_meta", broker, change, detail=f"{directory}: {said or 'no file'}")

    def _configured(self, broker: int | None) -> int:
        """`broker.id` in a configuration; None for none."""
        return check_configured(
            NOT_CONFIGURED if broker is None else validate.integer("a broker id", broker), self.config
        )
