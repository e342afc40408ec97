"""The command line, `kafka-ctl`.

    exit status 0   all is well
    exit status 1   what was checked does not hold, or something is missing
    exit status 2   a wrong call: an unknown option, a story or description that cannot be understood

What goes wrong is one sentence on standard error. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import NoReturn

import click

from kafka_ctl.cli.drill import drill
from kafka_ctl.cli.explore import explore
from kafka_ctl.cli.history import history
from kafka_ctl.cli.on_call import on_call
from kafka_ctl.cli.reassign import reassign
from kafka_ctl.cli.terminal import INT32, INT64, Commands, Whole, echo, examples
from kafka_ctl.cli.watch import watch
from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName
from kafka_ctl.extras import needed_for
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.paths import ROOT, import_from_checkout

SECTIONS = {
    "Learn": ("lab", "demo", "exercises", "on-call"),
    "Stories": ("run", "render", "museum", "explore"),
    "Large histories": ("history",),
    "Your own cluster": ("watch", "drill", "incident"),
    "Tools": ("serve", "zookeeper", "reassign", "wire"),
    "This project": ("test", "diagrams", "docs", "site"),
}
"""The commands as `--help` groups them."""

EXAMPLES = examples("kafka-ctl")
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Sections(Commands):
    """A group of commands whose help is in sections."""

    def list_commands(self, context: click.Context) -> list[str]:
        listed = [name for names in SECTIONS.values() for name in names if name in self.commands]
        return listed + sorted(self.commands.keys() - set(listed))

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            rows = [(n, self.commands[n].get_short_help_str(200)) for n in names if n in self.commands]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)


@click.group(cls=Sections, epilog=EXAMPLES, context_settings=HELP)
@click.version_option(package_name="kafka-ctl", prog_name="kafka-ctl")
def app() -> None:
    """Watch, step, rewind, break and question the controller of ZooKeeper-era Kafka.

    One broker of a Kafka cluster is its controller: it notices that brokers come and go, chooses the leader
    of every partition, and informs the others. Start with `lab`, or without a browser with `demo`.
    """


FORWARDED = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command whose arguments, `--help` included, another program reads."""
LOGS = ("state-change", "controller")
VIEWS = "cluster (the default), partition, replica, spacetime, zookeeper, queue or timeline"
ZOOKEEPER = "`memory`, `embedded` (a real ZooKeeper, started for this run), or the host:port/chroot of a ZooKeeper."
JOIN = "Let the brokers of the lab join the real Kafka cluster at this chroot; they change its znodes."


def _named(story: str) -> Path:
    """The file of a story, whatever its name begins with."""
    if not story:
        raise BadInput("the name of a story's file cannot be empty")
    return Path(story)


def _check_join(join: bool, zookeeper: str) -> None:
    if join and zookeeper in ("memory", "embedded"):
        raise click.UsageError("--join needs --zookeeper HOST:PORT/CHROOT, where others have a cluster")


@app.command(context_settings=FORWARDED)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: Sequence[str]) -> int:
    """Open JupyterLab on the first lesson (--check: only test that it starts)."""
    from kafka_ctl.jupyter import launch

    return launch.main(list(arguments))


@app.command(context_settings=FORWARDED)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: Sequence[str]) -> int:
    """Run all checks of this project; with arguments, only pytest, with these arguments."""
    return int(import_from_checkout("tools.check").main(list(arguments)))


@app.command()
@click.option("--zookeeper", default="memory", show_default=True, metavar="WHERE", help=ZOOKEEPER)
@click.option("--join", is_flag=True, help=JOIN)
@click.option(
    "--generation", default="2.0", show_default=True, help="Generation of Kafka's controller: 0.10, 2.0 or 2.4."
)
@click.option("--fast", is_flag=True, help="Print without pauses, as when the output is not a terminal.")
def demo(zookeeper: str, join: bool, generation: str, fast: bool) -> None:
    """Play the first story in this terminal: an election, a failed controller, a controlled shutdown."""
    from rich.console import Console

    from kafka_ctl.cli.demo import play

    _check_join(join, zookeeper)
    console = Console(highlight=False)
    console.width = min(console.width, 120)
    play(zookeeper, generation, console, 0.0 if fast or not console.is_terminal else 0.15, join=join)


@app.command()
@click.argument("story")
@click.option("--zookeeper", default="memory", show_default=True, metavar="WHERE", help=ZOOKEEPER)
@click.option("--join", is_flag=True, help=JOIN)
@click.option("--all", "everything", is_flag=True, help="Print reads, answers and cached metadata, too.")
@click.option(
    "--log", type=click.Choice(LOGS), help="Instead of the trace, print the lines that Kafka writes to this log."
)
@click.option("--broker", type=Whole(0, INT32), help="With --log: only the lines of this broker's process.")
def run(story: str, zookeeper: str, join: bool, everything: bool, log: str | None, broker: int | None) -> None:
    """Run the story in the file STORY and print its trace, one record a line.

    \b
    # A story is a cluster and the commands for it, for example:
    lab brokers=3 generation=2.0 seed=7
    create_topic orders partitions=6 replication_factor=3
    settle
    kill 1
    settle
    """
    from kafka_ctl.kafka_log.write import kafka_log
    from kafka_ctl.lab.lab import Lab

    if broker is not None and log is None:
        raise click.UsageError("--broker goes with --log")
    if everything and log is not None:
        raise click.UsageError("--all does not go with --log")
    _check_join(join, zookeeper)
    with Lab.replay(_named(story), zookeeper=zookeeper, join=join) as played:
        if broker is not None and broker not in played.brokers:
            raise UnknownName("broker", broker, played.brokers)
        if log:
            text = kafka_log(played.trace, log, played.generation.name, broker)
        else:
            text = played.trace.text("all" if everything else "story")
        echo(text.rstrip("\n"))


@app.command()
@click.argument("story")
@click.option("-o", "--output", required=True, metavar="FILE", help="File name; it ends in .svg, .html, .png or .gif.")
@click.option("--view", "views", multiple=True, help=f"{VIEWS}; repeatable.")
@click.option(
    "--step", type=Whole(0, INT64), metavar="N", help="Only the step with this number in the player, as .svg or .png."
)
def render(story: str, output: str, views: tuple[str, ...], step: int | None) -> None:
    """Draw the story in the file STORY as a film, or one step of it, into one file that needs no other file."""
    from kafka_ctl.lab.lab import Lab

    with Lab.replay(_named(story)) as played:
        echo(played.export(output, views or "cluster", step=step))


@app.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", required=True, metavar="FILE", help="File name of the page; it ends in .html.")
@click.option("--from", "begin", metavar="TIME", help='Leave out records before this time, such as "2024-05-31 13:00".')
@click.option("--to", "end", metavar="TIME", help="Leave out records from this time on.")
def incident(logs: tuple[str, ...], output: str, begin: str | None, end: str | None) -> None:
    """Report what the logs of a cluster show, as text and as one page with the player at each finding.

    LOG is a folder with state-change.log* and controller.log* of Kafka 0.8 to 3.9, best one folder for each broker, or
    such a file. The report says who was controller, which partitions had no leader, for how long and why, when ISRs
    changed very often, which requests are stuck, what the logs do not have, and what to look at next. Nothing but these
    files is read, and nothing leaves this machine.

    \b
    kafka-ctl incident /var/log/kafka -o report.html
    kafka-ctl incident broker-1 broker-2 broker-3 -o report.html
    kafka-ctl incident /var/log/kafka -o report.html --from "2024-05-31 13:00" --to "2024-05-31 15:00"
    """
    from kafka_ctl.history import incident as reported
    from kafka_ctl.views.export import PAGES, checked
    from kafka_ctl.writing import check_writable

    check_writable(checked(output, kinds=PAGES))
    found = reported(logs, begin, end)
    echo(str(found).rstrip("\n"))
    echo(f"\nwritten to {found.export(output)}")


@app.command()
@click.argument("name", required=False)
@click.option("--story", is_flag=True, help="Only print its story, which you can change and run.")
@click.option(
    "--check",
    is_flag=True,
    help="Only test that each exhibit shows its bug, and that its story with the bug fixed does not.",
)
def museum(name: str | None, story: bool, check: bool) -> int:
    """Show the famous bug NAME (its ticket, or its number in the list) and the same story with the bug fixed.

    Without NAME, list all bugs. The exit status is 1 when an exhibit does not show what it should.
    """
    from kafka_ctl.museum import EXHIBITS, find
    from kafka_ctl.museum.exhibit import describe, index, verdict

    if story and (name is None or check):
        raise click.UsageError("--story goes with the NAME of an exhibit, and not with --check")
    if story or (name is None and not check):
        echo((find(str(name)).story if story else index()).rstrip("\n"))
        return 0
    failed = 0
    for exhibit in EXHIBITS if name is None else (find(name),):
        with exhibit.show() as run:
            echo(verdict(run) if check else describe(run))
            failed += not (run.is_caught and run.is_sound)
    return int(failed > 0)


@app.command()
@click.option("--port", type=Whole(1, 65535), help="Port to listen on; a free one by default.")
@click.option("--data", type=click.Path(file_okay=False), help="Keep the znodes in this folder.")
def zookeeper(port: int | None, data: str | None) -> None:
    """Run a real ZooKeeper on this machine and print its address; Ctrl-C ends it."""
    from kafka_ctl.zookeeper.real.server import serve

    serve(port, data)


PORT = Whole(0, 65535)


@app.command(epilog=examples("serve"))
@click.option("--brokers", type=Whole(1, 20), help="Number of brokers; 3 by default.")
@click.option(
    "--port",
    type=PORT,
    default=9092,
    show_default=True,
    help="Port of the first broker; the ports of the others follow; 0: free ports.",
)
@click.option("--generation", type=click.Choice(list(GENERATIONS)), help="Generation of Kafka; 2.4 by default.")
@click.option("--control", type=PORT, default=9099, show_default=True, help="Port of HTTP control; 0: a free one.")
@click.option("--story", metavar="FILE", help="Begin with the lab and the commands of this story.")
def serve(brokers: int | None, port: int, generation: str | None, control: int, story: str | None) -> None:
    """Run a small Kafka for tests on 127.0.0.1; Ctrl-C or a POST to /stop ends it.

    It is not durable, not fast and not secure. It prints one line when clients can connect. The control endpoint takes
    faults over HTTP: kill, start, shutdown, pause, cut, delay, throttle, errors, and every other command of a lab.
    """
    if story is not None and (brokers is not None or generation is not None):
        raise BadInput("--story has the brokers and the generation in its first line; leave out the options for them")
    count = brokers or 3
    if story is None and port + count > 65536:
        raise BadInput(f"--port {port} leaves no ports for {count} brokers; it must be {65536 - count} or less")
    _check_control(control, port, count if story is None else 1)
    from kafka_ctl.testing.cluster import KafkaCluster
    from kafka_ctl.testing.control import Server

    began = time.monotonic()
    with ExitStack() as stack:
        if story is not None:  # which says how many brokers there are
            cluster = stack.enter_context(KafkaCluster(port=port, story=_named(story)))
            _check_control(control, port, len(cluster.lab.brokers))
        server = Server(control)
        stack.callback(server.server_close)
        if story is None:
            cluster = stack.enter_context(KafkaCluster(brokers, generation, port))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stopped.set())
        address = server.begin(cluster)
        stack.callback(server.shutdown)
        kafka, seconds = f"Kafka {cluster.lab.generation.kafka}", time.monotonic() - began
        echo(f"{kafka} listens on {cluster.bootstrap_servers}; control: {address}; ready after {seconds:.1f} s")
        while not server.stopped.wait(0.5):
            cluster.check()


def _check_control(control: int, first: int, brokers: int) -> None:
    """Raise BadInput for a port of control that is one of the brokers', which begin with `first`."""
    last = first + brokers - 1
    if first and first <= control <= last:
        among = f"{first} to {last}" if last > first else f"{first}"
        raise BadInput(f"--control {control} is a port of the brokers, {among}; choose another, or 0 for a free one")


@app.command(epilog=examples("wire"))
@click.argument("digits", nargs=-1)
@click.option("--answers", metavar="API", help="The bytes are a response to this API (name or key).")
@click.option("--version", type=Whole(0, 32767), help="The version of the request that was answered.")
@click.option("--records", is_flag=True, help="The bytes are record batches or messages, without a request.")
def wire(digits: Sequence[str], answers: str | None, version: int | None, records: bool) -> None:
    """Decode a message of Kafka's protocol: offset, bytes, field, type, value.

    DIGITS are hexadecimal, with spaces wherever you like; `-` reads them from standard input. A request is four bytes
    of length (which may be missing), API key, version, a number that the answer repeats, the client's name, and what
    is asked. Without DIGITS: which requests there are, in which versions.
    """
    if not digits:
        if answers is not None or version is not None or records:
            raise BadInput("--answers, --version and --records go with DIGITS")
        echo(_requests())
        return
    if records and answers is not None:
        raise BadInput("--answers does not go with --records: these are no response")
    text = sys.stdin.read() if list(digits) == ["-"] else " ".join(digits)
    if version is not None and answers is None:
        raise BadInput("--version goes with --answers: a request says its version itself")
    from kafka_ctl.wire.annotated import annotate, show_records

    echo(str(show_records(text) if records else annotate(text, answers, version)))


def _requests() -> str:
    """The APIs with their keys, and their versions by generation."""
    from kafka_ctl.wire.schema import api_key
    from kafka_ctl.wire.versions import VERSIONS

    lines = [f"{'key':>3}  {'request':<28}" + "".join(f"{name:>7}" for name in GENERATIONS)]
    for name in sorted(VERSIONS, key=api_key):
        spans = ("-" if span is None else f"{span[0]}-{span[1]}" for span in VERSIONS[name])
        lines.append(f"{api_key(name):>3}  {name:<28}" + "".join(f"{span:>7}" for span in spans))
    return "\n".join(lines)


@app.command()
@click.option("--check", is_flag=True, help="Change nothing; exit status 1 when a picture is missing or stale.")
def diagrams(check: bool) -> int:
    """Redraw the pictures in diagrams/ from the transition tables and from recorded runs."""
    drawn, folder = import_from_checkout("tools.diagrams"), ROOT / "diagrams"
    if check:
        return _stale(drawn.check(folder), "kafka-ctl diagrams")
    echo(f"wrote {len(drawn.write(folder))} files to {folder}")
    return 0


@app.command()
@click.argument("lesson", default="")
@click.option("--reset", is_flag=True, help="Clear the list of solved exercises.")
def exercises(lesson: str, reset: bool) -> int:
    """List all exercises, or those of LESSON (such as 05), and say which are solved.

    The list is kept in the folder of the course, or in the folder that the environment variable KAFKA_CTL_DATA names.
    """
    from kafka_ctl.exercises import progress_file
    from kafka_ctl.exercises.checking import rows, summary

    if reset:
        progress_file.reset()
    found, title = [row for row in rows() if row.name.startswith(lesson)], ""
    if not found:
        raise UnknownName("lesson", lesson, (), f"known: 01 to {rows()[-1].name[:2]}")
    for row in found:
        if row.lesson != title:
            echo(f"\n{row.lesson}" if title else row.lesson)
            title = row.lesson
        echo(f"  {row.name}  {row.kind:<9}  {row.title:<60}  {row.state}")
    echo(f"\n{summary(found)}")
    return 0


@app.command()
@click.option("--check", is_flag=True, help="Change nothing; exit status 1 when a page is stale.")
def docs(check: bool) -> int:
    """Regenerate pages of docs/: commands and the lab, generations, invariants, famous bugs, the trace."""
    reference = import_from_checkout("tools.reference")
    pages = [reference.page(app), reference.help_page(app)]
    pages += [
        import_from_checkout(f"tools.{name}").PAGE for name in ("generations", "invariants", "museum", "trace_format")
    ]
    folder = ROOT / "docs"
    if check:
        return _stale([problem for page in pages for problem in page.check(folder)], "kafka-ctl docs")
    for page in pages:
        echo(f"wrote {page.write(folder)}")
    return 0


SITE = ROOT / "build" / "site" / "public"


@app.command()
@click.option(
    "--out", default=SITE, type=click.Path(file_okay=False, path_type=Path), help="Write it into this folder."
)
@click.option("--serve", is_flag=True, help="Then serve it on 127.0.0.1 until Ctrl-C.")
@click.option("--port", type=Whole(1, 65535), help="With --serve: listen here (default: a free one).")
def site(out: Path, serve: bool, port: int | None) -> None:
    """Build a static site: a living cluster, JupyterLab with every lesson that can run in a browser, the documentation.

    Its parts are downloaded once, with pip and npm, and kept in build/site. The finished folder requests nothing from
    outside; any static host can serve it (docs/browser.md). Without --out it is build/site/public.

    \b
    kafka-ctl site --serve
    kafka-ctl site --out /tmp/course
    """
    if port is not None and not serve:
        raise click.UsageError("--port goes with --serve")
    build = partial(import_from_checkout("tools.site.build").build, out, echo)
    if serve:
        import_from_checkout("tools.site.serve").forever(out, port, echo, build)
    else:
        build()


for command in (reassign, explore, drill, on_call, history, watch):
    app.add_command(command)


def _stale(problems: Sequence[str], hint: str) -> int:
    """Print the stale pages and how to renew them; returns the exit status."""
    for problem in problems:
        echo(f"kafka-ctl: {problem}; `{hint}` renews it", err=True)
    return int(bool(problems))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # its encoding may lack "→"
    sys.stdin = sys.stdin or StringIO()  # a closed one, `<&-`, has no lines
    sys.exit(status(args))


def status(args: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit status; if it is not 0, one sentence is on standard error."""
    try:
        with needed_for("this command"):
            return int(app.main(args, "kafka-ctl", standalone_mode=False) or 0)
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except click.Abort:
        echo("kafka-ctl: stopped", err=True)
        return 130
    except KafkaCtlError as trouble:
        echo(f"kafka-ctl: {getattr(trouble, 'unnamed', None) or trouble}", err=True)
        return 2 if isinstance(trouble, BadInput) else 1
    except BrokenPipeError:  # the reader of our output has ended, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as trouble:
        where = "" if trouble.filename is None else f"{trouble.filename}: "
        echo(f"kafka-ctl: {where}{trouble.strerror or trouble}", err=True)
        return 2 if where else 1


if __name__ == "__main__":
    main()
