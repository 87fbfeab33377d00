"""Tables in RocksDB that no worker goes on with: they must not keep for ever what was erased since."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import structlog
from rocksdict import Options, Rdict

log = structlog.get_logger(__name__)


def drop_outdated(parent: Path, max_age: timedelta, *, now_s: float) -> None:
    """Delete tables below a folder that nobody holds and that have not been written to for so long.

    They are of partitions that moved to another worker, or were made beside a table that was held. None of them would
    be gone on from: what was deleted meanwhile may no longer stand in the changelog (`streams.state.recovery`).

    Args:
        parent: Holds a folder for each table.
        max_age: `state.max_age`.
        now_s: The wall clock, seconds since 1970.
    """
    for place in parent.iterdir() if parent.is_dir() else ():
        if now_s - place.stat().st_mtime > max_age.total_seconds() and not _held(place):
            log.info("state_cache_dropped", folder=str(place), reason="outdated")
            shutil.rmtree(place, ignore_errors=True)


def _held(place: Path) -> bool:
    """Whether a process has it open, this one or another; damaged is not held."""
    try:
        Rdict(str(place), Options(raw_mode=True)).close()
    except Exception as error:  # noqa: BLE001 - rocksdict has no exceptions of its own
        return "lock" in str(error).casefold()
    return False
