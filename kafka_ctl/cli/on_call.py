"""`kafka-ctl on-call`: an incident in the terminal, one line at a time.

Separate from `commands.py` because that file has the short commands.
"""

from __future__ import annotations

import ast
import shlex
from datetime import datetime
from typing import TYPE_CHECKING

import click

from kafka_ctl.cli.terminal import echo
from kafka_ctl.errors import BadInput, KafkaCtlError, no_command

if TYPE_CHECKING:
    from kafka_ctl.incidents.incident import Incident

HELP = """\
partitions, brokers, znodes, log_dirs, metrics 3 ...   look at the cluster, as a method of the lab
log NAME [BROKER] [PATTERN]                            lines of server, client, controller or state-change
start 3, heal, run_for 60 ...                          commands of a story, within the budget
causes                                                 the causes that an answer can name
answer CAUSE COMPONENT                                 close the incident: answer broker-down 3
page, link, quit                                       its page again, its address; leave it open"""
WORDS = ("help", "log", "causes", "answer", "page", "link", "quit")
"""The words of `HELP` that are no methods of a lab."""


@click.command("on-call")
@click.argument("seed", required=False)
@click.option("--logs-only", is_flag=True, help="Logs and tables only: no command can be given.")
@click.option(
    "--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="With SEED `today`: the incident of another day."
)
def on_call(seed: str | None, logs_only: bool, day: datetime | None) -> int:
    """Open the incident of SEED (a number, `today`, or the link of an incident), and find its cause.

    Without SEED, a seed is drawn. Lines are read from standard input until the answer; `help` lists what can be asked.
    The exit status is 1 when cause or component is wrong, or when there is no answer.

    \b
    kafka-ctl on-call today
    kafka-ctl on-call 17 --logs-only
    """
    from kafka_ctl.incidents.incident import on_call as opened

    if day is not None and seed != "today":
        raise BadInput("--date goes with the seed `today`")
    incident = opened(seed, logs_only=logs_only, today=day and day.date())
    echo(f"{incident.page}\n`help` lists what can be asked; `answer CAUSE COMPONENT` closes the incident.")
    while incident.score is None:
        try:
            line = click.prompt(
                f"{incident.clock:g} s, {incident.left} commands", prompt_suffix="> ", default="", show_default=False
            )
        except click.Abort:
            return 1
        if line.strip() == "quit":
            return 1
        try:
            echo(_reply(incident, line))
        except (KafkaCtlError, TypeError, ValueError) as trouble:
            echo(f"kafka-ctl: {getattr(trouble, 'unnamed', None) or trouble}", err=True)
    return int(sum(part.points for part in incident.score[:2]) < sum(part.most for part in incident.score[:2]))


def _reply(incident: Incident, line: str) -> object:
    """The reply to one line."""
    from kafka_ctl.incidents.incident import CAUSES, COMMANDS, LOGS, LOOKS, WAITS

    words = shlex.split(line)
    match words:
        case [] | ["help"]:
            return HELP
        case ["causes"]:
            return "\n".join(f"{name:<18}  {meaning}" for name, meaning in CAUSES.items())
        case ["page"]:
            return incident.page
        case ["link"]:
            return incident.link()
        case ["answer", cause, component]:
            return f"{incident.answer(cause, component)}\n{incident.solution()!r}"
        case ["answer", *_]:
            raise BadInput("an answer has a cause and a component: answer broker-down 3")
        case ["log"]:
            raise BadInput(f"a log has a name, one of {', '.join(LOGS)}: log server 3")
        case ["log" | "logs", name, *rest]:
            broker = int(rest.pop(0)) if rest and rest[0].isdecimal() else None
            return repr(incident.logs(name, broker, " ".join(rest)))
        case [name, *rest] if name in LOOKS:
            found = getattr(incident.lab, name)
            shown = found(*map(_value, rest)) if callable(found) else found
            return "\n".join(f"{key}: {value}" for key, value in shown.items()) if type(shown) is dict else shown
    if words[0] not in (*COMMANDS, *WAITS):
        raise BadInput(no_command(words[0], [*WORDS, *LOOKS, *COMMANDS, *WAITS], "help"))
    answer = incident.lab.do(line)
    return "done" if answer is None else answer


def _value(word: str) -> object:
    """A number, or the word itself."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
