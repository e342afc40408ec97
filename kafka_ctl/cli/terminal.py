"""The parts that the commands of `kafka-ctl` share: checked numbers, and text that a terminal shows as it is."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from kafka_ctl.errors import BadInput, no_command
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.paths import text_in
from kafka_ctl.visible import visible

INT32, INT64 = 2**31 - 1, 2**63 - 1
of_generation = click.option(
    "--generation",
    default="2.0",
    show_default=True,
    type=click.Choice(list(GENERATIONS)),
    help="Generation of Kafka's controller.",
)


def _credentials(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, str] | None:
    scheme, _, credential = (text or "").partition(":")
    if text and (scheme != "digest" or ":" not in credential):
        given = "'--auth' or KAFKA_CTL_AUTH"
        raise click.BadParameter("it must be digest:USER:PASSWORD.", context, option, given)
    return (scheme, credential) if text else None


AUTH = click.option(
    "--auth",
    envvar="KAFKA_CTL_AUTH",
    metavar="digest:USER:PASSWORD",
    callback=_credentials,
    help="Credentials for znodes with ACLs; better in the environment variable KAFKA_CTL_AUTH.",
)


class Number(click.FloatRange):
    """A number in a range: neither `nan` nor an infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


class Whole(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(int(value), param, ctx))
        except ValueError:
            self.fail(f"{value!r} is not a whole number from {self.min} to {self.max}.", param, ctx)


class Commands(click.Group):
    """A group of commands that names similar commands if there is no such command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest names in the error."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise BadInput(no_command(args[0], self.list_commands(ctx), f"{ctx.command_path} --help"))
        return super().resolve_command(ctx, args)


def echo(text: object, err: bool = False) -> None:
    """Print a text of several lines; codes that would move the cursor or change colours are shown as escapes."""
    click.echo("\n".join(map(visible, str(text).split("\n"))), err=err)


_EXAMPLES = dict(re.findall(r"^(\S+)\n((?: .*\n)+)", text_in(__package__, "examples.txt"), re.MULTILINE))


def examples(name: str) -> str:
    """The end of a help text: the block `name` of `examples.txt`, which click leaves as it is."""
    return f"\b\nExamples:\n{_EXAMPLES[name]}"
