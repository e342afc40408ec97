"""Runs the benchmarks and prints a table: see `benchmarks/__init__.py`."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import import_module

from rich.console import Console
from rich.table import Table

ALL = (
    *("importing", "simulator", "travel", "exploring", "controller", "beside_kafka", "first_frame", "views"),
    *("mutants", "fresh_clone"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the kit costs.")
    parser.add_argument("benchmark", nargs="*", help=f"which ones (default: all of {', '.join(ALL)})")
    chosen = parser.parse_args().benchmark or ALL
    if unknown := set(chosen) - set(ALL):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}")
    console = Console()
    table = Table("what", "result", "beside", title=f"Python {platform.python_version()}", title_justify="left")
    for name in chosen:
        console.print(f"measuring: {name} ...", style="dim")
        for figure in import_module(f"benchmarks.{name}").measure():
            table.add_row(*figure)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
