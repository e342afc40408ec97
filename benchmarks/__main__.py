"""Runs the benchmarks and prints each figure as it comes: see `benchmarks/__init__.py`."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import import_module

from benchmarks.figures import figures, shorten

ALL = (
    *("importing", "simulator", "travel", "million", "exploring", "controller", "beside_kafka", "first_frame", "views"),
    *("mutants", "fresh_clone", "timing_wheel", "purgatory", "wire", "site"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the kit costs.")
    parser.add_argument("benchmark", nargs="*", help=f"which ones (default: all of {', '.join(ALL)})")
    parser.add_argument("--quick", action="store_true", help="once, and small: whether they run, not how fast")
    asked = parser.parse_args()
    chosen = asked.benchmark or ALL
    if unknown := set(chosen) - set(ALL):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}")
    print(f"Python {platform.python_version()}")
    for name in chosen:
        print(f"\n{name}", flush=True)
        part = import_module(f"benchmarks.{name}")
        if asked.quick:
            shorten(part)
        for figure in figures(part):
            print(f"  {figure.name:60} {figure.result:>24}   {figure.beside}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
