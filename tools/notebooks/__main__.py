"""The command `python -m tools.notebooks`: runs and saves notebooks, with their minutes.

`minutes` writes the minutes alone, `editions` makes the editions, `run` runs them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT
from tools import editions
from tools.notebooks import minutes, notebooks, run_editions, save


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == ["editions"]:
        return editions.main(given[1:])
    if given[:1] == ["run"]:
        return run_editions.main(given[1:])
    alone, given = given[:1] == ["minutes"], given[1:] if given[:1] == ["minutes"] else given
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks",
        usage="%(prog)s [NOTEBOOK ...]\n"
        "       %(prog)s minutes [NOTEBOOK ...]\n"
        "       %(prog)s run [STARTER ...]\n"
        "       %(prog)s editions [--check] [--slides FOLDER]",
        description="Run notebooks and save them with their minutes; `minutes` first writes the minutes alone, `run` "
        "runs the starters, `editions` makes the learners' and the instructors' editions.",
    )
    parser.add_argument("notebook", nargs="*", type=Path, help="which ones (default: all)")
    chosen: Iterable[Path] = [path.resolve() for path in parser.parse_args(given).notebook] or notebooks()
    try:
        for path in chosen:
            if not alone:
                save(path)
            elif path not in notebooks():
                raise BadInput(f"{path} is no lesson; the lessons are in {ROOT / 'notebooks'}")
            minutes.save(path)
    except BadInput as problem:
        print(f"kafka_ctl: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
