"""Arithmetic of the recovery benchmark."""

from jobs.lab.bench.recovery import row_of


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
