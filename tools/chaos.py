"""Chaos on a real ZooKeeper: it is killed, or its connections are cut, in the middle of failovers and shutdowns.

    python -m tools.chaos [ROUNDS] [SEED]   50 rounds by default, over all generations; exit status 1 when something
                                        that was acknowledged is lost, or the like

One round: an upheaval (the controller dies, a broker leaves ...), a request of an administrator and a note written into
ZooKeeper; after so many records of the trace ZooKeeper is struck. Then everything must come right again. The upheaval,
and the number of records after it, follow from the seed; the race decides which records those are.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka_ctl import KafkaCtlError, Lab
from kafka_ctl.brokers import leader
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab.view import PartitionView
from kafka_ctl.simulation import real_world
from kafka_ctl.trace import Record
from kafka_ctl.zookeeper.real.store import RemoteStore
from kafka_ctl.zookeeper.znodes import BrokerIdsZNode, DeleteTopicsZNode

CONFIG = {
    "zookeeper.session.timeout.ms": 1500,
    "replica.lag.time.max.ms": 2500,
    "auto.leader.rebalance.enable": False,
    "delete.topic.enable": True,
    "controlled.shutdown.retry.backoff.ms": 500,
}
"""Real time is short."""
BROKERS = (1, 2, 3, 4)
OUTAGES = (0.0, 0.3, 1.0, 2.5)
"""Seconds for which ZooKeeper stays away: sessions outlive some of them and not others."""
LATEST = 120
"""ZooKeeper is struck after at most so many records."""
PATIENCE = 60.0
"""Seconds within which everything must hold: on a busy machine a session may expire without a strike, just after the
lab was at rest. Lost records stay lost."""


def hurry() -> None:
    """Let nothing here wait for what it knows, or for long."""
    leader.PROPAGATION_CHECK, leader.PROPAGATION_QUIET, real_world.CERTAIN = 0.1, 0.2, 0.5


class Strike:
    """Hits ZooKeeper when the trace has got so many records; runs in the lab's own thread, between two of its steps."""

    def __init__(self, lab: Lab, how: str, after: int, chosen: random.Random) -> None:
        self.lab, self.how, self.at, self.chosen = lab, how, len(lab.trace) + after, chosen.random()
        self.done = threading.Event()
        lab.trace.listeners.append(self.record)

    def record(self, record: Record) -> None:
        if record.seq >= self.at:
            self.hit()

    def hit(self) -> None:
        if self.record not in self.lab.trace.listeners:
            return  # that was done before
        self.lab.trace.listeners.remove(self.record)
        store = self.lab.world.store
        assert isinstance(store, RemoteStore)
        sessions = sorted(store.sessions, key=lambda session: session.actor)
        if self.how == "kill":
            assert self.lab.zookeeper_server is not None
            self.lab.zookeeper_server.kill()
        elif self.how == "cut one" and sessions:
            sessions[int(self.chosen * len(sessions))].connection.cut()
        else:
            for session in sessions:
                session.connection.cut()
        self.done.set()

    def wait(self, seconds: float) -> None:
        """Hit now if the records did not come."""
        if not self.done.wait(seconds):
            self.lab.world.clock.call(self.hit)


def half_made(p: PartitionView) -> bool:
    """A partition whose first state the controller wrote without learning so: the answer was lost with the connection.

    When it writes once more, the znode is there, and it takes that for a failure; so does Kafka's.
    """
    return p.state == "NewPartition" and p.zk_version >= 0


class Chaos:
    """One cluster, and what it has acknowledged."""

    def __init__(self, generation: str, seed: int) -> None:
        self.rng = random.Random(f"{generation} {seed}")
        self.lab = Lab(BROKERS, generation, seed, zookeeper="embedded", config=CONFIG)
        self.topics: dict[str, int] = {}
        """The topics there must be, and how many partitions they have at least."""
        self.notes: dict[str, str] = {}
        self.targets: dict[tuple[str, int], tuple[int, ...]] = {}
        self.deleted: set[str] = set()
        self.count = self.healed = 0

    def acknowledged(self, call: Callable[..., object], *args: Any, **kwargs: Any) -> bool:
        """True if a call came to its end."""
        try:
            call(*args, **kwargs)
        except KafkaCtlError:
            return False
        return True

    # A round

    def play(self) -> str:
        """One round; returns what it was."""
        lab, rng = self.lab, self.rng
        self.count += 1
        how, after, outage = rng.choice(("kill", "kill", "cut all", "cut one")), rng.randint(1, LATEST), 0.0
        acts = [self.upheaval, self.request, self.note]
        rng.shuffle(acts)
        strike = Strike(lab, how, after, rng)
        reported = [act() for act in acts]
        strike.wait(1.0)
        if how == "kill":
            assert lab.zookeeper_server is not None
            time.sleep(outage := rng.choice(OUTAGES))
            lab.zookeeper_server.restart()
        self.come_right()
        self.heal()
        for broker in [id for id, view in lab.brokers.items() if view.state == "down"]:
            lab.start(broker)
        self.come_right()
        self.heal()
        return f"{', '.join(reported)}; {how} after {after} records" + f", back after {outage:g} s" * (how == "kill")

    def upheaval(self) -> str:
        """A broker goes; the controller in most cases."""
        lab = self.lab
        acting = next((id for id, view in lab.brokers.items() if view.is_controller), BROKERS[0])
        broker = acting if self.rng.random() < 0.6 else self.rng.choice(BROKERS)
        does: dict[str, Callable[[], object]] = {
            "kill": lambda: lab.kill(broker),
            "shutdown": lambda: lab.shutdown(broker, wait=False),
            "expire_session": lambda: lab.expire_session(broker),
            "delete_controller": lab.delete_controller,
        }
        name = self.rng.choice(sorted(does))
        self.acknowledged(does[name])
        return f"{name} {broker}" + " (controller)" * (broker == acting)

    def request(self) -> str:
        """An administrator asks for something; what was acknowledged must come true."""
        rng, topic = self.rng, f"t{self.count}"
        known = sorted(self.topics)
        name = rng.choice(("create", "create", "add", "move", "prefer", "delete")) if known else "create"
        some = rng.choice(known) if known else ""
        replicas = tuple(rng.sample(BROKERS, 3))
        if name == "create" and self.acknowledged(self.lab.create_topic, topic, partitions=3, replication_factor=3):
            self.topics[topic] = 3
        elif name == "add" and self.acknowledged(self.lab.add_partitions, some, self.topics[some] + 1):
            self.topics[some] += 1
        elif name == "move":
            self.targets.pop((some, 0), None)  # not even what was not acknowledged is sure not to be done
            if self.acknowledged(self.lab.reassign, {(some, 0): replicas}):
                self.targets[some, 0] = replicas
        elif name == "prefer":
            self.acknowledged(self.lab.elect_preferred)
        elif name == "delete":
            self.topics.pop(some)
            self.targets = {tp: target for tp, target in self.targets.items() if tp[0] != some}
            if self.acknowledged(self.lab.delete_topic, some):
                self.deleted.add(some)
        return f"{name} {topic if name == 'create' else some}"

    def note(self) -> str:
        """An operator writes a znode."""
        path, text = f"/note-{self.count}", f"{self.rng.random()}"
        if self.acknowledged(self.lab.write_znode, path, text):
            self.notes[path] = text
        return "note"

    # The conditions after a round

    def come_right(self) -> None:
        """Let the lab come to rest until everything holds; the AssertionError of the last look after `PATIENCE`."""
        end = time.monotonic() + PATIENCE
        while True:
            self.lab.settle()
            try:
                return self.check()
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def check(self) -> None:
        """One controller acts, whoever can lead does, and nothing acknowledged is lost."""
        lab = self.lab
        brokers, znodes, partitions = lab.brokers, lab.znodes(), lab.partitions()
        alive = {id for id, view in brokers.items() if view.state == "running"}
        acting = [id for id, view in brokers.items() if view.is_controller]
        assert lab.controller is not None and acting == [lab.controller.id], f"{acting} act as controller"
        registered = {int(path.rpartition("/")[2]) for path in znodes if path.startswith(f"{BrokerIdsZNode.path()}/")}
        assert registered == alive, f"{registered} are registered, {alive} run"
        to_delete = {path.rpartition("/")[2] for path in znodes if path.startswith(f"{DeleteTopicsZNode.path()}/")}
        for p in partitions:
            name = f"{p.topic}-{p.partition}: {p}"
            if alive & set(p.isr) and p.topic not in to_delete and not half_made(p):
                assert p.state == "OnlinePartition" and p.leader in alive and p.leader in p.isr, name
                assert (p.topic, p.partition) in brokers[p.leader].leads, f"{p.leader} does not know it leads {name}"
        there = {(p.topic, p.partition) for p in partitions}
        lost = {(topic, n) for topic, count in self.topics.items() for n in range(count)} - there
        assert not lost, f"lost: {sorted(lost)}"
        for path, text in self.notes.items():
            assert path in znodes and znodes[path][0] == text.encode(), f"lost: {path}"

    def heal(self) -> None:
        """The work that Kafka itself leaves undone and the next controller must do."""
        if any(map(half_made, self.lab.partitions())):
            self.healed += 1
            self.lab.delete_controller()
            self.come_right()
            assert not any(map(half_made, self.lab.partitions())), "the next controller did not help"

    def end(self) -> None:
        """With everybody there, every request that was acknowledged has been carried out.

        In 0.10 a deletion may be left to the next controller: seen once, on a busy machine.
        """
        lab = self.lab
        self.come_right()
        if lab.generation.name == "0.10" and not {p.topic for p in lab.partitions()}.isdisjoint(self.deleted):
            self.healed += 1
            lab.delete_controller()
            self.come_right()
        found = {(p.topic, p.partition): p for p in lab.partitions()}
        assert {p.topic for p in found.values()}.isdisjoint(self.deleted), "a deleted topic is still there"
        for tp, target in self.targets.items():
            assert found[tp].replicas == target, f"{tp} was to move to {target}: {found[tp]}"
        assert all(len(p.isr) == len(p.replicas) for p in found.values()), "a replica did not catch up"


def play(generation: str, rounds: int, seed: int, tell: Callable[[str], object], folder_for_trace: Path) -> int:
    """Rounds of chaos in one cluster; returns how often only the next controller could help.

    AssertionError or an error of the lab when something is wrong in the end; `chaos-trace.txt` then has the trace.
    """
    before = set(threading.enumerate())
    chaos = Chaos(generation, seed)
    server = chaos.lab.zookeeper_server
    assert server is not None and server.folder is not None and server.supervisor is not None
    folder, supervisor = server.folder, server.supervisor
    try:
        for number in range(rounds):
            began = time.monotonic()
            reported = chaos.play()
            tell(f"{generation:>4} round {number + 1}: {reported}; {time.monotonic() - began:.1f} s")
        chaos.end()
    except BaseException:
        (folder_for_trace / "chaos-trace.txt").write_text(chaos.lab.trace.text(), encoding="utf-8")
        raise
    finally:
        chaos.lab.close()
    end = time.monotonic() + 20
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, f"threads stayed behind: {left}"
    assert supervisor.poll() is not None and not folder.exists(), "ZooKeeper stayed behind"
    return chaos.healed


def main(argv: Sequence[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=50, help="how many, over all generations (default: 50)")
    parser.add_argument("seed", nargs="?", type=int, default=0)
    chosen = parser.parse_args(argv)
    if chosen.rounds < 1:
        parser.error(f"rounds cannot be {chosen.rounds}; it must be 1 or more")
    hurry()
    each, healed, began = -(-chosen.rounds // len(GENERATIONS)), 0, time.monotonic()
    for generation in GENERATIONS:
        healed += play(generation, each, chosen.seed, lambda line: print(line, flush=True), Path())
    print(f"{each * len(GENERATIONS)} rounds in {time.monotonic() - began:.0f} s: nothing acknowledged was lost, one")
    print("controller acts, whoever can lead does, no thread and no process stayed behind;")
    print(f"{healed} times a partition had to wait for the next controller, as it would in Kafka")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
