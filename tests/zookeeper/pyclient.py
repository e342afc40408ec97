"""A producer with acks=all; it prints each record that was acknowledged, one a line.

    python tests/zookeeper/pyclient.py -client CLIENT -bootstrap HOST:PORT,... -topic TOPIC [-count N] [-rate N]

CLIENT is kafka-python, confluent or aiokafka, each without idempotence. It does what `goclient/main.go` does: it sends
TOPIC-1 to TOPIC-count, rate of them a second, without waiting for answers, and fewer when standard input ends.
A record that is refused is named on standard error.
"""

import argparse
import asyncio
import logging
import sys
import threading
import time
from collections.abc import Iterator

PATIENCE = 60
"""Seconds that a record may take, whatever happens to brokers."""


def answered(value: str, error: object = None) -> None:
    """Write down what became of a record."""
    if error is None:
        print(value, flush=True)
    else:
        print(f"{value}: {error!r}", file=sys.stderr, flush=True)


def records(topic: str, count: int, rate: int) -> Iterator[tuple[str, float]]:
    """The records, each with the seconds until the next one's turn, until there are enough or standard input ends."""
    stopped = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopped.set()), daemon=True).start()
    began = time.monotonic()
    for value in range(1, count + 1):
        if stopped.is_set():
            return
        yield f"{topic}-{value}", max(0.0, began + value / rate - time.monotonic())


def kafka_python(servers: list[str], topic: str, count: int, rate: int) -> None:
    import kafka

    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        retries=1000,
        enable_idempotence=False,
        request_timeout_ms=5000,
        max_in_flight_requests_per_connection=1,
        delivery_timeout_ms=PATIENCE * 1000,
        reconnect_backoff_max_ms=200,
    )
    for value, wait in records(topic, count, rate):
        sent = producer.send(topic, value.encode())
        sent.add_callback(lambda _, value=value: answered(value))
        sent.add_errback(lambda error, value=value: answered(value, error))
        time.sleep(wait)
    producer.flush(PATIENCE)
    producer.close()


def confluent(servers: list[str], topic: str, count: int, rate: int) -> None:
    import confluent_kafka

    settings = {
        "bootstrap.servers": ",".join(servers),
        "acks": "all",
        "enable.idempotence": False,
        "retry.backoff.ms": 50,
        "message.timeout.ms": PATIENCE * 1000,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    producer = confluent_kafka.Producer(settings)
    for value, wait in records(topic, count, rate):
        producer.produce(topic, value, on_delivery=lambda error, _, value=value: answered(value, error))
        producer.poll(wait)
    producer.flush(PATIENCE)


def aiokafka(servers: list[str], topic: str, count: int, rate: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=servers, acks="all", request_timeout_ms=PATIENCE * 1000, retry_backoff_ms=50
        )
        await producer.start()
        sent = []
        for value, wait in records(topic, count, rate):
            future = await producer.send(topic, value.encode())
            future.add_done_callback(lambda done, value=value: answered(value, done.exception()))
            sent.append(future)
            await asyncio.sleep(wait)
        await asyncio.wait(sent, timeout=PATIENCE)
        await producer.stop()

    asyncio.run(run())


CLIENTS = {"kafka-python": kafka_python, "confluent": confluent, "aiokafka": aiokafka}


def main() -> None:
    """Produce as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-client", choices=CLIENTS, required=True)
    parser.add_argument("-bootstrap", required=True)
    parser.add_argument("-topic", required=True)
    parser.add_argument("-count", type=int, default=1000)
    parser.add_argument("-rate", type=int, default=100)
    parser.add_argument("-release", help="not asked for: these clients ask brokers for the versions of their requests")
    given = parser.parse_args()
    logging.disable()  # what these libraries try again is no refusal
    CLIENTS[given.client](given.bootstrap.split(","), given.topic, given.count, given.rate)


if __name__ == "__main__":
    main()
