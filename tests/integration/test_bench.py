"""The benchmark itself, on a real broker and tiny sizes: every figure is there. Never how fast anything is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.bench.contender import quix_is_installed
from jobs.bench.figures import RATIO_OF
from jobs.bench.stream import Size, measure

pytestmark = [pytest.mark.kafka, pytest.mark.system]


async def test_every_figure_is_measured(kafka: str, tmp_path: Path) -> None:
    """Each contender folds its turns, each alarming turn's alert is read, and each ratio is positive."""
    said: list[str] = []
    size = Size(runs=1, turns=3_000, per_event_turns=200, latency_seconds=0.5)

    report = await measure(kafka, tmp_path, size, load_average=0.0, say=said.append)

    wanted = {"sessions_role", *RATIO_OF} - (set() if quix_is_installed() else {"quix"})
    assert set(report.absolute_turns_per_s) == wanted
    assert all(rate > 0 for rate in report.absolute_turns_per_s.values())
    ratios = {name: getattr(report, key) for name, key in RATIO_OF.items()}
    assert {name for name, ratio in ratios.items() if ratio is not None and ratio > 0} == wanted - {"sessions_role"}
    assert report.alert_latency_ms.alerts == 25
    assert 0 < report.alert_latency_ms.p50 <= report.alert_latency_ms.p99
    assert report.changelog_bytes_per_turn > report.turn_bytes > 100
    assert min(report.stage_us_per_turn.values()) > 0
    assert said[0] == "run 1 of 1"
