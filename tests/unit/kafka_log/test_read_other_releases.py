"""Lines as operators' layouts, collectors and other releases write them; shapes found in public reports."""

import json

import pytest

from kafka_ctl.history.log_chunks import values_of
from kafka_ctl.history.log_files import read_texts
from kafka_ctl.kafka_log.read import LogLine

WHO = "[Controller id=1 epoch=2]"
LOGGED = (
    f"{WHO} Changed partition eu.orders-0 state from NonExistentPartition to NewPartition with assigned replicas 1,2"
)
NAMED = f"{LOGGED} (state.change.logger)"
AT = "2023-05-10 09:31:09,758"
ISO = "2023-05-10T09:31:09.758Z"
LAYOUTS = [
    f"[{AT}] INFO {NAMED}",
    f"{AT} INFO {NAMED} [controller-event-thread]",
    f"{AT} [controller-event-thread] INFO  state.change.logger - {LOGGED}",
    f"[{AT}] INFO {LOGGED} (state.change.logger:66)",
    f"{ISO} INFO {NAMED}",
    f"2023-05-10T11:31:09,758+0200 INFO {NAMED}",
    f"2023-05-10T04:01:09.758-05:30 INFO {NAMED}",
    f"2023-05-10T11:31:09,758+02 INFO {NAMED}",
    f"[2023-05-10 11:31:09,758 +0200] INFO {NAMED}",
    f"{AT} UTC [controller-event-thread] INFO {NAMED}",
    f"kafka-0 kafka [{AT}] INFO {NAMED}",
    f"May 10 09:31:09 host run.sh[12]: [{AT}] INFO {NAMED}",
    json.dumps({"timestamp": ISO, "level": "INFO", "logger": "state.change.logger", "message": LOGGED}),
    json.dumps({"@timestamp": ISO, "log.level": "INFO", "log.logger": "state.change.logger", "message": LOGGED}),
    json.dumps({"time": 1683711069758, "log": {"level": "INFO", "logger": "state.change.logger"}, "message": LOGGED}),
    json.dumps({"@timestamp": 1683711069.758, "message": f"[{AT}] INFO {NAMED}", "pod": "k-0"}),
    *(
        json.dumps({name: at, "level": level, "logger": "state.change.logger", "message": LOGGED})
        for name, at, level in (
            ("@timestamp", "2023-05-10T11:31:09.758+02:00", "info"),
            ("timestamp", "2023-05-10T04:01:09,758-0530", "WARNING"),
            ("time", "2023/05/10 11:31:09.758 +0200", "INFO"),
            ("time", "2023-05-10 09:31:09.758123456 UTC", "INFO"),
            ("timestamp", "1683711069758", "INFO"),
            ("instant", {"epochSecond": 1683711069, "nanoOfSecond": 758000000}, "INFO"),
        )
    ),
    *(
        prefix + json.dumps({"@timestamp": ISO, "level": "INFO", "logger": "state.change.logger", "message": LOGGED})
        for prefix in ("kafka-1  | ", "2023-05-10T10:00:00.123456789Z stdout F ")
    ),
]


def understood(text: str) -> LogLine:
    (reported,) = read_texts([(1, text)])
    assert reported.line is not None, reported.rejected
    return reported.line


@pytest.mark.parametrize("text", LAYOUTS)
def test_layouts_of_operators_and_collectors(text: str) -> None:
    """Strimzi's thread, log4j2's dash, time zones, syslog, flat and nested JSON."""
    line = understood(text)
    assert (line.time, line.actor, line.controller_epoch) == (1683711069758, "controller-1", 2)
    assert (line.action, line.topic, line.partition, line.replicas) == ("assign", "eu.orders", 0, (1, 2))


@pytest.mark.parametrize(
    ("at", "ms"),
    [("2023-05-10T09:31:09Z", 0), ("2023-05-10T09:31:09", 0), ("2023-05-10T11:31:09.7+02:00", 700)],
)
def test_a_time_in_json_without_milliseconds(at: str, ms: int) -> None:
    text = json.dumps({"@timestamp": at, "logger": "state.change.logger", "message": LOGGED})
    assert understood(text).time == 1683711069000 + ms


STATE_3_X = (
    "LeaderAndIsrPartitionState(topicName='a.b-c', partitionIndex=4, controllerEpoch=1, leader=2, leaderEpoch=3, "
    "isr=[2, 1], partitionEpoch=9, replicas=[1, 2], addingReplicas=[], removingReplicas=[], isNew=true, "
    "leaderRecoveryState=0)"
)
STARTS_3_X = (
    "with topic id Some(O7AfmUxOSC) starts at leader epoch 3 from offset 0 with partition epoch 9, high watermark 0, "
    "ISR [2,1], adding replicas [] and removing replicas [] (under-min-isr). Previous leader Some(2) and previous "
    "leader epoch was 0."
)
OTHERS = {
    f"TRACE [Broker id=7] Received LeaderAndIsr request {STATE_3_X} correlation id 11 from controller 1 epoch 1": (
        "received", 2, (2, 1), 3, 9),
    f"INFO [Broker id=7] Leader a.b-c-4 {STARTS_3_X}": ("become-leader", None, (2, 1), 3, 9),
    "ERROR [Broker id=7] Topic ID in memory: iJ does not match the topic ID for partition a.b-c-4 received: OG.": (
        "ignored", None, None, None, None),
    "ERROR [Broker id=7] Received LeaderAndIsrRequest with correlation id 1 from controller 2 epoch 5 for partition "
    "a.b-c-4 (last update controller epoch 4) but cannot become follower since the new leader 2 is unavailable.": (
        "ignored", 2, None, None, None),
    "TRACE Broker 7 completed LeaderAndIsr request correlationId 13 from controller 2 epoch 1 for the become-leader "
    "transition for partition [a.b-c,4]": ("done", None, None, None, None),
}  # fmt: skip


@pytest.mark.parametrize("reported", OTHERS)
def test_shapes_of_other_releases(reported: str) -> None:
    """Of 3.x and 0.8."""
    line = understood(f"[{AT}] {reported} (state.change.logger)")
    assert (line.actor, line.broker, line.topic, line.partition) == ("broker-7", 7, "a.b-c", 4)
    assert (line.action, line.leader, line.isr, line.leader_epoch, line.zk_version) == OTHERS[reported]


def test_a_controllers_line_names_its_broker() -> None:
    """So that elections in logs say who was elected."""
    line = understood(f"[{AT}] INFO [Controller id=5] 5 successfully elected as the controller (kafka.controller.K)")
    assert (line.action, 5 in values_of(line)) == ("elected", True)


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-10 09:31:09,758 INFO nothing",
        f"[{AT}] INFO hello",
        '{"message": 3}',
        "{}",
        "{",
        *(json.dumps({"time": at, "message": NAMED}) for at in ("now", "2023-02-30T00:00:00", {}, [], 1e99)),
    ],
)
def test_what_says_nothing_is_rejected(text: str) -> None:
    (reported,) = read_texts([(1, text)])
    assert reported.line is None and reported.rejected
