"""Kafka's log lines: how we write them, how we read them, and those of other releases."""
