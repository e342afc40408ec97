"""`kafka-ctl serve`: a small Kafka for the tests of programs in any language.

Separate from `commands.py` because a command is loaded when it is called.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

import click

from kafka_ctl.cli.terminal import echo
from kafka_ctl.errors import BadInput
from kafka_ctl.generation import GENERATIONS

EXAMPLES = """\
\b
Examples:
  kafka-ctl serve                         three brokers at 9092, 9093 and 9094
  curl -X POST 'localhost:9099/kill?broker=1'
                                          a fault; `curl localhost:9099` lists all
  curl -X POST 'localhost:9099/errors?kind=Produce&error=NOT_LEADER_FOR_PARTITION&requests=3'
                                          an error as the answer to the next three requests
  curl localhost:9099/story               what has been done so far, as a story
  kafka-ctl serve --port 0 --control 0    at free ports, which the line names
"""
PORT = click.IntRange(0, 65535)


@click.command(epilog=EXAMPLES)
@click.option("--brokers", type=click.IntRange(1, 20), help="Number of brokers; 3 by default.")
@click.option(
    "--port",
    type=PORT,
    default=9092,
    show_default=True,
    help="Port of the first broker; the ports of the others follow; 0: free ports.",
)
@click.option("--generation", type=click.Choice(list(GENERATIONS)), help="Generation of Kafka; 2.4 by default.")
@click.option("--control", type=PORT, default=9099, show_default=True, help="Port of HTTP control; 0: a free one.")
@click.option("--story", metavar="FILE", help="Begin with the lab and the commands of this story.")
def serve(brokers: int | None, port: int, generation: str | None, control: int, story: str | None) -> None:
    """Run a small Kafka for tests on 127.0.0.1; Ctrl-C or a POST to /stop ends it.

    It is not durable, not fast and not secure. It prints one line when clients can connect. The control endpoint takes
    faults over HTTP: kill, start, shutdown, pause, cut, delay, throttle, errors, and every other command of a lab.
    """
    if story is not None and (brokers is not None or generation is not None):
        raise BadInput("--story has the brokers and the generation in its first line; leave out the options for them")
    count = brokers or 3
    if story is None and port + count > 65536:
        raise BadInput(f"--port {port} leaves no ports for {count} brokers; it must be {65536 - count} or less")
    from kafka_ctl.testing.cluster import KafkaCluster
    from kafka_ctl.testing.control import Server

    began = time.monotonic()
    with ExitStack() as stack:
        server = Server(control)
        stack.callback(server.server_close)
        cluster = stack.enter_context(KafkaCluster(count, generation or "2.4", port or None, story))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stopped.set())
        address = server.begin(cluster)
        stack.callback(server.shutdown)
        kafka, seconds = f"Kafka {cluster.lab.generation.kafka}", time.monotonic() - began
        echo(f"{kafka} listens on {cluster.bootstrap_servers}; control: {address}; ready after {seconds:.1f} s")
        while not server.stopped.wait(0.5):
            cluster.check()
