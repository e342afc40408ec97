"""`kafka-ctl wire`: Kafka's messages as bytes, each with its meaning.

Separate from `commands.py` because a command is loaded when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kafka_ctl.cli.terminal import echo
from kafka_ctl.errors import BadInput

EXAMPLES = """\
\b
Examples:
  kafka-ctl wire                          the requests, and their versions in each generation
  kafka-ctl wire 00000010 0007 0001 00000005 0002 6331 00000003
                                          a broker that asks to leave, field by field
  kafka-ctl wire 47455420                 "GET ": why a broker logs a receive of 1195725856 bytes
  kafka-ctl wire --answers Metadata --version 1 00000007 00000000 ...
                                          a response: it does not say what it answers
  xxd -p segment.log | kafka-ctl wire --records -
                                          record batches, as a log segment holds them
"""


@click.command(epilog=EXAMPLES)
@click.argument("digits", nargs=-1)
@click.option("--answers", metavar="API", help="The bytes are a response to this API (name or key).")
@click.option("--version", type=click.IntRange(0, 32767), help="The version of the request that was answered.")
@click.option("--records", is_flag=True, help="The bytes are record batches or messages, without a request.")
def wire(digits: Sequence[str], answers: str | None, version: int | None, records: bool) -> None:
    """Decode a message of Kafka's protocol: offset, bytes, field, type, value.

    DIGITS are hexadecimal, with spaces wherever you like; `-` reads them from standard input. A request is four bytes
    of length (which may be missing), API key, version, a number that the answer repeats, the client's name, and what
    is asked. Without DIGITS: which requests there are, in which versions.
    """
    if not digits:
        echo(_listed())
        return
    text = sys.stdin.read() if list(digits) == ["-"] else " ".join(digits)
    if version is not None and answers is None:
        raise BadInput("--version goes with --answers: a request says its version itself")
    from kafka_ctl.wire.annotated import annotate, show_records

    echo(str(show_records(text) if records else annotate(text, answers, version)))


def _listed() -> str:
    """The APIs with their keys, and their versions by generation."""
    from kafka_ctl.generation import GENERATIONS
    from kafka_ctl.wire.schema import api_key
    from kafka_ctl.wire.versions import VERSIONS

    lines = [f"{'key':>3}  {'request':<28}" + "".join(f"{name:>7}" for name in GENERATIONS)]
    for name in sorted(VERSIONS, key=api_key):
        spans = ("-" if span is None else f"{span[0]}-{span[1]}" for span in VERSIONS[name])
        lines.append(f"{api_key(name):>3}  {name:<28}" + "".join(f"{span:>7}" for span in spans))
    return "\n".join(lines)
