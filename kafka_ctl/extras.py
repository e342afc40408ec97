"""The optional parts of an installation, and one sentence for what is missing.

    pip install kafka-ctl               the course in JupyterLab, the command line, labs in memory
    pip install 'kafka-ctl[wire]'       brokers that speak Kafka's protocol
    pip install 'kafka-ctl[spark]'      large histories, plots, Parquet
    pip install 'kafka-ctl[zookeeper]'  a real ZooKeeper
    pip install 'kafka-ctl[java]'       a Java for Spark and ZooKeeper, where there is none
    pip install 'kafka-ctl[all]'        all of these

Separate from `errors.py` because notebooks call `needs`, and the sentence depends on where the package is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from kafka_ctl.errors import IN_BROWSER, Unavailable, UnknownName, unavailable
from kafka_ctl.paths import IN_CHECKOUT

EXTRA_OF = {
    "pyspark": "spark",
    "pandas": "spark",
    "pyarrow": "spark",
    "matplotlib": "spark",
    "kio": "wire",
    "crc32c": "wire",
    "kafka": "wire",
    "kazoo": "zookeeper",
}
"""The extra of `pyproject.toml` that brings a package."""
EXTRAS = (*dict.fromkeys(EXTRA_OF.values()), "java")


class MissingExtra(Unavailable):
    """An optional part is not installed; a notebook shows the sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def needs(*extras: str) -> None:
    """Raise MissingExtra, with the command that installs them, unless the packages of these extras are there.

    Raise nothing in a browser tab: the site shows cells that lack a package as text. Raises UnknownName for an unknown
    extra.
    """
    for extra in extras:
        if extra not in EXTRAS:
            raise UnknownName("extra", extra, EXTRAS)
    missing = [name for name, extra in EXTRA_OF.items() if extra in extras and find_spec(name) is None]
    if missing and not IN_BROWSER:
        packages = f"the package {missing[0]}" if len(missing) == 1 else f"the packages {', '.join(missing)}"
        raise MissingExtra(f"This needs {packages}; {cure(missing[0])}")


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Turn the absence of an optional package into Unavailable, with what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise unavailable(
            what,
            f"{what} needs the package {error.name}, which is not installed here; {cure(error.name or '')}",
        ) from None


def cure(package: str) -> str:
    """The command that brings a package: the set-up of a checkout, or pip with the extra that has it."""
    if IN_CHECKOUT:
        return "`python3 -m kafka_ctl lab` makes an environment that has everything"
    extra = EXTRA_OF.get(package.partition(".")[0], "all")
    return f"`pip install 'kafka-ctl[{extra}]'` installs what is missing (`%pip` instead of `pip` in a notebook)"
