"""A drill in Spark's tasks."""

import pytest

from kafka_ctl import Lab, drill
from kafka_ctl.errors import BadInput
from kafka_ctl.history import spark


def test_tasks_find_what_this_process_finds() -> None:
    """The same rows in the same order; what is refused is one sentence."""
    lab = Lab(brokers=3)
    lab.create_topic("orders", 6, 2)
    lab.settle()
    assert drill(lab, "any one", spark=spark()).outcomes == drill(lab, "any one", jobs=1).outcomes
    with pytest.raises(BadInput, match="broker 1 is down"):
        drill(lab, "kill 1\nshutdown 1", spark=spark())
