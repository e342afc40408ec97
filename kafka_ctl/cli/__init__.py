"""The command line, `kafka-ctl`. Its modules are loaded when a command runs: lessons use `demo` where click is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit status."""
    try:
        from kafka_ctl.cli import commands

        commands.main(args)
    except KeyboardInterrupt:  # during the imports; `commands.status` has those of a command
        print("kafka-ctl: stopped", file=sys.stderr)
        sys.exit(130)
