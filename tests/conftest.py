"""Shared by all tests: property tests that run the same way every time, and without a stopwatch."""

import hypothesis

hypothesis.settings.register_profile("kafka_ctl", derandomize=True, deadline=None)
hypothesis.settings.load_profile("kafka_ctl")
