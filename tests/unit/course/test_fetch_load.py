"""How the two gauges of a purgatory part under fetches of many partitions."""

import pytest
from prose import refuses
from tables import tabled

from kafka_ctl import BadInput
from kafka_ctl_course.fetch_load import fetch_load


@tabled
def test_completed_fetches_stay_on_their_other_lists(partitions: int, interval: int, watched: int, peak: int) -> None:
    """No fetch waits, however long the lists are; the reaper purges when it wakes: each 200 ms with this load."""
    assert fetch_load(partitions, purge_interval=interval) == (watched, peak, 0)


@pytest.mark.parametrize("given", [{"partitions": 0}, {"partitions": 1, "requests": 0}, {"partitions": 1, "wait": "x"}])
def test_numbers_begin_with_one(given: dict) -> None:
    refuses(BadInput, "1 or more", fetch_load, **given)
