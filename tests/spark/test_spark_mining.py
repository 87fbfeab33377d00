"""What mining asks of the archive gives the same on Spark as on DuckDB, over the same files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import ibis
import pytest
from ibis.backends import BaseBackend

from jobs.analyse.mining.job import JOB_NAMES, job_of
from jobs.analyse.mining.source import Tables
from models.policy.archive import ArchivePolicy
from tests.support.mined_archive import WEEK

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_SAME = 1e-12
"""Relative. Engines add up in another order, and Spark in another one with each plan; a double has 16 digits."""
_DAYS = [WEEK.since + timedelta(days=n) for n in range(WEEK.days)]


@pytest.mark.parametrize("name", JOB_NAMES)
def test_heavy_expressions_agree(name: str, duck: BaseBackend, spark: BaseBackend) -> None:
    """Each frame of the job: the same columns, the same rows, floats but for their last digits."""
    job, policy = job_of(name), ArchivePolicy()

    found = {}
    for engine, backend in (("duckdb", duck), ("spark", spark)):
        tables = Tables(backend.table, grouped=job.about.grouped, days=_DAYS)
        found[engine] = {frame: rows_of(backend, asked) for frame, asked in job.heavy(tables, policy).items()}

    assert found["duckdb"].keys() == found["spark"].keys()
    assert {frame: [] for frame in found["duckdb"]} == {
        frame: differing(rows, found["spark"][frame]) for frame, rows in found["duckdb"].items()
    }
    assert any(found["duckdb"].values())


@pytest.mark.parametrize("view", ["turns", "sessions", "risk_points", "alerts", "topics", "facts"])
def test_views_agree(view: str, duck: BaseBackend, spark: BaseBackend) -> None:
    """Times in UTC, nested fields, lists, bytes and nulls are read alike."""
    mine, theirs = (rows_of(backend, backend.table(view)) for backend in (duck, spark))

    assert mine
    assert differing(mine, theirs) == []


def test_a_difference_is_seen() -> None:
    """Of a value, a float beyond its last digits, a null, and a missing row; not of the order of rows."""
    rows: list[dict[str, Any]] = [{"a": 1, "b": 0.1 + 0.2}, {"a": 2, "b": None}]

    assert differing(rows, [rows[1], {"a": 1, "b": 0.3}]) == []
    assert differing(rows, rows[:1]) != []
    assert differing(rows, [rows[1], {"a": 1, "b": 0.3001}]) != []
    assert differing(rows, [{"a": 1, "b": 0.3}, {"a": 2, "b": 0.0}]) != []


def rows_of(backend: BaseBackend, asked: ibis.Table) -> list[dict[str, Any]]:
    """Execute. Ibis takes Spark's times, which are UTC by the session's zone, for times without a zone."""
    return [_in_utc(row) for row in backend.to_pyarrow(asked).to_pylist()]


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, Mapping):
        return {name: _in_utc(each) for name, each in value.items()}
    return [_in_utc(each) for each in value] if isinstance(value, list) else value


def differing(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The first rows, in an order of their own, that are not the same in both."""
    if len(mine) != len(theirs):
        return [(f"{len(mine)} rows", f"{len(theirs)} rows")]
    pairs = zip(sorted(mine, key=_order), sorted(theirs, key=_order), strict=True)
    return [pair for pair in pairs if not _same(*pair)][:3]


def _order(row: Mapping[str, Any]) -> str:
    return repr([_rounded(row[name]) for name in sorted(row)])


def _rounded(value: Any) -> Any:
    """Floats to nine digits: what differs in the last ones stands in the same place."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=_SAME) or (math.isnan(mine) and math.isnan(theirs))
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        return mine.keys() == theirs.keys() and all(_same(value, theirs[name]) for name, value in mine.items())
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    return type(mine) is type(theirs) and bool(mine == theirs)
