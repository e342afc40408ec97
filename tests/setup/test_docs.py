"""The docs name everything there is, are as fresh as the code, and point at what exists."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from prose import Prose

import kafka_ctl
from kafka_ctl.cli.commands import SECTIONS, VIEWS, app
from kafka_ctl.generation import FIELDS, GENERATIONS, Generation
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.paths import ROOT
from kafka_ctl.views import frames
from tools.reference import page

DOCS = ROOT / "docs"
PAGE = page(app)
SOURCES = re.findall(
    r"^\| (\d+(?:\.\d+)*) \| (.+) \| (.+) \| (.+) \| (.+) \|$", (DOCS / "sources.md").read_text("utf-8"), re.M
)
"""The rows of the page on the Chinese texts: section, heading, subject, lessons, code."""
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
STORIES = sorted((ROOT / "tests/traces").glob("*.txt"))


def page() -> str:
    return (DOCS / PAGE.name).read_text("utf-8")


def test_the_reference_is_fresh() -> None:
    """`kafka-ctl docs` would change nothing."""
    assert PAGE.check(DOCS) == []


def test_a_stale_or_missing_reference_is_reported(tmp_path: Path) -> None:
    """And written anew on demand."""
    assert PAGE.check(tmp_path) == ["reference.md is missing"]
    path = PAGE.write(tmp_path)
    assert PAGE.check(tmp_path) == []
    path.write_text(path.read_text("utf-8").replace("Ask for a topic", "Make a topic"), "utf-8")
    assert PAGE.check(tmp_path) == ["reference.md is stale"]


@pytest.mark.parametrize("name", kafka_ctl.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """The course map names it, it loads, and it has a docstring of its own or stands in the map with words."""
    assert f"| `{name}` |" in page()
    assert re.search(rf"^    \[?{name}\]? ", kafka_ctl.__doc__ or "", re.M)
    assert getattr(kafka_ctl, name) is not None


def test_the_course_map_loads_lazily_and_refuses_other_names(prose: Prose) -> None:
    """Importing the package imports none of its modules; a wrong name is an AttributeError with the cure."""
    code = (
        "import sys, kafka_ctl; print([m for m in sys.modules if m.startswith('kafka_ctl.')], 'typing' in sys.modules)"
    )
    reported = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert reported.stdout.strip() == "[] False"
    assert set(kafka_ctl.__all__) <= set(dir(kafka_ctl))
    with prose.refused(AttributeError):
        kafka_ctl.Controler  # noqa: B018


def test_importing_the_package_is_quick() -> None:
    """150 ms were asked; it takes a few, measured by Python itself."""
    reported = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import kafka_ctl"], cwd=ROOT, capture_output=True, text=True
    )
    last = reported.stderr.strip().splitlines()[-1]
    assert last.endswith("| kafka_ctl")
    assert int(last.split("|")[1]) < 150_000


@pytest.mark.parametrize("name", sorted(app.commands))
def test_every_command_is_there(name: str) -> None:
    """In the reference with its options, and in one section of --help."""
    assert re.search(rf"^### `kafka-ctl {name}\b", page(), re.M)
    assert sum(name in names for names in SECTIONS.values()) == 1
    command = app.commands[name]
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help and f"`{', '.join(option.opts)}` | {option.help}" in page()


def test_a_hidden_option_is_not_there() -> None:
    """Those of `reassign` are for the sentence that refuses them."""
    hidden = [option for option in app.commands["reassign"].params if getattr(option, "hidden", False)]
    assert len(hidden) == 4
    assert [option.name for option in hidden if f"| `{option.opts[0]}` |  |" in page()] == []


PUBLIC = [n for n in dir(Lab) if not n.startswith("_") and (callable(m := getattr(Lab, n)) or isinstance(m, property))]


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_of_the_lab_is_there(name: str) -> None:
    """With the first sentence of its docstring."""
    section = page()[page().index("## The lab") : page().index("## The command line")]
    commands, rest = section.split("### Looking, time and stories")
    found = re.search(rf"^\| `{name}(\(.*\))?` \| (.+) \|$", commands if name in COMMANDS else rest, re.M)
    assert found and len(found[2]) > 5


def test_generations_and_configuration_are_there() -> None:
    """Every difference with its ticket, every key with its default."""
    for difference in FIELDS:
        assert f"| `{difference.name}` | {difference.doc} | {difference.ticket} |" in page()
    for name in GENERATIONS:
        for key in Generation(name).config:
            assert f"| `{key}` |" in page()


def test_the_views_are_named_by_the_command_line() -> None:
    """`render --help` lists those there are."""
    assert re.findall(r"\w+", VIEWS.replace("(the default)", "").replace(" or ", " ")) == list(frames.VIEWS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Files and headings that our pages link to exist."""
    for target in re.findall(r"\]\(([^)#\s]*(?:#[^)\s]*)?)\)", path.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        linked = (path.parent / unquote(file)).resolve() if file else path
        assert linked.exists(), f"{path.name} links to {target}"
        if heading:
            titles = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors, f"{path.name} links to {target}"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_story_belongs_to_a_lesson(path: Path) -> None:
    """The index of lessons links it."""
    assert f"(../tests/traces/{path.name})" in (DOCS / "README.md").read_text("utf-8")


def test_the_sections_of_the_sources_are_whole_and_lead_to_lessons_and_code() -> None:
    """Five texts whose sections are numbered without a gap; each names a lesson and code, each heading is there."""
    texts = re.split(r"^## ", (DOCS / "sources.md").read_text("utf-8"), flags=re.M)[1:]
    numbers = [re.findall(r"^\| (\d+(?:\.\d+)*) \|", text, re.M) for text in texts]
    assert [len(each) for each in numbers] == [31, 4, 6, 10, 5] and sum(map(len, numbers)) == len(SOURCES)
    for found in numbers:
        for before, number in pairwise(found):
            parts, last = [int(part) for part in before.split(".")], [int(part) for part in number.split(".")]
            deeper = [*parts, 1]
            followers = [[*parts[:depth], parts[depth] + 1] for depth in range(len(parts))]
            assert last in [deeper, *followers], f"{number} after {before}"
    assert all("](../notebooks/" in lessons and "](../kafka_ctl" in code for *_, lessons, code in SOURCES)


def test_every_page_is_in_the_index() -> None:
    """Nothing in docs/ has to be found by chance."""
    index = (DOCS / "README.md").read_text("utf-8")
    assert [p.name for p in DOCS.glob("*.md") if p.name != "README.md" and f"({p.name})" not in index] == []


def test_the_readme_has_its_parts_in_order() -> None:
    """Why and for whom, a picture, a program and its output, two commands, six lessons, what else: on two screens."""
    readme = (ROOT / "README.md").read_text("utf-8")
    parts = (
        "It is for",
        "](diagrams/failover.svg)",
        "```python",
        "```text",
        "## Two commands",
        "## Begin with one of six",
    )
    places = [
        readme.index(part)
        for part in (*parts, "## What else is here", "**What is small**", "[Contributing](CONTRIBUTING.md)")
    ]
    assert places == sorted(places)
    assert len(readme.splitlines()) <= 100
    assert readme.partition("## Begin")[2].partition("\n## ")[0].count("\n| [") == 6
    assert "@keyframes" in (ROOT / "diagrams/failover.svg").read_text("utf-8"), "it is animated"
