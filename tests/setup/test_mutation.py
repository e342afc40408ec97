"""The mutation tool: what it makes of a file, that it tells killed from surviving, and that its table is not stale."""

import ast
import subprocess
import sys

import pytest
from prose import Prose
from tables import text

from kafka_ctl.paths import ROOT
from tools.mutation.__main__ import Journal, arguments, equivalents, every_mutant, main, summary
from tools.mutation.operators import Mutant, mutants, mutated
from tools.mutation.plugin import Result, forked
from tools.mutation.targets import TARGETS

SOURCE = '''
LIMIT = 3

def f(a, b, c=1):
    """Text."""
    x = a + 1
    if a < b and not c:
        x = max(a, b)
        print("text", x)
    for n in range(2):
        if n:
            continue
    return x

class C:
    async def g(self, one, two):
        async with self.lock:
            self.h(one, two, True)
            self.seen = [n for n in one if n is None]
'''
WANTED = text("mutation_wanted.txt")


@pytest.fixture(scope="module")
def every_key() -> list[str]:
    """The keys of all mutants there are."""
    return [mutant.key for mutant in every_mutant(TARGETS.values())]


def test_what_is_mutated() -> None:
    """Nothing outside of functions, no texts, no defaults; each mutant is code, and other code."""
    made = mutants("x.py", SOURCE)
    wanted = [key.strip() for line in WANTED.strip().splitlines() for key in line.split(" | ")]
    assert sorted(mutant.key for mutant in made) == sorted(f"x.py {key}" for key in wanted)
    plain = ast.dump(ast.parse(SOURCE))
    for mutant in made:
        tree = mutated(SOURCE, mutant)
        compile(tree, "x.py", "exec")
        assert ast.dump(tree) != plain


def test_keys_tell_mutants_apart_and_do_not_name_lines(every_key: list[str]) -> None:
    assert len(every_key) == len(set(every_key)) > 14000
    moved = mutants("x.py", "\n\n" + SOURCE)
    assert [m.key for m in moved] == [m.key for m in mutants("x.py", SOURCE)]
    twice = "def f(a):\n    g(a)\n    g(a)\n"
    assert [m.key for m in mutants("x.py", twice)] == [
        "x.py f: drop: g(a) -> nothing",
        "x.py f: drop: g(a) -> nothing #2",
    ]


def test_the_table_of_equivalent_mutants_is_of_mutants_that_there_are(every_key: list[str]) -> None:
    """A key whose code has changed is stale: look at the mutant again."""
    known = equivalents()
    assert sorted(known.keys() - {*every_key}) == []
    assert [key for key, why in known.items() if len(why) < 20] == []


def test_each_target_has_code_and_tests() -> None:
    """Each pattern finds a file, and no file belongs to two targets."""
    for target in TARGETS.values():
        assert [code for code in target.code.split() if not target._replace(code=code).files] == []
        assert [name for name in target.tests.split() if not target._replace(tests=name).test_files] == []
    files = [name for target in TARGETS.values() for name in target.files]
    assert len(files) == len({*files})


@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.left_out])
def test_what_is_left_out_is_there(name: str) -> None:
    """Each word that leaves tests out stands in one of the target's test files."""
    texts = [path.read_text("utf-8") for path in TARGETS[name].test_files]
    assert [word for word in TARGETS[name].left_out.split() if not any(word in text for text in texts)] == []


def test_a_target_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["wires"])
    assert "no target wires" in capsys.readouterr().err


KILLED = "kafka_ctl/brokers/log.py Log.truncate: drop: del self.entries[end:] -> nothing"
ENDLESS = "kafka_ctl/brokers/log.py Log.common_end: compare: own == epoch -> own != epoch"
SURVIVES = "kafka_ctl/brokers/log.py Log.common_end: arguments: min(end, own_end) -> min(own_end, end)"
"""The smaller of two numbers is the same in either order."""


def test_killed_endless_and_surviving_mutants_are_reported_apart(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a process of its own, as the command runs; only the tests of logs."""
    (tmp_path / "keys").write_text("\n".join((KILLED, ENDLESS, SURVIVES)), "utf-8")
    journal = tmp_path / "journal"
    keys = ["--sample", "0", "--keys", str(tmp_path / "keys")]
    words = ["engine", *keys, "--tests", "unit/brokers/log", "--journal", str(journal)]
    done = subprocess.run(
        [sys.executable, "-m", "tools.mutation", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"survived: {SURVIVES}\n"), done.stderr
    assert "3 mutants: 2 killed" in done.stdout
    assert done.returncode == (SURVIVES not in equivalents())
    assert f"KILLED  {KILLED}  tests/unit/brokers/test_log.py::test_truncation" in done.stderr
    assert f"TIME  {ENDLESS}" in done.stderr
    results = Journal(journal).results()
    assert sorted(outcome for _, outcome in results.values()) == ["killed", "survived", "time"]
    assert main(words) == done.returncode, "what the journal has is not run again"
    assert capsys.readouterr().out == done.stdout


def test_a_sample_depends_on_its_seed_only(capsys: pytest.CaptureFixture[str]) -> None:
    listed = []
    for seed in (1, 1, 2):
        assert main(["exercises", "--list", "--sample", "5", "--seed", str(seed)]) == 0
        listed.append(capsys.readouterr().out)
    assert listed[0] == listed[1] != listed[2]
    assert len(listed[0].splitlines()) == 5 == len(set(listed[0].splitlines()))
    assert arguments([]).sample >= 300


def test_the_share_leaves_equivalent_mutants_out(prose: Prose) -> None:
    made: list[Mutant] = mutants("x.py", "def f(a):\n    g(a)\n    h(a)\n    i(a)\n    j(a)\n")
    outcomes = ((("test",), "killed"), ((), "time"), ((), "survived"), ((), "not run"))
    results = [Result(mutant, *outcome) for mutant, outcome in zip(made, outcomes, strict=True)]
    text = summary(results, {made[2].key: "it is the same"})
    prose(text.splitlines()[0])


def test_an_error_in_a_forked_process_is_an_error() -> None:
    assert forked(lambda: 7) == 7
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        forked(lambda: 1 / 0)
