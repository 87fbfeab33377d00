"""Lock check of archive, vector store, state and local broker: the holders, and whether they are alive.

Each is the kernel's lock on a file and goes with its process: a file that is left over locks nothing. What is stale is
a lock whose holder sleeps for ever (stopped by a signal or a debugger), is another kind of program, or cannot be seen
from here (another container over the same volume).
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from streams.settings import Settings

_LOCKS = Path("/proc/locks")
_FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""
_OURS = ("turntide", "jobs.cli", "jobs.", "kafka")
"""What stands in the command line of our own processes."""


class HeldLock(NamedTuple):
    """A lock that somebody holds.

    Attributes:
        file: Its file.
        pid: Of the holder; 0 where it cannot be seen.
        state: Of that process, in psutil's words; empty where it cannot be seen.
        ours: Whether it looks like a process of Turntide's.
    """

    file: Path
    pid: int
    state: str
    ours: bool


def check_locks(settings: Settings) -> Verdict:
    """Check that no lock is held by a process that will not release it."""
    files = list(lock_files(settings))
    held = [found for file in files if (found := holder(file)) is not None]
    for each in held:
        if each.state in {"stopped", "tracing-stop", "zombie"}:
            return fail(
                f"{each.file} is held by process {each.pid}, which is {each.state}: no other process can work there",
                f"wake it with `kill -CONT {each.pid}`, or end it with `kill -KILL {each.pid}`: the lock goes with it. "
                "Leave the file where it is",
            )
        if not each.pid:
            return fail(
                f"{each.file} is held by a process that cannot be seen from here",
                "look in the other containers and machines that have this folder: one of them works there. Let each "
                "have a data directory of its own",
            )
    strangers = [each for each in held if not each.ours]
    if strangers:
        each = strangers[0]
        return warn(
            f"{each.file} is held by process {each.pid}, which is not one of Turntide's",
            f"`ps -fp {each.pid}` shows what it is; end it if it should not be there",
        )
    shown = ", ".join(f"{each.file.name} of {each.file.parent.name} by process {each.pid}" for each in held)
    return ok(f"held by live workers: {shown}" if shown else f"{len(files)} files, none is held")


def lock_files(settings: Settings) -> Iterator[Path]:
    """Lock files that exist."""
    from streams.archive.place import paths_of

    data = settings.data_dir
    archive = paths_of(settings)
    candidates = [data / "vectors" / ".lock", data / "kafka" / "start.lock"]
    if archive.postgres is None:
        candidates.append(archive.lock)
    candidates += sorted((data / "state").glob("*/*/LOCK"))
    yield from (file for file in candidates if file.is_file())


def holder(file: Path) -> HeldLock | None:
    """Holder of the lock on a file; None for nobody. Testing takes the lock and releases it at once.

    Raises:
        PermissionError: This user may not look.
    """
    try:
        opened = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        pid = _record_lock(opened)
        if pid is None and _flocked(opened):
            pid = _flock_holder(file)
    finally:
        os.close(opened)
    return None if pid is None or pid == os.getpid() else _described(file, pid)


def _record_lock(opened: int) -> int | None:
    """Who holds a record lock (RocksDB); None for nobody, 0 where the kernel may not tell."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with suppress(OSError, struct.error):
        kind, _whence, _start, _length, pid = _FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_GETLK, asked))
        if kind != fcntl.F_UNLCK:
            return max(int(pid), 0)
    return None


def _flocked(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(opened, fcntl.LOCK_UN)
    return False


def _flock_holder(file: Path) -> int:
    """Its process id as the kernel lists it, else as the file says; 0 if neither does."""
    inode = file.stat().st_ino
    with suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
                return max(int(fields[4]), 0)
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


def _described(file: Path, pid: int) -> HeldLock:
    try:
        import psutil
    except ModuleNotFoundError:
        return HeldLock(file, pid, "", ours=True)
    try:
        process = psutil.Process(pid)
        command = " ".join(process.cmdline())
        return HeldLock(file, pid, str(process.status()), ours=any(word in command for word in _OURS))
    except psutil.AccessDenied:
        return HeldLock(file, pid, "", ours=True)
    except psutil.NoSuchProcess:
        return HeldLock(file, 0, "", ours=False)
