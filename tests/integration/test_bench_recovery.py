"""The recovery benchmark on a real broker and a tiny size: every figure is there. Never how fast anything is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.recovery import RecoverySize, measure

pytestmark = [pytest.mark.kafka, pytest.mark.system]


async def test_every_contender_recovers_every_key(kafka: str, tmp_path: Path) -> None:
    """Ours in memory, in an empty RocksDB and in a warm one, and stock Faust, each in a process of its own."""
    said: list[str] = []

    report = await measure(
        BenchEnvironment(kafka, tmp_path), [RecoverySize(1_000, runs=1, stock_runs=1)], say=said.append
    )

    (row,) = report["rows"]
    assert (1_000, 1_000) == (report["keys"], row["keys"])
    assert min(row["seconds"], row["stock_seconds"], row["rocksdb_seconds"], row["warm_seconds"]) > 0
    assert row["recovery_ratio"] == pytest.approx(row["stock_seconds"] / row["seconds"])
    assert ["turntide", "stock_faust", "rocksdb", "warm"] == [line.split(":")[0].strip() for line in said[2:]]
