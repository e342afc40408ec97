"""Records in a lab: a producer that writes them, and a look at the logs of the replicas."""

from __future__ import annotations

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, short
from kafka_ctl.lab import menu, validate, view
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import PARTITIONS, Drawn
from kafka_ctl.lab.menu import PARTITION, Button, Call, Field, Given
from kafka_ctl.lab.producer import ACKS, Produced, Producer
from kafka_ctl.lab.settings import MAX_ID

MOST = 100_000
"""The most records that one command produces."""
LARGEST = 1 << 30
"""The most bytes of a record."""


ACKS_FIELD = Field("acks", "Acks", "choice", "all|1|0")


def _clicked(name: str, given: Given) -> Call:
    acks = ACKS_FIELD.choice(given)
    records = menu.number(given, "records")
    size = {"size": bytes} if (bytes := menu.maybe(given, "size")) else {}
    return menu.partition(name), {"records": records, "acks": int(acks) if acks.isdecimal() else acks} | size


class ProducerCommands(Commands):
    """The part of a lab that writes records and shows where they are."""

    _producer: Producer

    @command(
        Button(PARTITION, "Produce…", "a producer sends so many records to its leader",
               (Field("records", "Records", "number", "1"), Field("size", "Bytes of each", "optional"), ACKS_FIELD),
               call=_clicked),
        drawn=Drawn(6, lambda d: (
            (d.topic(), d.rng.randrange(PARTITIONS)), {"records": d.rng.randint(1, 3)}
            | ({"acks": 1} if d.maybe(1 / 3) else {}) | ({"wait": False} if d.maybe(0.6) else {}))),
    )  # fmt: skip
    def produce(
        self,
        topic: str,
        partition: int,
        records: int = 1,
        acks: int | str = "all",
        wait: bool = True,
        size: int = 0,
    ) -> Produced | None:
        """Let a producer send the next values to the leader: 1, 2, 3 and so on, in every partition by itself.

        `acks`: `all` (or -1) is answered when every in-sync replica has the records, 1 when the leader has, 0 not at
        all. Time passes until the outcome is known; with `wait=False` the records have only been sent. `size`: bytes of
        each record; copying them takes followers time, and can be throttled. What goes wrong is part of the outcome;
        UnknownName for a partition that does not exist, BadInput for what cannot be sent.
        """
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        count = validate.integer("the number of records", records, 1)
        if count > MOST:
            raise BadInput(f"the number of records cannot be {count}; one command produces {MOST} at most")
        if isinstance(acks, bool) or acks not in ACKS:
            raise BadInput(f"acks cannot be {short(acks)}; it is 0, 1 or all")
        bytes = validate.integer("the size of a record", size, 0, LARGEST)
        self.partition(*tp)
        sending = self._producer.send(tp, count, ACKS[acks], bytes)
        if wait:
            return self._world.run(sending)
        self._world.clock.call(lambda: self._world.clock.spawn(sending))
        return None

    def logs(self) -> list[view.LogView]:
        """The log of every replica that was ever written to, by topic, partition and broker."""
        return self._world.clock.call(lambda: view.logs(self._world.brokers))

    def log(self, topic: str, partition: int) -> list[view.LogView]:
        """The logs of one partition, by broker; none while nobody has produced. UnknownName if it does not exist."""
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        found = [log for log in self.logs() if log[:2] == tp]
        if not found:
            self.partition(topic, partition)
        return found
