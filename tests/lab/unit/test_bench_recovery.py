"""Arithmetic of the recovery benchmark, and what the role says while it recovers."""

from pathlib import Path

from jobs.lab.bench.recovery import row_of
from models.policy import Policy
from models.risk.scorer import RuleScorer
from streams.inference.wordllama import WordLlamaEmbedder
from streams.roles.sessions import SessionsRole
from streams.settings import load_settings
from streams.state.recovery import RecoveryProgress


def seconds(ours: float, stock: float | None = None) -> dict[str, float]:
    """A round."""
    measured = {"turntide": ours, "rocksdb": 2 * ours, "warm": ours / 10}
    return measured if stock is None else {**measured, "stock_faust": stock}


def test_ratio_is_taken_where_both_ran_and_medians_over_all() -> None:
    """Stock Faust may take part in fewer rounds; the ratio pairs what ran side by side."""
    row = row_of(1_000, [seconds(4.0, 80.0), seconds(1.0), seconds(2.0)])

    assert (20.0, 2.0, 80.0) == (row["recovery_ratio"], row["seconds"], row["stock_seconds"])
    assert (500.0, 12.5) == (row["records_per_s"], row["stock_records_per_s"])
    assert (4.0, 0.2, 3, 1) == (row["rocksdb_seconds"], row["warm_seconds"], row["runs"], row["stock_runs"])


async def test_readiness_tells_how_far_recovery_is(tmp_path: Path) -> None:
    """Whoever asks /readyz while state is rebuilt is told what it waits for."""
    role = SessionsRole(load_settings(data_dir=tmp_path), Policy(), WordLlamaEmbedder(), RuleScorer())
    progress = role._table._recovering = RecoveryProgress("state")
    progress.begin(200)
    progress.note(50, 150)

    assert (False, "recovering state: 50 of 200 records (25 %)") == role.ready()
