"""The benchmarks on a real broker and tiny sizes: every figure is there. Never how fast anything is."""

from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from jobs.lab.bench.contender import CONTENDERS, missing_package
from jobs.lab.bench.kills import measure as measure_kills
from jobs.lab.bench.measuring import BenchEnvironment
from jobs.lab.bench.recovery import measure as measure_recovery
from jobs.lab.bench.result import result_of
from jobs.lab.bench.scale import POSITIONS
from jobs.lab.bench.scale import measure as measure_scale
from jobs.lab.bench.stream import measure
from jobs.lab.bench.topics import measure as measure_topics
from jobs.lab.eval.dialogues import read_dialogues
from models.policy import load_policy
from streams.settings import load_settings
from streams.wiring import policy_of


async def test_every_figure_is_measured(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each contender folds its turns, each alarming turn's alert is read, and each ratio is positive."""
    size = {"runs": 1, "turns": 3_000, "per_event_turns": 200}

    report = await measure(BenchEnvironment(kafka, tmp_path), **size, latency_seconds=0.5)

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
    assert capsys.readouterr().err.startswith("run 1 of 1\n")


@pytest.mark.timeout(900)
async def test_kills_are_counted_against_the_oracle(kafka: str, tmp_path: Path) -> None:
    """Role and Faust agent killed once each in mid-stream: both are counted, and the role lost and doubled nothing."""
    names = ["sessions_role", "per_event_faust_guarded"]

    report = await measure_kills(BenchEnvironment(kafka, tmp_path), names=names, kills=1, seed=3)

    assert [(row["contender"], row["kills"], row["turns"]) for row in report["rows"]] == [
        (name, 1, 1_100) for name in names
    ]
    role = report["rows"][0]
    assert role["settled"]
    assert [role[key] for key in ("lost", "doubled", "alerts_missing", "alerts_false", "repeats_other_id")] == [0] * 5
    assert report["rows"][1]["alerts"] == role["alerts"] > 0


async def test_every_contender_recovers_every_key(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours in memory, in an empty RocksDB and in a warm one, and stock Faust, each in a process of its own."""
    report = await measure_recovery(BenchEnvironment(kafka, tmp_path), keys=[1_000], runs=1)

    (row,) = report["rows"]
    assert (1_000, 1_000) == (report["keys"], row["keys"])
    assert min(row["seconds"], row["stock_seconds"], row["rocksdb_seconds"], row["warm_seconds"]) > 0
    assert row["recovery_ratio"] == pytest.approx(row["stock_seconds"] / row["seconds"])
    assert ["turntide", "stock_faust", "rocksdb", "warm"] == [
        line.split(":")[0].strip() for line in capsys.readouterr().err.splitlines()[2:]
    ]


async def test_every_curve_is_measured(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers share the partitions and take the whole backlog; the page's pictures come from this report."""
    report = await measure_scale(
        BenchEnvironment(kafka, tmp_path),
        runs=1,
        probes=1,
        sessions=(200,),
        turns_each=1,
        passes=1,
        workers=(2,),
        backlog_turns=800,
    )
    result = result_of("scale", msgspec.to_builtins(report))

    assert [(each["workers"], each["turns_per_s"] > 0) for each in report["workers"]] == [(2, True)]
    assert [each["turn"] for each in report["session_length"]] == list(POSITIONS)
    assert [each["sessions"] for each in report["sessions"]] == [200]
    assert [picture.file.removesuffix(".svg") for picture in result.pictures] == [
        "scale-length",
        "scale-sessions",
        "scale-memory",
        "scale-workers",
    ]
    assert capsys.readouterr().err.startswith("workers, run 1 of 1\n")


async def test_the_role_runs_with_topics_and_without(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both take the whole backlog, and the ratio is that of their throughputs."""
    settings = load_settings()

    report = await measure_topics(
        dialogues=read_dialogues(),
        most_sessions=1,
        runs=1,
        fold_turns=100,
        role_turns=3_000,
        environment=nullcontext(BenchEnvironment(kafka, tmp_path)),
    )

    role = report["ratio_throughput"]
    assert role is not None
    assert role["ratio"] == pytest.approx(role["with_topics_turns_per_s"] / role["without_topics_turns_per_s"])
    held = result_of("topics", msgspec.to_builtins(report)).held_to
    assert [figure.value for figure in held if figure.what == "topics: ratio_throughput"] == [role["ratio"]]
    assert [line.split(":")[0].strip() for line in capsys.readouterr().err.splitlines()[-2:]] == [
        "sessions role without topics",
        "sessions role with topics",
    ]
    policies = [load_policy((tmp_path / f"{name}-topics.json").read_bytes(), "json") for name in ("with", "without")]
    assert policies[0] == policy_of(settings)
    assert [policy.topics.enabled for policy in policies] == [True, False]
