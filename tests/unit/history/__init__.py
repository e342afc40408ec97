"""Histories without Spark: the replay of logs, the report of an incident."""
