"""Our words, held over whatever is in the tree: our own sentences are golden text, retired words stay away."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import prose
import pytest
from tables import pairs, tabled, text
from tree import texts

from kafka_ctl.exercises.exercise import Guess
from kafka_ctl.paths import ROOT
from kafka_ctl_course import GUESSES

TESTS = sorted((ROOT / "tests").rglob("*.py"))
FOLDERS = "kafka_ctl", "kafka_ctl_course", "tools", "benchmarks"
MODULE_PATHS = [path for place in FOLDERS for path in sorted((ROOT / place).rglob("*.py"))]

WORD = re.compile(r"(?<![\w.\[(/=<{$`-])[A-Za-z][a-z]+(?:'[a-z]+)?(?![\w(\[/=}{`]|\.\w|-\w)")
"""A plain word: no name of code, no path, no value."""
GLUE = frozenset("an are at by from has in is it no not of that the to with".split())
"""One of these is in every sentence, and in no list of names."""
MOST = 4
"""Words that may stand in a test to find a place in a text; what is longer is a sentence."""

KAFKAS_OWN = text("wording_kafkas_own.txt")
"""Kafka's own texts: they stand in the tests themselves, exactly."""
OTHERS_OWN = ("No such file or directory", "No space left on device", "Compressed file ended before")
"""The texts of the system and of Python."""
LOG_LINE = re.compile(r"(?:\[[\d-]+ [\d:,]+\] )?(?:TRACE|DEBUG|INFO|WARN|ERROR) ")


def expected(function: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts that a test expects: in its asserts, in lists that these compare with, and as `match` of an error."""
    asserted = [node.test for node in ast.walk(function) if isinstance(node, ast.Assert)]
    compared = [side for test in asserted if isinstance(test, ast.Compare) for side in (test.left, *test.comparators)]
    names = {side.id for side in compared if isinstance(side, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and {ast.unparse(target) for target in node.targets} & names:
            asserted += (
                [node.value] if isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.List, ast.BinOp)) else []
            )
        elif isinstance(node, ast.Call):
            asserted += [keyword.value for keyword in node.keywords if keyword.arg == "match"]
    for part in asserted:
        yield from texts_of(part)


def texts_of(part: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts in a piece of code, with their lines; values stand as 0 in them."""
    if isinstance(part, ast.JoinedStr):
        pieces = (str(piece.value) if isinstance(piece, ast.Constant) else "0" for piece in part.values)
        yield part.lineno, "".join(pieces)
    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.lineno, part.value
    else:
        for child in ast.iter_child_nodes(part):
            yield from texts_of(child)


def is_code(text: str) -> bool:
    """Whether this is a line of Python, as "why?" shows it."""
    for ending in ("", " pass", ")", " pass\nelse: pass"):
        try:
            ast.parse(text.strip() + ending)
        except SyntaxError:
            continue
        return True
    return False


def is_sentence(text: str) -> bool:
    """Whether a text is a sentence of ours."""
    longest = max((WORD.findall(line) for line in text.split("\n")), key=len)
    if len(longest) <= MOST or not GLUE & {word.lower() for word in longest}:
        return False
    others = [part.strip() for line in KAFKAS_OWN.split("\n") for part in line.split("|") if part.strip()]
    return not (LOG_LINE.match(text) or is_code(text) or any(own in text for own in (*others, *OTHERS_OWN)))


def test_our_own_sentences_are_golden_text() -> None:
    """A test that expects a sentence of ours takes `prose`, which `--rewrite` writes; a few words find a place."""
    found = set()
    for path in TESTS:
        for function in (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)):
            sentences = ((line, text) for line, text in expected(function) if is_sentence(text))
            found |= {f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in sentences}
    assert sorted(found) == []


@tabled
def test_what_a_sentence_is(text: str, found: bool) -> None:
    assert is_sentence(text) is found


def test_golden_sentences_belong_to_tests() -> None:
    """Each file in `tests/prose` to a test file, each block to a test that takes `prose`; the run does the rest."""
    tests = {path.stem.removeprefix("test_"): path for path in (ROOT / "tests").rglob("test_*.py")}
    for golden in sorted((ROOT / "tests/prose").glob("*.txt")):
        assert golden.stem in tests, f"{golden.name} has no test file"
        taking = {
            node.name.removeprefix("test_").replace("_", " ")
            for node in ast.parse(tests[golden.stem].read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef) and "prose" in {argument.arg for argument in node.args.args}
        }
        blocks = {name.partition(" [")[0] for name in prose.parse(golden.read_text("utf-8"))}
        assert blocks == taking, golden.name


RETIRED = pairs("wording_retired.txt")
"""Words that this project once coined, and the field's own.

Actions in golden traces and names of Kafka's log messages keep theirs (`reassignment_told`, `all-agree`).
"""


def test_retired_words_do_not_return() -> None:
    """In code, docs, notebooks and messages; `docs/glossary.md` has the words that are used."""
    ours = re.compile(r"(?<![a-zA-Z_-])(?:" + "|".join(RETIRED) + r")(?![a-zA-Z-])", re.IGNORECASE)
    places = ("kafka_ctl/", "kafka_ctl_course/", "tools/", "docs/", "notebooks/", "benchmarks/")
    found = {name: ours.findall(text) for name, text in texts() if name.startswith(places) and ours.search(text)}
    assert not found, f"instead: {RETIRED}"


PLAIN = [line.rpartition(": ")[::2] for line in text("wording_plain.txt").splitlines()]
"""Patterns of sentences without a subject, or in an order that is not English, and what to write instead."""
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|\"\"\".*?\"\"\"", re.DOTALL)


@cache
def course_texts() -> list[tuple[str, str]]:
    """What a learner reads: the prose of the notebooks, and the texts of exercises and guesses, with their places."""
    found = []
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        found += [(path.stem, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "markdown"]
    for path in sorted((ROOT / "kafka_ctl_course").glob("lesson_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append((f"{path.stem}:{node.lineno}", node.value))
    for name, guess in GUESSES.items():
        options = [text for option in guess.options for text in option] if isinstance(guess, Guess) else []
        found += [(name, text) for text in (guess.question, *options)]
    return [(place, CODE.sub("`", text)) for place, text in found]


@pytest.mark.parametrize(("pattern", "instead"), PLAIN)
def test_the_course_names_its_subjects(pattern: str, instead: str) -> None:
    """In plain sentences: notebooks, guesses, hints, messages."""
    is_word = not pattern.startswith("(?")
    wrong = re.compile(rf"\b{pattern}\b" if is_word else pattern, re.MULTILINE | re.IGNORECASE * is_word)
    found = [
        f"{place}: {' '.join(text[max(0, m.start() - 40) : m.end() + 40].split())}"
        for place, text in course_texts()
        for m in wrong.finditer(text)
    ]
    assert found == [], f"instead: {instead}"


IN_NAMES = {
    **{word: RETIRED[word] for word in "wish wishes wished told doomed mended astray hopeless laggards asleep".split()},
    "said": "logged, parsed, reply",
    "wants": "is_relevant",
    "standing": "status, state_of",
    "looking": "inspection",
    "growing": "live film",
    "awake": "running",
    "hear": "deliver",
    "hears": "receives",
    "speak": "resume",
}
"""Parts of names that stood for a term of the field, and what stands there now; in sentences they are plain English."""
NAMES = pairs("wording_names.txt")
"""Names that were coined, and the field's own."""
MODULES = """
    astray book described fates fields fold gate growing homecoming installing kip455 known leaving located logbook
    logforms loglines logrules looking mended phrases producing ran reassigning said standing still tale tales
    together troubles union wishes
""".split()
"""Modules and folders that were named by a participle or a coined word; a noun of the field is in their place."""


def named(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_no_module_is_named_by_a_retired_word() -> None:
    assert len(MODULE_PATHS) > 200
    assert [path for path in MODULE_PATHS if {path.stem, path.parent.name} & {*MODULES}] == []


def test_nothing_is_named_by_a_retired_word() -> None:
    """In the package, the tools and the benchmarks; of a test's names, those of the oldest words."""
    oldest = {*IN_NAMES.keys() & RETIRED.keys(), "said", "tale"}
    found = set()
    for path in (*MODULE_PATHS, *TESTS):
        retired, text = oldest if path in TESTS else IN_NAMES.keys(), path.read_text("utf-8")
        if retired.isdisjoint(re.findall(r"[^\W_]+", text.lower())) and NAMES.keys().isdisjoint(
            re.findall(r"\w+", text)
        ):
            continue
        given = set(named(ast.parse(text)))
        wrong = {name for name in given if retired & {*name.lower().split("_")}}
        found |= {(path.relative_to(ROOT).as_posix(), name) for name in wrong | (given & NAMES.keys())}
    assert sorted(found) == [], f"instead: {IN_NAMES | NAMES}"


RELATIVE = re.compile(r"(What|Who|Whoever|Whom|Whose|Where|When|Whether|Which|Why|How) (?!.*\?$)")


def test_a_docstring_is_a_noun_phrase_or_an_imperative() -> None:
    """No module, class, function or field is explained by a relative clause as subject."""
    sources = [(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in MODULE_PATHS]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        sources += [(f"{path.stem} {cell.id}", cell.source) for cell in cells if cell.cell_type == "code"]
    found = []
    begins = re.compile(r"[\"'](?:\\\n)?" + RELATIVE.pattern.partition(" ")[0])
    for name, source in (each for each in sources if begins.search(each[1])):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = node.value.value
                if isinstance(text, str) and RELATIVE.match(text.partition("\n")[0]):
                    found.append(f"{name}:{node.lineno}: {text[:60]}")
    assert found == []


HEADLESS = re.compile(
    r"(?:[.;:!?)`] |\"\"\"|\n|^)((?:What|Who|Whoever|Whatever|Whichever) (?:[^.?!;=\n]|\.(?=\S))*[.;])(?=\s|\"|\n|$)"
)
"""A sentence whose subject is a relative clause."""


def test_no_sentence_has_a_relative_clause_as_its_subject() -> None:
    """In docstrings, comments, messages, docs and lessons: "What was read is kept" does not name what was read."""
    places = ("kafka_ctl/", "kafka_ctl_course/", "tools/", "benchmarks/", "docs/", "README", "CONTRIBUTING")
    sources = [(name, text) for name, text in texts() if name.startswith(places) and not name.endswith(".ipynb")]
    found = [
        f"{name}: {sentence}"
        for name, text in (*sources, *course_texts())
        for sentence in HEADLESS.findall(re.sub(r"[ \t]*\n[ \t]*(?:#|//)?[ \t]*(?=\S)", " ", text))
    ]
    assert found == []


def test_the_readme_counts_the_lines_as_they_are() -> None:
    """Within a twentieth: those of the controller, and those that are needed to run a cluster with it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    controller, cluster = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) lines", readme))
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "kafka_ctl").rglob("*.py")}
    own = sum(count for path, count in lines.items() if path.parent.name == "controller")
    assert controller == pytest.approx(own, rel=0.05)
    code = "import sys, kafka_ctl.simulation.world; print(*(m.__file__ for m in [*sys.modules.values()] "
    code += "if m.__name__.startswith('kafka_ctl') and m.__file__), sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert cluster == pytest.approx(sum(lines[Path(name)] for name in loaded.stdout.split("\n") if name), rel=0.05)
