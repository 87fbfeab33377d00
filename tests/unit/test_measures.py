"""What a role shows of its place in the log, and of the machine, whatever producers and machines are like."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiokafka.structs import ConsumerRecord

from streams.kafka.records import ShownPartitions, event_time_of
from streams.observe.memory_limit import memory_limit_bytes
from streams.observe.telemetry import metrics

WRITTEN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def record(ce_time: bytes | None, at_ms: int = int(WRITTEN.timestamp() * 1000)) -> ConsumerRecord:
    """A record as somebody else's producer may write it."""
    headers = (("other", None), ("ce_time", ce_time))
    return ConsumerRecord("t", 0, 7, at_ms, 0, b"k", b"v", None, 1, 1, headers)


@pytest.mark.parametrize("ce_time", [None, b"", b"\xff\xfe", b"yesterday"])
def test_a_record_is_dated_by_itself_where_its_header_says_nothing(ce_time: bytes | None) -> None:
    """Headers are anybody's: one that is no time stops no role."""
    assert event_time_of(record(ce_time)) == WRITTEN


def test_a_header_counts_first_and_nonsense_is_now() -> None:
    """A time without a zone is UTC; a number beyond any calendar is no lag."""
    began = datetime.now(UTC)

    assert event_time_of(record(b"2026-01-05T08:00:00")) == WRITTEN.replace(hour=8)
    for at_ms in (2**63 - 1, -(2**63), -1):
        assert began <= event_time_of(record(None, at_ms=at_ms)) <= datetime.now(UTC)


def test_gauges_of_a_partition_that_moved_are_dropped() -> None:
    """Else the lag that it had here would say for ever that this worker stands still."""

    def lag(partition: str) -> float | None:
        return metrics.registry.get_sample_value("turntide_offset_lag_records", {"partition": partition})

    shown = ShownPartitions()
    shown.keep([901, 902])
    for partition in ("901", "902"):
        metrics.gauge("offset_lag_records", partition=partition).set(5)
    shown.keep([902])

    assert (lag("901"), lag("902")) == (None, 5)
    metrics.forget_partition(902)


def test_a_containers_limit_counts_before_the_machines_memory(tmp_path: Path) -> None:
    """Both versions of control groups; `max` is none."""
    machine = memory_limit_bytes(tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("4096\n")
    old = memory_limit_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("1024\n")
    new = memory_limit_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")

    assert (old, new) == (4096, 1024)
    assert memory_limit_bytes(tmp_path) == machine > 2**20
