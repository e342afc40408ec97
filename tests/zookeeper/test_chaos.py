"""ZooKeeper is killed and cut off in the middle of failovers and shutdowns: a few rounds of `tools/chaos.py`."""

from pathlib import Path

import pytest
from zookeepers import needed

from tools import chaos


def test_no_round_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for rounds in ("0", "-1"):
        with pytest.raises(SystemExit, match="2"):
            chaos.main([rounds])
        assert f"rounds cannot be {rounds};" in capsys.readouterr().err


@pytest.mark.parametrize(("generation", "seed"), [("0.10", 1), ("2.4", 0)])
def test_nothing_acknowledged_is_lost(
    generation: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One controller acts in the end, everything that can be led is, and nothing stays behind."""
    needed()
    for name in ("PROPAGATION_CHECK", "PROPAGATION_QUIET"):
        monkeypatch.setattr(f"kafka_ctl.brokers.leader.{name}", 0.1)
    monkeypatch.setattr("kafka_ctl.simulation.real_world.CERTAIN", 0.5)
    reported: list[str] = []
    chaos.play(generation, 2, seed, reported.append, tmp_path)
    assert len(reported) == 2
