"""A drill: scenarios, each played in a copy of one cluster, ranked by what they do to it.

Copies are made by replaying the cluster's story or, where a process may fork, by forking one that has replayed it.
Both give the same outcomes, in this process, in others, and in Spark's tasks.
"""

from __future__ import annotations

import functools
import gc
import math
import os
import pickle
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from kafka_ctl.display import Countdown, Shown, Table, table
from kafka_ctl.drills.scenario import Outcome, Question, Scenario, baseline, numbered, play, scenarios
from kafka_ctl.errors import BadInput, UnknownName, check_not_in_browser, short
from kafka_ctl.explore.workers import cores, processes
from kafka_ctl.extras import needed_for
from kafka_ctl.generation import UNCLEAN
from kafka_ctl.lab import validate
from kafka_ctl.lab.description import parse_description
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import PAGE, Link

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_ctl.foreign.read_only import Auth
    from kafka_ctl.history.plots.picture import Picture

T = TypeVar("T")
BOTH = "both"
HOST = r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d+"
ADDRESS = re.compile(rf"{HOST}(,{HOST})*(/\S*)?")
SMALL = 200_000
"""The most records to replay, for all scenarios together, for which no processes are started."""
MOST_DRAWN = 40
"""The most rows of a picture."""
CONFIDENCE = 0.95
HEAD = (
    *("what if", "unclean", "offline", "below min ISR", "interrupted", "longest s", "unclean elections"),
    *("leaders", "skew", "requests", "ZooKeeper", "seconds", "session s", "broken", "note"),
)
Job = tuple[str, Scenario]
"""The story of a cluster, and what is played in it."""


class Sample(NamedTuple):
    """The scenarios of one question that were drawn, and of how many."""

    question: str
    scenarios: frozenset[Scenario]
    of: int


class Drill(Shown, Sequence[Outcome]):
    """The outcomes of a drill, the worst first, shown as a table.

    `lab(0)` is a lab that has played the worst scenario, `story(0)` its story, `link(0)` its address in the browser.
    """

    def __init__(
        self,
        stories: dict[bool, str],
        outcomes: Sequence[Outcome],
        samples: Sequence[Sample],
        origin: object = None,
        baselines: Sequence[str] = (),
    ) -> None:
        self._stories, self.origin, self._baselines = stories, origin, baselines
        self.outcomes = sorted(outcomes, key=lambda outcome: outcome.rank, reverse=True)
        self.samples = tuple(samples)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return f"Drill of {len(self)} scenarios"

    @overload
    def __getitem__(self, index: int, /) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[Outcome]: ...
    def __getitem__(self, index: int | slice, /) -> Outcome | Sequence[Outcome]:
        return self.outcomes[index]

    def story(self, row: int = 0) -> str:
        """The cluster and the commands of one row as a story, which `kafka-ctl run` and `Lab.replay` play."""
        outcome = self.outcomes[validate.integer("a row", row, 0, len(self) - 1)]
        return self._stories[outcome.unclean] + "\n".join(outcome.scenario.commands) + "\n"

    def lab(self, row: int = 0) -> Lab:
        """A lab that has played one row: its `player()` steps through it."""
        return Lab.replay(self.story(row))

    def link(self, row: int = 0) -> str:
        """One row as an address within a site of `kafka-ctl site`."""
        return f"{PAGE}#{Link(self.story(row)).fragment()}"

    def plot(self) -> Picture:
        """The table as a picture: partitions offline, below `min.insync.replicas` and interrupted, row by row.

        It has the worst `MOST_DRAWN` rows.
        """
        with needed_for("a plot"):
            from kafka_ctl.history.plots.picture import SERIES, legend, picture

        rows = self.outcomes[:MOST_DRAWN]
        title = "What each scenario does to the partitions"
        figure, axes = picture(title, "partitions", "", max(2.5, 0.6 + 0.32 * len(rows)))
        both = len({row.unclean for row in rows}) > 1
        names = [row.scenario.name + (f", unclean {'on' if row.unclean else 'off'}" if both else "") for row in rows]
        parts = {
            "offline at the end": ([row.offline for row in rows], SERIES[5]),
            "below min.insync.replicas": ([row.below_min_isr for row in rows], SERIES[1]),
            "without a leader for some time": ([row.interrupted for row in rows], SERIES[4]),
        }
        for place, (label, (values, colour)) in enumerate(parts.items()):
            axes.barh([n + 0.27 * (place - 1) for n in range(len(rows))], values, 0.26, color=colour, label=label)
        axes.set_yticks(range(len(rows)), names, parse_math=False)
        axes.margins(y=0.01)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        legend(axes)
        worst = ", ".join(f"{label}: {values[0]}" for label, (values, _) in parts.items())
        first = f"The worst: {rows[0].scenario.name}. Partitions {worst}."
        figure.alt = f"{title}. {len(rows)} of {len(self)} scenarios. {first}"
        return figure

    def table(self) -> Table:
        """A row for each outcome; times in seconds of the lab's clock."""
        return table(HEAD, (_cells(outcome) for outcome in self.outcomes), len(self))

    @property
    def summary(self) -> str:
        """The conclusions from samples, and what is wrong before each scenario.

        Of a real cluster also which releases fit, and what differs from them.
        """
        lines = []
        for sample in self.samples:
            for on in sorted(self._stories):
                drawn = [o for o in self.outcomes if o.unclean == on and o.scenario in sample.scenarios]
                lines.append(_sentences(drawn, sample))
        lines += filter(None, self._baselines)
        return "\n".join(lines if self.origin is None else [*lines, str(self.origin)])

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.table().text(), self.summary)))

    def _repr_html_(self) -> str:
        return self.table().html(self.summary)


def _cells(o: Outcome) -> list[object]:
    led = [*o.leaders.values()] or [0]
    counts = [o.offline, o.below_min_isr, o.interrupted, f"{o.longest:.2f}", o.unclean_elections]
    load = [f"{min(led)} to {max(led)}", f"{o.skew:.2f}", f"{o.requests:,}", f"{o.operations:,}"]
    times = [f"{o.seconds:.2f}", f"{o.session:.2f}"]
    return [o.scenario.name, "on" if o.unclean else "off", *counts, *load, *times, len(o.violations) or "", o.note]


def check_ending(file: str) -> None:
    """Raise UnknownName for a file whose ending is no format of a picture."""
    with needed_for("a plot"):
        from matplotlib.backend_bases import FigureCanvasBase

        import kafka_ctl.history.plots  # noqa: F401  # of all packages that a plot needs

    ending = Path(file).suffix[1:].lower()
    if ending and ending not in FigureCanvasBase.filetypes:
        raise UnknownName("format of a picture", ending, sorted(FigureCanvasBase.filetypes))


def drill(
    lab: Lab | str | Path,
    *questions: Question,
    unclean: bool | str | None = None,
    sample: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    spark: SparkSession | None = None,
) -> Drill:
    """Play every scenario in a copy of `lab`, and rank them by what they do to its partitions.

        from kafka_ctl import Lab, drill
        lab = Lab(brokers={1: "a", 2: "a", 3: "b"})
        lab.create_topic("orders", 6, 2)
        lab.settle()
        worst = drill(lab, "any one", "rack a")[0]
        worst.scenario.name  # 'rack a dies'

    `lab` may be what `kafka-topics --describe` printed, a file with it, or the `host:port/chroot` of a ZooKeeper, which
    is only read. `questions`: `broker 3` (or 3), `rack b`, `any one`, `any two`, `any rack`, `rolling restart 3,1,2`, a
    reassignment plan, or commands of a story; `any one` by default. `unclean`: the brokers' unclean leader election, on
    or off, `both`, or as the lab has it. `sample`: play so many scenarios of a question at most, drawn with `seed`; the
    summary says what follows for all of them. `jobs`: processes, as many as cores for a large cluster. With `spark`,
    its tasks play them. The lab is not changed. Raises UnknownName or BadInput for what cannot be asked.
    """
    given = _lab(lab)
    asked, samples = _drawn(given, questions or ("any one",), sample, Random(validate.integer("a seed", seed)))
    bases = list(_bases(given, unclean))
    stories = {bool(base.config[UNCLEAN]): base.story for base in bases}
    todo = [(story, scenario) for story in stories.values() for scenario in asked]
    number = _processes(given, len(todo), jobs, spark)
    if spark is not None:
        outcomes = _in_spark(spark, todo)
    elif number > 1:
        outcomes = _in_processes(todo, number)
    else:
        copies = (copy(base, scenario) for base in bases for scenario in asked)
        outcomes = list(_reported(copies, len(todo)))
    return Drill(stories, outcomes, samples, given.origin, [*map(baseline, bases)])


def _processes(lab: Lab, scenarios: int, jobs: int | None, spark: SparkSession | None) -> int:
    """The number of processes for so many scenarios. Raises BadInput for what cannot play them."""
    jobs = jobs if jobs is None else validate.integer("jobs", jobs, 1)
    if spark is not None and not hasattr(spark, "createDataFrame"):
        raise BadInput(f"spark cannot be {short(spark)}; it must be a Spark session")
    if lab.plugins.given and (spark is not None or (jobs or 1) > 1):
        raise BadInput(f"functions stay in this process: {', '.join(lab.plugins.given)}; use jobs=1 without spark")
    is_small = lab.plugins.given or len(lab.trace) * scenarios < SMALL
    return min(jobs or (1 if is_small else cores()), scenarios)


def _lab(given: Lab | str | Path) -> Lab:
    """The lab itself, or one that begins as the cluster of a description or at an address."""
    if isinstance(given, Lab):
        if not given.world.is_memory:
            raise BadInput("a drill needs a lab with ZooKeeper in memory; drill('host:port/chroot') copies a cluster")
        return given
    if not isinstance(given, (str, Path)):
        raise BadInput(f"a drill needs a lab, a description or an address; {short(given)} is none")
    return open_cluster(given)


def open_cluster(
    given: str | Path, racks: Mapping[int, str] | None = None, auth: Auth | None = None, **options: object
) -> Lab:
    """A lab that begins as the cluster of a description or at an address; `options` are those of `Lab`.

    `racks` are those of brokers in a description, `auth` the credentials at an address. Raises UnknownName for a rack
    of a broker that is not in it, and BadInput for racks with an address.
    """
    if isinstance(given, str) and ADDRESS.fullmatch(given):
        if racks:
            raise BadInput("--rack is for descriptions; the racks of a cluster are in its ZooKeeper")
        return Lab.from_zookeeper(given, None, auth, **options)
    if racks:
        brokers = parse_description(given).brokers
        for id in racks:
            if id not in brokers:
                raise UnknownName("broker", id, brokers)
        options["brokers"] = {id: racks.get(id) for id in brokers}
    return Lab.from_description(given, **options)


def _bases(lab: Lab, unclean: bool | str | None) -> Iterator[Lab]:
    """The lab, or copies of it, for each wanted setting."""
    if unclean not in (None, True, False, BOTH):
        raise UnknownName("value of unclean", unclean, ("True", "False", BOTH))
    now = bool(lab.config[UNCLEAN])
    wanted = (False, True) if unclean == BOTH else (now if unclean is None else bool(unclean),)
    for on in wanted:
        yield lab if on == now else lab.fork(config={UNCLEAN: on})


def _drawn(
    lab: Lab, questions: Sequence[Question], most: int | None, rng: Random
) -> tuple[list[Scenario], list[Sample]]:
    """The scenarios to play, and the questions of which only some are drawn."""
    most = most if most is None else validate.integer("a sample", most, 1)
    asked: dict[Scenario, None] = {}
    samples = []
    for question in questions:
        found = scenarios(lab, question)
        if most is not None and len(found) > most:
            of, found = len(found), [found[n] for n in sorted(rng.sample(range(len(found)), most))]
            samples.append(Sample(str(question), frozenset(found), of))
        asked |= dict.fromkeys(found)
    if not asked:
        raise BadInput("there is nothing to drill: too few brokers are running")
    return numbered(asked), samples


def _reported(items: Iterable[T], total: int, every: float = 5.0) -> Iterator[T]:
    """The items; how many have come is said on standard error every few seconds."""
    countdown = Countdown(every)
    for number, item in enumerate(items, 1):
        yield item
        countdown(f"drill: {number} of {total} scenarios", number, total)


# One scenario


@functools.lru_cache(maxsize=1)
def _opened(story: str) -> Lab:
    """The cluster of a story, kept for the next scenario."""
    return Lab.replay(story)


def played(job: Job) -> Outcome:
    """Play a job in a process that has nothing else to do."""
    story, scenario = job
    return copy(_opened(story), scenario)


def copy(lab: Lab, scenario: Scenario) -> Outcome:
    """The outcome of a scenario in a copy of the lab; the lab stays as it is. Raises BadInput for what is refused."""
    if hasattr(os, "fork") and threading.active_count() == 1:
        return _forked(lab, scenario)
    with lab.fork() as other:
        try:
            return play(other, scenario)
        except BadInput as error:
            raise BadInput(_refusal(scenario, error)) from None


def _refusal(scenario: Scenario, error: BaseException) -> str:
    """The text of an error behind the name of its scenario; a call that begins both is named once."""
    return f"{scenario.name}: {str(error).removeprefix(f'{scenario.name.split()[0]}: ')}"


def _forked(lab: Lab, scenario: Scenario) -> Outcome:
    """The same in a child process: the copy costs no time, and memory only for what changes."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        gc.freeze()  # a collection would touch, and so copy, every page
        found: object = "it ended early"
        try:
            found = play(lab, scenario)
        except BaseException as error:
            found = _refusal(scenario, error)
        finally:
            with os.fdopen(writer, "wb") as file:
                pickle.dump(found, file)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        written = file.read()
    os.waitpid(child, 0)
    outcome = pickle.loads(written) if written else f"{scenario.name}: the process ended; is there enough memory?"
    if isinstance(outcome, Outcome):
        return outcome
    raise BadInput(str(outcome))


def _in_processes(todo: Sequence[Job], number: int) -> list[Outcome]:
    """The outcomes, found by so many processes, each with its own copy of the cluster."""
    with processes(number) as pool:
        return list(_reported((pool.imap if pool else map)(played, todo), len(todo)))


def _in_spark(spark: SparkSession, todo: Sequence[Job]) -> list[Outcome]:
    """The outcomes, found by Spark's tasks: one for each core, each with its own copy of the cluster."""
    check_not_in_browser("Spark")
    from kafka_ctl.history.session import in_tasks

    tasks = min(len(todo), spark.sparkContext.defaultParallelism)
    return in_tasks(spark, "the drill", lambda n: played(todo[n]), len(todo), tasks)


# Statistics of a sample


def interval(hits: int, drawn: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval for the share of a whole of which `drawn` were drawn and `hits` have the property.

    Wilson, E. B.: Probable inference, the law of succession, and statistical inference. JASA 22 (1927).
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, widened = hits / drawn, 1 + z * z / drawn
    middle = (share + z * z / (2 * drawn)) / widened
    half = z * math.sqrt(share * (1 - share) / drawn + z * z / (4 * drawn * drawn)) / widened
    return max(0.0, middle - half), min(1.0, middle + half)


def _sentences(outcomes: Sequence[Outcome], sample: Sample) -> str:
    """The conclusions from a sample about all scenarios of its question."""
    drawn = len(outcomes)
    hits = sum(outcome.offline > 0 for outcome in outcomes)
    low, high = interval(hits, drawn)
    unseen = 1 - (1 - CONFIDENCE) ** (1 / drawn)
    question = f"{sample.question}, unclean election {'on' if outcomes[0].unclean else 'off'}"
    return (
        f"{question}: {drawn:,} of {sample.of:,} were drawn, and {hits} of them leave partitions offline. With "
        f"{CONFIDENCE:.0%} confidence, {low:.1%} to {high:.1%} of all do so, and at most {unseen:.1%} of all are worse "
        "than the worst that was drawn."
    )
