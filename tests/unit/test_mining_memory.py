"""Memory health: what was planted is found, in the archive of two weeks; bounds and few users on frames by hand."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs.analyse.mining import memory
from jobs.analyse.mining.anonymity import shown_rows
from jobs.analyse.mining.job import JobResult, Period
from jobs.analyse.mining.memory import JOB
from models.policy.archive import AnonymityPolicy, MemoryMining
from streams.archive.catalog import LakePaths
from tests.support.mined_archive import WEEK, mined
from tests.support.mined_frames import sessions_of

POLICY = MemoryMining()
A_WEEK = Period(date(2026, 3, 2), date(2026, 3, 8))


def compacted(sessions: int, found: int, *, app_id: str = "support", probes: int = 10) -> pl.DataFrame:
    """A row of sums for each of so many sessions' topics, with so many of their probes found."""
    sizes = {"tokens_before": 100, "tokens_after": 25, "bytes_before": 400, "bytes_after": 200}
    of: dict[str, Any] = {"day": A_WEEK.since, "layer": "topics", "app_id": app_id, "compactions": 2, **sizes}
    return sessions_of(sessions, prefix=app_id, **of, probes=probes, probes_found=found)


def test_sizes_are_ratios_of_sums_and_losses_of_an_app_are_a_finding() -> None:
    """A quarter of the tokens, half of the bytes; a tenth lost is none, nothing to search for neither."""
    sizes = memory.tables_of(compacted(6, 9))["compaction"]
    frame = pl.concat([compacted(6, 2, app_id="lossy"), compacted(6, 9, app_id="careful")])
    found = memory.findings_of(frame, A_WEEK, POLICY)
    figures = {figure.name: figure.value for figure in memory.figures_of(compacted(6, 0, probes=0))}
    shown, left_out, _ = shown_rows(memory.tables_of(compacted(4, 9))["loss"], AnonymityPolicy())

    assert [(6, 6, 12, 0.25, 0.5)] == sizes.select(
        "sessions", "users", "compactions", "tokens_kept_ratio", "bytes_kept_ratio"
    ).rows()
    assert ["Topics of lossy lose what was said"] == [finding.title for finding in found]
    assert 0.8 == pytest.approx(found[0].strength)
    assert figures["topic_loss_median_ratio"] is None
    assert (0, 1) == (shown.height, left_out)


def test_memories_that_share_their_words_are_alike() -> None:
    """Within a space only; order and case do not matter, other words do."""
    memories = pl.DataFrame(
        {
            "app_id": ["a", "a", "a", "b"],
            "space": ["app"] * 4,
            "owner": [""] * 4,
            "memory_id": [1, 2, 3, 4],
            "content": [
                "Refunds take five days.",
                "five days refunds TAKE",
                "Parcels come on Monday.",
                "Refunds take five days.",
            ],
        }
    )
    pairs = memory._alike(memories, POLICY.alike_min_ratio)

    assert [("a", 1, 2)] == pairs.select("app_id", "memory_id", "memory_id_other").rows()


def test_planted_facts_are_found(week: Callable[[str], JobResult]) -> None:
    """31 users: 11 flip, 8 have `Danish` under two keys, 7 an employer that nobody confirmed; with their evidence."""
    result = week("memory")
    figures = {figure.name: figure.value for figure in result.section.figures}
    findings = {shown.finding.title: shown for shown in result.section.findings}
    segments = result.tables["compaction"].filter(pl.col("layer") == "segments")
    active = 31 * 2 + 8 * 2 + 7

    assert 70 == segments["sessions"].sum()
    assert active == figures["active_facts"]
    assert round(16 / active, 3) == figures["duplicate_facts_ratio"]
    assert round(7 / active, 3) == figures["stale_facts_ratio"]
    assert 11 == findings["Facts of category preference flip back"].users
    assert 8 == findings["The same value stands under several keys"].users


def test_a_week_before_is_told_as_it_was(planted: LakePaths, tmp_path: Path) -> None:
    """States are of the end of the period, not of the archive: in its first week no tone has come back yet."""
    first_days = Period(WEEK.earlier.since, WEEK.earlier.since + timedelta(days=2))
    result = mined(JOB, planted, tmp_path, period=first_days)
    figures = {figure.name: figure.value for figure in result.section.figures}

    assert 0 == figures["flipping_users_ratio"]
    assert not [shown for shown in result.section.findings if "flip" in shown.finding.title]
