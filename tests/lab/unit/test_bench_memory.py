"""The command's report at a tiny size. Never megabytes."""

import pytest

from jobs.lab.bench.memory import FILLED_TURNS, measure


def test_the_report_says_what_a_session_takes_and_whether_it_is_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty milestones; the wanted number is open; every figure is there."""
    report = measure(sessions=600, open_at_once=100, filled=500)

    assert report["sessions"] == report["milestones"][-1]["seen"] == 600
    assert len(report["milestones"]) == 20
    assert 50 < report["most_open"] <= 100
    assert report["most_remembered"] > 400
    assert report["filled_turns"] == FILLED_TURNS
    assert report["mb_per_10000_sessions"] > 0
    assert 1_000 < report["state_bytes_per_session"] < 10_000
    assert report["level_ratio"] >= 1
    assert len(capsys.readouterr().err.splitlines()) == 21
