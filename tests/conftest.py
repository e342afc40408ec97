"""Shared by all tests: property tests that run the same way every time, and without a stopwatch."""

import hypothesis
import pytest

from kafka_ctl.history import session

hypothesis.settings.register_profile("kafka_ctl", derandomize=True, deadline=None)
hypothesis.settings.load_profile("kafka_ctl")
# Every question of a test is asked of a few records, once: compiling it well costs more than it saves.
session._JAVA_OPTIONS.append("-XX:TieredStopAtLevel=1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` records the golden stories anew; commit only differences that you can explain."""
    parser.addoption("--rewrite", action="store_true", help="record the golden stories in tests/traces anew")
