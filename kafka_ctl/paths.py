"""The checkout, and the folders that it holds beside the package."""

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from kafka_ctl.errors import Unavailable

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: the folder that holds `kafka_ctl/`, `notebooks/` and `requirements.txt`."""

IN_CHECKOUT = (ROOT / "requirements.txt").is_file() and (ROOT / "notebooks").is_dir()
"""False where the package was installed from a wheel."""
COURSE_LIST = ".kafka-ctl-course.json"
"""The file that marks a learner's copy of the course, and lists what was copied."""


def import_from_checkout(name: str) -> Any:
    """The module `name` of `tools/` or `tests/`. Raises Unavailable if the package was installed without a checkout."""
    if not (ROOT / name.partition(".")[0]).is_dir():
        raise Unavailable(f"{name.replace('.', '/')} is not here; this needs a checkout of the project")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return import_module(name)


def text_in(package: str, name: str) -> str:
    """The text of a file of a package, also of one in a zip file: Spark's workers have the package so.

    By `pkgutil`, because `importlib.resources` takes as long to load as an empty Python takes to start.
    """
    data = pkgutil.get_data(package, name)
    if data is None:
        raise FileNotFoundError(f"{package}: {name}")
    return data.decode()


def blocks(package: str, name: str) -> list[list[str]]:
    """The lines of each block of a package's table: one in the first column begins a block, indented ones go on.

    A `#` in the first column begins a comment.
    """
    found = re.findall(r"^[^\s#].*(?:\n +.*)*", text_in(package, name), re.MULTILINE)
    return [[line.strip() for line in block.splitlines()] for block in found]
