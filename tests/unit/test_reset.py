"""Rebuilding from logs that still have what was erased."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobs.reset import still_in_logs
from models.events import ErasedStore, ErasureProved

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


def proof(expires_at: datetime | None) -> ErasureProved:
    """An erasure whose records on one topic wait for retention until then."""
    waits = ErasedStore(store="topic turns.v1", looked_at=9, removed=0, remaining=1, expires_at=expires_at)
    gone = ErasedStore(store="archive turns", looked_at=9, removed=3, remaining=0)
    return ErasureProved(
        request_id="r", timestamp=NOW, scope="user", subject="", by="", requested_at=NOW, sessions=1,
        stores=[gone, waits], complete=expires_at is None,
    )  # fmt: skip


def test_erasures_that_the_logs_still_hold_are_counted() -> None:
    """Until retention has removed the records, reading the log again brings them back."""
    proofs = [proof(NOW + timedelta(days=1)), proof(NOW - timedelta(days=1)), proof(None)]

    assert still_in_logs(proofs, NOW) == 1
