"""How a broker stops and starts again: connections, logs, session; what recovery costs; the state of the process."""

from contextlib import suppress

import pytest
from labs import QUIET, play, process_of, settled, until_quiet

from kafka_ctl import Costs, Generation, Lab
from kafka_ctl.brokers.states import BROKER_STATES
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.trace import Record

UNASKED = QUIET | {"controlled.shutdown.enable": False}
paths = pytest.mark.parametrize("asks", [True, False], ids=["controlled", "SIGTERM-alone"])
ORDERS = {0: [3, 1, 2], 1: [1, 2, 3]}


def opened(generation: str | Generation, asks: bool = True, costs: Costs | None = None) -> Lab:
    """Three brokers, of which 1 is controller; 3 leads the first of two partitions."""
    lab = Lab(3, generation=generation, seed=1, config=QUIET if asks else UNASKED, costs=costs)
    until_quiet(lab.create_topic, "orders", assignment=ORDERS)
    return lab


def own(lab: Lab, action: str, broker: int = 3) -> Record:
    """The last record of what a broker did."""
    return lab.trace.slice(kind="broker", action=action, broker=broker)[-1]


def elected(lab: Lab) -> Record:
    """The last election of a leader for orders-0."""
    return lab.trace.slice(kind="election", topic="orders", partition=0)[-1]


# The order: Kafka's `KafkaServer.shutdown`, in all three releases


@paths
def test_connections_close_first_then_the_logs_then_the_session(generation: str, asks: bool) -> None:
    with opened(generation, asks, Costs(stop=2)) as lab:
        until_quiet(lab.shutdown, 3)
        closed, stopped = own(lab, "shutting-down"), own(lab, "stopped")
        gone = lab.trace.slice(kind="zk", action="delete", path="/brokers/ids/3")[-1]
        assert gone.time_ms - closed.time_ms == pytest.approx(2000, abs=2)
        assert stopped.time_ms - closed.time_ms == pytest.approx(2000, abs=2)
        assert (elected(lab).time_ms < closed.time_ms) == asks
        assert (elected(lab).time_ms > gone.time_ms) == (not asks)


def test_requests_without_an_answer_fail_in_the_order_in_which_they_arrived() -> None:
    """So a story leaves the same trace each time. A walk has found it: their futures stood in a set."""
    with opened("2.0", asks=False) as lab:
        lab.lag(1, "orders", 0)
        sent = []
        for _ in range(12):
            play(lab, "produce orders 0 wait=false; run_for 0.05")
            sent.append(lab.trace.slice(kind="request", action="Produce")[-1].seq)
        play(lab, "shutdown 3; settle")
        failed = [r.cause for r in lab.trace.slice(kind="response", action="Produce") if r.error == "NETWORK_EXCEPTION"]
        assert failed == sent


def test_without_a_controlled_shutdown_nobody_leads_while_logs_close(generation: str) -> None:
    """What a controlled shutdown saves: all the time that closing the logs takes."""
    without = {}
    for asks in (True, False):
        with opened(generation, asks, Costs(stop=3)) as lab:
            lab.shutdown(3, wait=False)
            lab.run_until(lambda now: now.brokers[3].state == "shutting down")
            for _ in range(500):
                if lab.produce("orders", 0, acks=1).acknowledged:
                    break
                lab.run_for(0.01)
            without[asks] = lab.now - own(lab, "shutting-down").time_ms / 1000
    assert without[True] < 0.015  # the first request goes to a closed port, as the client has not asked anew yet
    assert without[False] == pytest.approx(3.0, abs=0.1)


@paths
def test_who_waits_for_an_answer_learns_that_the_connection_is_closed(generation: str, asks: bool) -> None:
    """A record waits for a follower that lags; the leader leaves meanwhile."""
    with opened(generation, asks) as lab:
        for follower in (1, 2):
            lab.lag(follower, "orders", 0)
        play(lab, "produce orders 0 wait=false; run_for 0.05; shutdown 3 wait=false")
        lab.run_until(lambda now: now.brokers[3].state in ("shutting down", "down"))
        lab.run_for(0.01)
        answer = lab.trace.slice(kind="response", action="Produce", actor="producer")[-1]
        assert answer.error in ("NETWORK_EXCEPTION", "NOT_LEADER_FOR_PARTITION")
        assert lab.brokers[3].state == "shutting down"
        assert answer.time_ms - own(lab, "shutting-down").time_ms < 5


def test_the_controller_acts_until_its_logs_are_closed(generation: str) -> None:
    """Its connections to others are its own: `kafkaController.shutdown` comes after `logManager.shutdown`."""
    with opened(generation, asks=False, costs=Costs(stop=2, zookeeper_tick=0)) as lab:
        lab.shutdown(1, wait=False)
        lab.run_until(lambda now: now.brokers[1].state == "shutting down")
        lab.create_topic("late", assignment={0: [2, 3]})
        lab.run_for(1)
        assert lab.brokers[1].state == "shutting down"
        assert lab.controller is not None and lab.controller.id == 1
        assert lab.brokers[2].leads[0] == ("late", 0)
        lab.settle()
        assert lab.controller is not None and lab.controller.id != 1
        assert lab.violations == ()


def test_a_broker_that_stops_follows_nobody(generation: str) -> None:
    with opened(generation, asks=False, costs=Costs(stop=2)) as lab:
        play(lab, "produce orders 1; shutdown 3 wait=false")
        lab.run_until(lambda now: now.brokers[3].state == "shutting down")
        play(lab, "produce orders 1 acks=1; run_for 1")
        assert [log.end for log in lab.log("orders", 1)] == [2, 2, 1]


def test_sigkill_may_come_while_logs_close() -> None:
    """`docker stop` with too little time: the session stays until it times out, and the logs are not closed."""
    with opened("2.0", costs=Costs(stop=5, zookeeper_tick=0)) as lab:
        lab.shutdown(3, grace=2)
        assert lab.brokers[3].state == "down"
        assert "/brokers/ids/3" in lab.znodes()
        play(lab, "settle; start 3; settle")
        assert own(lab, "recovering").detail == "logs=2 bytes=0"


# Recovery


@pytest.mark.parametrize("stops", ["kill", "shutdown", "bounce"])
def test_the_first_start_after_a_kill_recovers_logs(generation: str, stops: str) -> None:
    """`.kafka_cleanshutdown` is there after `shutdown`, also after one without the controller's help."""
    with opened(generation) as lab:
        getattr(lab, stops)(3)
        lab.settle()
        if stops != "bounce":
            until_quiet(lab.start, 3)
        recovered = lab.trace.slice(kind="broker", action="recovering", broker=3)
        assert [r.detail for r in recovered] == (["logs=2 bytes=0"] if stops == "kill" else [])
        assert lab.brokers[3].state == "running"


def starting(lab: Lab, broker: int) -> float:
    """The seconds from a broker's first word to ZooKeeper to its registration, in a new process."""
    until_quiet(lab.start, broker)
    begun = [r for r in lab.trace if r.kind == "zk" and r.action == "connect" and r.actor == f"broker-{broker}"][-1]
    return (own(lab, "registered", broker).time_ms - begun.time_ms) / 1000


def test_recovery_takes_time_by_what_was_not_flushed() -> None:
    """Nothing is flushed while a broker runs; a clean stop and a recovery flush all there is."""
    costs = Costs(recover_byte=0.000_001)
    with opened("2.0", costs=costs) as lab:
        lab.shutdown(3)
        usual = starting(lab, 3)
        for expected in (2.0, 0.0, 1.0):
            if expected:
                lab.produce("orders", 1, records=1000, size=int(1000 * expected))
            until_quiet(lab.kill, 3)
            assert starting(lab, 3) - usual == pytest.approx(expected + costs.recover_log, abs=0.002)
        details = [r.detail for r in lab.trace.slice(kind="broker", action="recovering", broker=3)]
        assert details == ["logs=2 bytes=2000000", "logs=2 bytes=0", "logs=2 bytes=1000000"]


def test_a_directory_that_failed_has_no_marker() -> None:
    with opened("2.0") as lab:
        play(lab, "fail_log_dir 3; shutdown 3")
        assert process_of(lab, 3).disk.clean == {1}
        until_quiet(lab.start, 3)
        assert own(lab, "recovering").detail == "logs=1 bytes=0"


def test_new_disks_have_nothing_to_recover() -> None:
    with opened("2.0") as lab:
        play(lab, "kill 3; settle; start 3 empty=true; settle")
        assert not lab.trace.slice(kind="broker", action="recovering")


def test_what_was_recovered_is_what_was_there() -> None:
    with opened("2.0") as lab:
        lab.produce("orders", 0, records=5, size=100)
        before = [log.entries for log in lab.logs()]
        for broker in (1, 2, 3):
            lab.kill(broker)
        lab.settle()
        for broker in (1, 2, 3):
            lab.start(broker)
        lab.settle()
        assert [log.entries for log in lab.logs()] == before
        assert lab.violations == ()


# The state of a broker, as `kafka.server:type=KafkaServer,name=BrokerState` shows it


def states(lab: Lab, broker: int) -> list[tuple[int, str]]:
    """The gauge and its name, each time it changes until all is at rest."""
    found: list[tuple[int, str]] = []

    def look(now: Lab) -> bool:
        state = (int(now.metrics(broker)["BrokerState"]), now.brokers[broker].broker_state)
        if found[-1:] != [state]:
            found.append(state)
        return False

    with suppress(ConditionNotMet):
        lab.run_until(look, limit=2)
    return found


def test_a_broker_goes_through_kafkas_states(generation: str) -> None:
    with opened(generation) as lab:
        lab.shutdown(3, wait=False)
        assert states(lab, 3) == [
            (3, "RunningAsBroker"),
            (6, "PendingControlledShutdown"),
            (7, "BrokerShuttingDown"),
            (0, "NotRunning"),
        ]
        lab.start(3)
        assert states(lab, 3) == [(1, "Starting"), (3, "RunningAsBroker")]
        lab.kill(3)
        assert states(lab, 3) == [(0, "NotRunning")]
        play(lab, "settle; start 3")
        assert states(lab, 3) == [(1, "Starting"), (2, "RecoveringFromUncleanShutdown"), (3, "RunningAsBroker")]


def test_without_a_controlled_shutdown_none_is_pending() -> None:
    with opened("2.0", asks=False) as lab:
        lab.shutdown(3, wait=False)
        assert states(lab, 3) == [(3, "RunningAsBroker"), (7, "BrokerShuttingDown"), (0, "NotRunning")]


def test_running_as_controller_is_older_than_all_generations() -> None:
    """KAFKA-3761: 0.10.0 shows 4 for a broker that was elected while it ran; one elected at its start shows 3."""
    for generation in ("0.10", "2.0", "2.4"):
        assert 4 not in {state.number for state in BROKER_STATES.values()}
        with opened(generation) as lab:
            until_quiet(lab.kill, 1)
            assert lab.metrics(lab.controller.id)["BrokerState"] == 3
    with opened(Generation("0.10").but(names_no_controller_state=False)) as lab:
        assert lab.metrics(1)["BrokerState"] == 3
        until_quiet(lab.kill, 1)
        now = lab.controller.id
        assert (lab.metrics(now)["BrokerState"], lab.brokers[now].broker_state) == (4, "RunningAsController")


def test_the_states_stand_in_the_picture() -> None:
    """The words under a broker's name, in the order in which they come."""
    with settled("2.0", {"orders": ORDERS}, 3, QUIET) as lab:
        since = len(lab.trace)
        play(lab, "shutdown 3; settle; start 3; settle; kill 3; settle; start 3; settle")
        words = [text for text in heads(lab, 3, since) if text not in ("up", "down")]
    assert words == [
        "pending shutdown",
        "shutting down",
        "starting",
        "dead, still registered",
        "starting",
        "recovering",
    ]


def heads(lab: Lab, broker: int, since: int) -> list[str]:
    from kafka_ctl.trace.model import ClusterModel
    from kafka_ctl.views.status import broker_state

    model, found = ClusterModel(), []
    for record in lab.trace:
        model.apply(record)
        text = broker_state(model, broker)[1]
        if record.seq >= since and found[-1:] != [text]:
            found.append(text)
    return found
