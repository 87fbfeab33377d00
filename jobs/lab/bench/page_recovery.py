"""The page's section about recovery: how soon state is back, beside stock Faust."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobs.lab.bench.page_parts import Held, Measured, Picture, Section, held, number, number_table
from jobs.shared.charts import Series, draw_grouped_bars

_RATIO_AT_LEAST = 10.0
_SAID = (
    "A role that has lost its memory reads its state back from the changelog, beside a stock Faust table of the same "
    "size. With RocksDB kept from before, only what was written since is read."
)
_COLUMNS = {
    "records_per_s": "records/s",
    "stock_records_per_s": "stock Faust, records/s",
    "recovery_ratio": "ratio",
    "seconds": "s",
    "stock_seconds": "stock Faust, s",
    "rocksdb_seconds": "into RocksDB, s",
    "warm_seconds": "RocksDB kept, s",
    "runs": "rounds",
    "stock_runs": "of stock Faust",
}


def recovery_section(measured: Measured) -> Section:
    """Changelog records applied per second, by number of keys."""
    rows = measured.rows("rows") or ([measured] if measured.number("records_per_s") is not None else [])
    named = [(f"{number(row.number('keys'))} keys", row) for row in rows]
    figures: list[Held] = []
    for name, row in named:
        ratio = row.number("recovery_ratio")
        figures += held(f"recovery of {name} to stock Faust", ratio, at_least=_RATIO_AT_LEAST, unit="×")
    return Section(
        title="Recovery",
        said=[_SAID + (f" A value has {number(size)} bytes." if (size := measured.number("value_bytes")) else "")],
        held=figures,
        tables=[number_table("state", _COLUMNS, named)],
        pictures=_picture(named),
    )


def _picture(named: Sequence[tuple[str, Measured]]) -> list[Picture]:
    kinds = {"stock Faust": "stock_records_per_s", "Turntide": "records_per_s"}
    values = {label: [row.number(key) for _, row in named] for label, key in kinds.items()}
    series = [Series(label, rates) for label, rates in values.items() if any(rates)]
    if not series:
        return []
    title = "State read back from the changelog"
    rows = [name for name, _ in named]
    draw = partial(draw_grouped_bars, title=title, x_label="records per second", rows=rows, series=series)
    return [Picture("recovery.svg", "Changelog records read back per second", draw)]
