"""The command line, `kafka-ctl`."""

from kafka_ctl.cli.commands import main

__all__ = ["main"]
