"""Tables of Kafka's releases, read from their jars with Java and kept as two text files.

`python -m tools.kafka_tables` writes `kafka_ctl/brokers/config_keys.txt`, the configuration keys of topics and brokers,
and `kafka_ctl/wire/field_names.txt`, the names that Kafka's own tables give to the fields of messages where the schemas
of kio have others. Maven brings the jars, as for the recordings (`tests/conformance/README.md`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.paths import ROOT
from kafka_ctl.wire.schema import Schema, apis, message_type, versions
from tools.recorder.release import RELEASES

KEYS, NAMES = ROOT / "kafka_ctl/brokers/config_keys.txt", ROOT / "kafka_ctl/wire/field_names.txt"
PROGRAM = Path(__file__).with_name("KafkaTables.java")
TAGGED = "_tagged_fields"
INLINE = "+"
"""The mark of a structure that is no array: the old tables have some, kio's have their fields in its place."""
KEYS_HEADER = """\
# Configuration keys of topics and brokers in the three releases, written by `python -m tools.kafka_tables`.
# Columns, by tabs: first and last generation, scope, key, type, default as text (null: none, -: must be set), values.
# Of a topic then the broker's key that its default comes from. Of a broker: where it can be changed while it runs, and
# the keys that a broker reads in its place.
"""
NAMES_HEADER = """\
# Names of fields in Kafka's own tables, written by `python -m tools.kafka_tables`.
# Columns, by tabs: API, direction, place of the structure by kio's names, Kafka's name, kio's name.
"""

Named = list[tuple[str, "Named"]]
"""The fields of a structure: the name of each, and the fields inside."""


def printed(generation: str) -> list[list[str]]:
    """The output of `KafkaTables.java` for a release, line by line, split at tabs."""
    done = subprocess.run(
        RELEASES[generation].java(str(PROGRAM)), capture_output=True, text=True, check=True, timeout=120
    )
    lines = re.sub(r"\$?@[0-9a-f]+", "", done.stdout).splitlines()
    return [line.split("\t") for line in lines if line.startswith(("config\t", "fields\t"))]


def key_lines(lines: Mapping[str, list[list[str]]]) -> Iterator[str]:
    """A line for each key, or several where releases differ; in the order of the newest release that has it."""
    rows = {name: {(row[1], row[2]): row[1:] for row in found if row[0] == "config"} for name, found in lines.items()}
    order = dict.fromkeys(key for name in reversed(rows) for key in rows[name])
    for scope, name in sorted(order, key=lambda key: key[0] != "topic"):
        has = [(generation, rows[generation][scope, name]) for generation in rows if (scope, name) in rows[generation]]
        for row, same in groupby(has, key=lambda one: one[1]):
            spans = [generation for generation, _ in same]
            yield "\t".join((spans[0], spans[-1], *row))


def parsed(text: str) -> Named:
    """The fields in `(name name(name name))`."""
    stack: list[Named] = [[]]
    for token in re.findall(r"[()]|[^() ]+", text):
        if token == "(":
            fields: Named = []
            if stack[-1]:
                stack[-1][-1] = (stack[-1][-1][0], fields)
            stack.append(fields)
        elif token == ")":
            found = stack.pop()
        elif token.rstrip("~") != TAGGED:
            stack[-1].append((token, []))
    return found


def differing(schema: Schema, fields: Named, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Place, Kafka's name and kio's, of every field that has two; both tables have a message's fields in order."""
    fields = [one for field in fields for one in (field[1] if field[0].endswith(INLINE) else [field])]
    assert len(schema.fields) == len(fields), (place, schema, fields)
    for field, (name, inner) in zip(schema.fields, fields, strict=True):
        if name != field.name:
            yield place, name, field.name
        if inner and isinstance(field.kind, Schema):
            yield from differing(field.kind, inner, f"{place}.{field.name}".lstrip("."))


def name_lines(lines: Iterable[list[str]]) -> Iterator[str]:
    """A line for each name of Kafka's that is not kio's."""
    found: dict[tuple[int, str, str, str], set[str]] = {}
    for _, key, _, direction, version, fields in (row for row in lines if row[0] == "fields"):
        number = int(key)
        if number not in apis() or int(version) not in versions(number):
            continue
        for place, name, ours in differing(message_type(number, int(version), direction).body, parsed(fields)):
            found.setdefault((number, direction, place, name), set()).add(ours)
    for (number, direction, place, name), one in sorted(found.items()):
        assert len(one) == 1, (number, direction, place, name, one)
        yield "\t".join((apis()[number], direction, place, name, *one))


def main() -> None:
    """Write both files."""
    argparse.ArgumentParser(prog="python -m tools.kafka_tables", description=__doc__).parse_args()
    lines = {generation: printed(generation) for generation in GENERATIONS}
    KEYS.write_text(KEYS_HEADER + "".join(f"{line}\n" for line in key_lines(lines)), "utf-8")
    every = [row for found in lines.values() for row in found]
    NAMES.write_text(NAMES_HEADER + "".join(f"{line}\n" for line in name_lines(every)), "utf-8")


if __name__ == "__main__":
    main()
