"""Checks of folders and of the archive: room, permissions, damage, upkeep; and of the Iceberg tables.

Lock check of archive, vector store, state and local broker: the holders, and whether they are alive.

Each is the kernel's lock on a file and goes with its process: a file that is left over locks nothing. What is stale is
a lock whose holder sleeps for ever (stopped by a signal or a debugger), is another kind of program, or cannot be seen
from here (another container over the same volume).
"""

import fcntl
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import duckdb

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from models.errors import ConfigurationError
from streams.settings import Settings

_WARN_FREE_BYTES = 5 * 1024**3
_FAIL_FREE_BYTES = 512 * 1024**2
_GIB = 1024**3


def check_disk(settings: Settings) -> Verdict:
    """Check that the disks of data directory and archive have free space."""
    places = {"TURNTIDE_DATA_DIR": settings.data_dir, **lake_places(settings)}
    room = {name: (place, shutil.disk_usage(existing(place)).free) for name, place in places.items()}
    for name, (place, free_bytes) in room.items():
        if free_bytes < _FAIL_FREE_BYTES:
            return fail(
                _shown(place, free_bytes),
                f"free some space there (`turntide archive retain`, old logs), or set {name} to another disk",
            )
    if not writable(settings.data_dir):
        return fail(f"{existing(settings.data_dir)} is not writable", _write_advice("DATA_DIR"))
    place, least = min(room.values(), key=lambda each: each[1])
    if least < _WARN_FREE_BYTES:
        return warn(_shown(place, least), "the archive grows: plan for more space")
    return ok(_shown(place, least))


def check_lake(settings: Settings) -> Verdict:
    """Check that the archive role may write to the places of catalog and files."""
    places = lake_places(settings)
    for name, place in places.items():
        if not writable(place):
            return fail(f"{place}: {existing(place)} is not writable", _write_advice(name.removeprefix("TURNTIDE_")))
    if not places:
        return ok("in PostgreSQL and on S3: see the check `archive`")
    return ok(f"writable: {', '.join(str(place) for place in places.values())}")


def check_encryption(settings: Settings) -> Verdict:
    """Check that the keyring opens, and does not lie where it would be copied with what it encrypts."""
    from streams.encryption.keyring import keyring_of

    path = settings.encryption.keyring
    if path is None or (ring := keyring_of(settings.encryption)) is None:
        return ok("off: encryption.keyring is not set")
    if path.resolve().is_relative_to(settings.data_dir.resolve()):
        return warn(
            f"{path} lies in the data directory",
            "move it out: else a backup of the data directory has its own keys, and erasing a key erases nothing",
        )
    apps = len({key.app_id for key in ring.keys if key.app_id})
    return ok(f"{path} opens: keys of {apps} apps, {len(ring.erased)} keys erased")


def lake_places(settings: Settings) -> dict[str, Path]:
    """Folders and the catalog's file by the setting that says where they are; what is elsewhere is left out."""
    from streams.archive.place import paths_of

    paths = paths_of(settings)
    places = {}
    if paths.postgres is None:
        places["TURNTIDE_ARCHIVE__CATALOG"] = paths.catalog
    if paths.is_folder:
        places["TURNTIDE_ARCHIVE__DATA_PATH"] = Path(paths.data)
    return places


def _write_advice(setting: str) -> str:
    return (
        "give the folder to the user that runs the workers (chown, chmod u+rwx; a mount must not be read-only), or "
        f"set TURNTIDE_{setting} to another place"
    )


def _shown(place: Path, free_bytes: int) -> str:
    return f"{place}: {free_bytes / _GIB:.1f} GiB free"


def writable(place: Path) -> bool:
    """Check the permissions of this user to write to a place, or to make it; nothing is written."""
    nearest = existing(place)
    if nearest.is_file():
        # SQLite keeps its journal beside the file.
        return nearest == place and os.access(nearest, os.W_OK) and os.access(nearest.parent, os.W_OK | os.X_OK)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def existing(place: Path) -> Path:
    """The place, or the nearest one above it that this user sees: what is missing is made when it is needed."""
    return next(each for each in (place, *place.absolute().parents) if _is_seen(each))


def _is_seen(place: Path) -> bool:
    """Below a folder that is closed to this user nothing is."""
    try:
        return place.exists()
    except PermissionError:
        return False


_UNSETTLED_ROWS = 1_000_000
"""Not settled, each query looks for repeats among so many rows itself: from here on that is felt."""


def check_archive(settings: Settings) -> Verdict:
    """Check that the archive opens, has every file, and is settled."""
    from streams.archive.catalog import open_reader, paths_of, reading
    from streams.archive.damage import damaged, foreign_files, render_damage

    paths = paths_of(settings)
    try:
        open_reader(paths).close()
    except ConfigurationError as error:
        return warn(str(error), "normal before the first turns; then start the archive role")
    with reading(paths) as con:
        hurt, foreign, unsettled = damaged(con), foreign_files(con), unsettled_rows(con)
    if hurt:
        return fail(render_damage(hurt), "`turntide archive verify` lists every damaged file")
    place = f"{paths.shown} with data in {paths.data}"
    if unsettled > _UNSETTLED_ROWS:
        return warn(
            f"{place} opens; {unsettled:,} rows are not deduplicated yet, so every query has to deduplicate them",
            "run `turntide archive merge`; if its log says archive_not_settled, `turntide archive verify` names the "
            "damaged file that prevents it",
        )
    if foreign:
        return warn(f"{place} opens; {len(foreign)} foreign files are in it", "move them elsewhere")
    return ok(f"{place} opens, all files are present")


def unsettled_rows(con: duckdb.DuckDBPyConnection) -> int:
    """Records that landed behind the marks below which repeats are written down (`streams.archive.deduplication`)."""
    from streams.archive.schema import OFFSETS, RAW, TABLES
    from streams.archive.views.definitions import ONCE
    from streams.archive.views.published import marks_of

    marks = marks_of(con)
    least: dict[tuple[str, int], int] = {}
    for rule in ONCE.values():
        topic = TABLES[rule.table].topic.name
        for partition, mark in marks.get(rule.table, {}).items():
            place = (topic, partition)
            least[place] = min(mark, least.get(place, mark))
    topics = {TABLES[rule.table].topic.name for rule in ONCE.values()}
    landed = con.execute(
        f"SELECT topic, kafka_partition, min(first_offset), max(next_offset) FROM {RAW}.{OFFSETS} GROUP BY ALL"  # noqa: S608 - constants
    ).fetchall()
    return sum(
        following - max(first, least.get((name, partition), 0))
        for full, partition, first, following in landed
        for name in topics
        if full.endswith(f".{name}")
    )


def check_iceberg(settings: Settings) -> Verdict:
    """Check that the Iceberg catalog answers, where one is configured or its file exists."""
    from streams.archive.place import place_of

    place = place_of(settings)
    if place.file is not None and not place.file.exists():
        return ok("not published: `turntide archive publish` writes Iceberg tables")
    from streams.archive.iceberg.catalog import opened

    with opened(settings) as catalog:
        named = {name for (name, *_) in catalog.list_namespaces()}
    if settings.iceberg.namespace not in named:
        return warn(
            f"{place.shown} answers, without the namespace {settings.iceberg.namespace}",
            "`turntide archive publish` creates it; or check TURNTIDE_ICEBERG__NAMESPACE",
        )
    return ok(f"{place.shown} answers")


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
                f"{each.file} is locked by process {each.pid}, which is {each.state}: no other process can write there",
                f"resume it with `kill -CONT {each.pid}`, or end it with `kill -KILL {each.pid}`: that releases the "
                "lock. Do not remove the file",
            )
        if not each.pid:
            return fail(
                f"{each.file} is locked by a process that is not visible from here",
                "look in the other containers and machines that share this folder: one of them has the lock. Give each "
                "its own data directory",
            )
    strangers = [each for each in held if not each.ours]
    if strangers:
        each = strangers[0]
        return warn(
            f"{each.file} is locked by process {each.pid}, which is not a process of Turntide",
            f"`ps -fp {each.pid}` shows its command; end it if it should not run",
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
