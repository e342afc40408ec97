"""How the two gauges of a purgatory part under fetches of many partitions."""

import pytest

from kafka_ctl import BadInput
from kafka_ctl_course.fetch_load import fetch_load


@pytest.mark.parametrize(
    ("partitions", "interval", "watched", "peak"),
    [(1, 1000, 0, 1), (2, 1000, 996, 1002), (10, 1000, 8964, 9010), (10, 100, 459, 910)],
)
def test_completed_fetches_stay_on_their_other_lists(partitions: int, interval: int, watched: int, peak: int) -> None:
    """Nobody waits, however long the lists are; each purge ends at the interval."""
    assert fetch_load(partitions, purge_interval=interval) == (watched, peak, 0)


@pytest.mark.parametrize("given", [{"partitions": 0}, {"partitions": 1, "requests": 0}, {"partitions": 1, "wait": "x"}])
def test_numbers_begin_with_one(given: dict) -> None:
    with pytest.raises(BadInput, match="1 or more"):
        fetch_load(**given)
