"""The lock that makes the archive's writers take turns; it goes with the process that holds it."""

from __future__ import annotations

from filelock import FileLock

from streams.archive.place import LakePaths
from streams.archive.postgres import AdvisoryLock


def writers_lock(paths: LakePaths, *, timeout_s: float) -> FileLock | AdvisoryLock:
    """A file's beside a catalog in SQLite, whose folder is made for it, or PostgreSQL's own; may be entered again.

    Entering it raises `filelock.Timeout` when another process holds it for longer than `timeout_s`.
    """
    if paths.postgres is not None:
        return AdvisoryLock(paths.postgres, timeout_s=timeout_s)
    paths.catalog.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(paths.lock, timeout=timeout_s, thread_local=False)
