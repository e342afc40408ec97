"""The options that give Kafka's scripts the address of the cluster, in three releases.

Read from the option parsers: Kafka 0.10.2.2, 2.0.1, 2.4.1: core/src/main/scala/kafka/admin/*Command.scala;
tools/ConsoleProducer.scala, ConsoleConsumer.scala, GetOffsetShell.scala

Separate from `lesson_19.py` because the notebook shows the table, too.
"""

from __future__ import annotations

from kafka_ctl.display import Shown, Table

RELEASES = ("0.10.2.2", "2.0.1", "2.4.1")
BROKERS, LIST, ZOOKEEPER = "--bootstrap-server", "--broker-list", "--zookeeper"
BOTH = f"{BROKERS} {ZOOKEEPER}"
OPTIONS = {
    "kafka-topics": (ZOOKEEPER, ZOOKEEPER, BOTH),
    "kafka-configs": (ZOOKEEPER, BOTH, BOTH),
    "kafka-reassign-partitions": (ZOOKEEPER, BOTH, BOTH),
    "kafka-preferred-replica-election": (ZOOKEEPER, ZOOKEEPER, BOTH),
    "kafka-leader-election": ("", "", BROKERS),
    "kafka-console-producer": (LIST, LIST, LIST),
    "kafka-console-consumer": (BOTH, BROKERS, BROKERS),
    "kafka-consumer-groups": (BOTH, BROKERS, BROKERS),
    "kafka-run-class kafka.tools.GetOffsetShell": (LIST, LIST, LIST),
    "kafka-log-dirs": ("", BROKERS, BROKERS),
    "kafka-delete-records": ("", BROKERS, BROKERS),
}
"""By script, its options in each of these releases; "" where there is no such script."""


def options(script: str, release: str) -> list[str]:
    """The options of a script. Raises KeyError for a script, ValueError for a release, that is not in the table."""
    return OPTIONS[script][RELEASES.index(release)].split()


class ScriptOptions(Shown):
    """The table of some releases, of all if none is named, with a row for each script. Raises ValueError for others."""

    def __init__(self, *releases: str) -> None:
        self.places = [RELEASES.index(release) for release in releases or RELEASES]

    def table(self) -> Table:
        rows = [(name, *(found[place] for place in self.places)) for name, found in OPTIONS.items()]
        return Table(("script", *(RELEASES[place] for place in self.places)), rows)
