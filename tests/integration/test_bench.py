"""The benchmark itself, on a real broker and tiny sizes: every figure is there. Never how fast anything is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.lab.bench.contender import CONTENDERS, missing_package
from jobs.lab.bench.kills import measure as measure_kills
from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.stream import StreamSize, measure

pytestmark = [pytest.mark.kafka, pytest.mark.system]


async def test_every_figure_is_measured(kafka: str, tmp_path: Path) -> None:
    """Each contender folds its turns, each alarming turn's alert is read, and each ratio is positive."""
    said: list[str] = []
    size = StreamSize(runs=1, turns=3_000, per_event_turns=200, latency_seconds=0.5)

    report = await measure(BenchEnvironment(kafka, tmp_path), size, say=said.append)

    wanted = {"sessions_role", *(name for name in CONTENDERS if missing_package(name) is None)}
    assert set(report["absolute_turns_per_s"]) == wanted
    assert all(rate > 0 for rate in report["absolute_turns_per_s"].values())
    ratios = {name: report[f"ratio_{name}"] for name in CONTENDERS}
    assert {name for name, ratio in ratios.items() if ratio is not None and ratio > 0} == wanted - {"sessions_role"}
    assert report["alert_latency_ms"]["alerts"] == 25
    assert 0 < report["alert_latency_ms"]["p50"] <= report["alert_latency_ms"]["p99"]
    assert report["changelog_bytes_per_turn"] > report["turn_bytes"] > 100
    assert all(us > 0 for stage, us in report["stage_us_per_turn"].items() if stage != "other")
    assert report["mb_per_10000_sessions"] > 0
    assert said[0] == "run 1 of 1"


@pytest.mark.timeout(900)
async def test_kills_are_counted_against_the_oracle(kafka: str, tmp_path: Path) -> None:
    """Role and Faust agent killed once each in mid-stream: both are counted, and the role lost and doubled nothing."""
    names = ["sessions_role", "per_event_faust_guarded"]

    report = await measure_kills(BenchEnvironment(kafka, tmp_path), names, 1, 3, say=lambda _: None)

    assert [(row["contender"], row["kills"], row["turns"]) for row in report["rows"]] == [
        (name, 1, 1_100) for name in names
    ]
    role = report["rows"][0]
    assert role["settled"]
    assert [role[key] for key in ("lost", "doubled", "alerts_missing", "alerts_false", "repeats_other_id")] == [0] * 5
    assert report["rows"][1]["alerts"] == role["alerts"] > 0
