"""A whole archive of made-up events: made in one process, landed in another, merged, and kept for the next run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty

import msgspec
from msgspec import Struct

from jobs.lab.bench.archive_landing import Lander
from jobs.lab.bench.archive_sessions import Size
from jobs.lab.bench.archive_traffic import Chunk, Traffic
from jobs.lab.bench.figures import BenchFailed
from jobs.shared.progress import Progress
from models.errors import ConfigurationError
from streams.archive.catalog import LakePaths
from streams.archive.maintenance import maintain
from streams.archive.writer import LakeWriter
from streams.settings.archive import ArchiveSettings

KEPT = "bench-archive.json"
_WAITING_CHUNKS = 2
_LOOK_EVERY_S = 5
_FILL_BYTES = 128 * 1024 * 1024
"""Of one landing while the archive is filled, which is not what is timed."""


class Filled(Struct, frozen=True):
    """What an archive was filled with.

    Attributes:
        size: What was asked for.
        turns: Turns.
        json_bytes: Of all records.
        merge_s: How long it took to merge all files.
        merged_bytes: What was merged.
        merged_files: Likewise.
    """

    size: Size
    turns: int
    json_bytes: int
    merge_s: float
    merged_bytes: int
    merged_files: int


def kept(data_dir: Path) -> Filled | None:
    """What an earlier run filled this archive with, None if there is none."""
    file = data_dir / KEPT
    return msgspec.json.decode(file.read_bytes(), type=Filled) if file.is_file() else None


def fill(data_dir: Path, paths: LakePaths, size: Size, *, progress: Progress) -> Filled:
    """Fill an archive, or find that it is.

    Args:
        data_dir: A data directory; the note about what it holds is left there.
        paths: Its archive.
        size: How much.
        progress: Told how many turns are in, and of how many.

    Raises:
        ConfigurationError: There is another archive.
        BenchFailed: The process that makes the events died.
    """
    found = kept(data_dir)
    if found is not None and found.size == size:
        # An archive of an earlier release gets what it lacks.
        LakeWriter(paths).close()
        return found
    if found is not None or paths.catalog.exists():
        raise ConfigurationError(f"{data_dir} holds another archive: name an empty folder with --data-dir")
    lander = Lander(paths, ArchiveSettings(flush_bytes=_FILL_BYTES, flush_rows=1_000_000))
    with _made(size) as chunks:
        for chunk in chunks:
            lander.take(chunk)
            progress(lander.spent.turns, size.turns)
    lander.finish()
    lander.close()
    merge_s, merged_bytes, files = _merge(paths)
    filled = Filled(size, lander.spent.turns, lander.spent.json_bytes, merge_s, merged_bytes, files)
    (data_dir / KEPT).write_bytes(msgspec.json.encode(filled))
    return filled


def _merge(paths: LakePaths) -> tuple[float, int, int]:
    size = sum(file.stat().st_size for file in Path(paths.data).rglob("*.parquet"))
    begun = time.perf_counter()
    writer = LakeWriter(paths)
    done = maintain(writer, now=datetime.now(UTC), keep_replaced=timedelta(0), everything=True)
    writer.close()
    return time.perf_counter() - begun, size, done.merged_files


@contextmanager
def _made(size: Size) -> Iterator[Iterator[Chunk]]:
    """Chunks from a process of its own, so that making them and landing them go on at once."""
    context = get_context("spawn")
    queue: Queue[Chunk | None] = context.Queue(_WAITING_CHUNKS)
    maker = context.Process(target=_make, args=(size, queue), daemon=True)
    maker.start()
    try:
        yield _taken(queue, maker)
    finally:
        if maker.is_alive():
            maker.terminate()
        maker.join()


def _taken(queue: Queue[Chunk | None], maker: BaseProcess) -> Iterator[Chunk]:
    while True:
        try:
            chunk = queue.get(timeout=_LOOK_EVERY_S)
        except Empty:
            if not maker.is_alive() and queue.empty():
                raise BenchFailed(
                    f"the process that makes the events ended with code {maker.exitcode}: is there enough memory?"
                ) from None
            continue
        if chunk is None:
            return
        yield chunk


def _make(size: Size, queue: Queue[Chunk | None]) -> None:
    for chunk in Traffic(size).chunks():
        queue.put(chunk)
    queue.put(None)
