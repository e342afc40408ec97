"""Shared by the tests of the package's parts."""

from collections.abc import Iterator

import pytest
from machines import Bench, bench


@pytest.fixture
def stage() -> Iterator[Bench]:
    """A running controller of 2.0 and its state machines."""
    with bench() as made:
        yield made
