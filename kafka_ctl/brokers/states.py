"""The states of a broker process; a lab knows them without loading a broker."""

from __future__ import annotations

from typing import NamedTuple

DOWN, STARTING, RECOVERING = "down", "starting", "recovering from unclean shutdown"
RUNNING, PENDING_SHUTDOWN, SHUTTING_DOWN = "running", "pending controlled shutdown", "shutting down"


class BrokerState(NamedTuple):
    """A state of a broker process: the number that the gauge `BrokerState` shows, and Kafka's name."""

    number: int
    name: str


BROKER_STATES = {
    DOWN: BrokerState(0, "NotRunning"),
    STARTING: BrokerState(1, "Starting"),
    RECOVERING: BrokerState(2, "RecoveringFromUncleanShutdown"),
    RUNNING: BrokerState(3, "RunningAsBroker"),
    PENDING_SHUTDOWN: BrokerState(6, "PendingControlledShutdown"),
    SHUTTING_DOWN: BrokerState(7, "BrokerShuttingDown"),
}
"""Kafka 2.0.1: server/BrokerStates.scala."""
RUNNING_AS_CONTROLLER = BrokerState(4, "RunningAsController")
"""Kafka 0.10.0.1: server/BrokerStates.scala; gone since 0.10.1.0 (KAFKA-3761)."""
