"""The check fails when anything fails, also when there was nothing to run."""

from pathlib import Path

import pytest

from kafka_ctl.paths import ROOT
from tools import check
from tools.check import Step


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a test that passes, one that fails, one that is skipped, and none at all."""
    (tmp_path / "test_good.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tmp_path / "test_bad.py").write_text("def test_c(): assert 0\n")
    (tmp_path / "test_skip.py").write_text("import pytest\ndef test_d(): pytest.skip('no Chromium')\n")
    (tmp_path / "test_none.py").touch()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a second faster, each time
    return tmp_path


def pytest_step(*names: str) -> Step:
    """A step that runs these files."""
    return Step("tests", ("pytest", "-q", "-pno:cacheprovider", *names), counts=True)


def test_all_passed(tests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last line counts tests where pytest can, and one for every other step."""
    steps = [Step("syntax", ("compileall", "-q", ".")), pytest_step("test_good.py", "test_skip.py")]
    assert check.main([], steps, tests) == 0
    reported = capsys.readouterr().out.splitlines()
    assert reported[-3].startswith("passed  syntax")
    assert reported[-2].startswith("passed  tests")
    assert " 3 passed, 1 skipped in " in reported[-1]
    assert reported[-4] == "skipped test_skip.test_d: no Chromium"


@pytest.mark.parametrize(
    ("step", "counted"),
    [
        (pytest_step("test_good.py", "test_bad.py"), " 1 failed, 3 passed in "),
        (pytest_step("test_none.py"), " 1 failed, 1 passed in "),
        (pytest_step("test_missing.py"), " 1 failed, 1 passed in "),
        (Step("lint", ("a_module_that_is_not_there",)), " 1 failed, 1 passed in "),
    ],
)
def test_one_failed(tests: Path, capsys: pytest.CaptureFixture[str], step: Step, counted: str) -> None:
    """A failed test, no test, a missing file, a missing tool: each fails the check; the rest still runs."""
    assert check.main([], [step, Step("syntax", ("compileall", "-q", "."))], tests) == 1
    reported = capsys.readouterr().out.splitlines()
    assert reported[-3].startswith("FAILED")
    assert reported[-2].startswith("passed  syntax")
    assert counted in reported[-1]


def test_a_failure_is_named_at_the_end(tests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name and the first words of a failed test stand right above the lines of the steps."""
    check.main([], [pytest_step("test_bad.py")], tests)
    assert capsys.readouterr().out.splitlines()[-3] == "failed test_bad.test_c: assert 0"


def test_arguments_go_to_pytest(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And pytest is all that runs."""
    assert check.main(["-q", "-pno:cacheprovider", "test_good.py", "-k", "test_b"], root=tests) == 0
    reported = capfd.readouterr().out
    assert "1 passed, 1 deselected" in reported
    assert "summary" not in reported


def test_a_step_aside_has_ended_before_the_tests(tests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It runs beside the steps before them, and its failure counts."""
    (tests / "aside.py").write_text("import time; time.sleep(1); open('made', 'w'); raise SystemExit(1)")
    (tests / "test_made.py").write_text("import os\ndef test_e(): assert os.path.exists('made')\n")
    steps = [
        Step("made", ("aside",), aside=True),
        Step("syntax", ("compileall", "-q", ".")),
        pytest_step("test_made.py"),
    ]
    assert check.main([], steps, tests) == 1
    reported = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in reported[-4:-1]] == [
        ["passed", "syntax"],
        ["FAILED", "made"],
        ["passed", "tests"],
    ]


def test_no_room_is_left_out() -> None:
    """Every folder that holds tests is run."""
    assert sorted(check.ROOMS) == sorted(
        {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    )
