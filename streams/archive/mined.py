"""Files that mining keeps beside the archive: days with ids of sessions, and results without.

Both go with every erasure and every retention, whoever it is about: they are made again from what is left.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from filelock import FileLock, Timeout

from models.errors import StoreUnavailable
from models.events.erase import ErasedStore

FOLDER = "mining"
"""Under the data directory: a folder for each job."""
LOCK = ".lock"
"""In the folder of a job, held by whoever makes or removes its days."""
_TIMEOUT_S = 60


def forget_mined(folder: Path) -> ErasedStore:
    """Remove every kept day and result, and count the days.

    Call it when the archive's rows are gone: a run of mining that saw them holds the lock until it has written.

    Raises:
        StoreUnavailable: A run of mining holds a job's folder; call again.
    """
    days = remaining = 0
    for job in sorted(path for path in folder.glob("*") if path.is_dir()):
        try:
            with FileLock(job / LOCK, timeout=_TIMEOUT_S):
                days += sum(1 for _ in (job / "parts").glob("*"))
                for kept in ("parts", "results"):
                    shutil.rmtree(job / kept, ignore_errors=True)
                # Before the lock is free: what is kept from then on was made of rows that are left.
                remaining += sum(1 for _ in (job / "parts").glob("*"))
        except Timeout:
            raise StoreUnavailable(f"`turntide mine {job.name}` is at work in {job}: wait for it, or end it") from None
    return ErasedStore(store="mined days", looked_at=days, removed=days - remaining, remaining=remaining)
