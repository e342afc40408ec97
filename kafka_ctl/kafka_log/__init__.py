"""Kafka's own log lines: written from a trace, and read from real logs."""
