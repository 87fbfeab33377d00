"""Running a job: make the days that changed, look over the period, leave out what is about too few, keep the rest."""

import shutil
import time
import traceback
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
import polars as pl
from filelock import FileLock, Timeout

from jobs.analyse.mining.anonymity import shown
from jobs.analyse.mining.job import Frames, Job, JobFindings, JobResult, MiningInput, Period, ReportSection
from jobs.analyse.mining.source import Day, MiningSource
from jobs.shared.extras import install_of
from jobs.shared.output import Progress
from models.errors import StoreUnavailable, TurntideError
from models.policy.archive import ArchivePolicy
from streams.archive.removal import LOCK

_SECTION = "section.json"
_MARK = "made-of.txt"
_SHOWN = 2
"""Raise it with any change of what is shown of findings: kept results are made again, of the days that are kept."""


def put_whole(place: Path, frames: Frames, files: Mapping[str, bytes]) -> None:
    """Write a folder of frames as Parquet and of other files, and put it in the place of the one before."""
    made = place.with_name(place.name + ".new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name, frame in frames.items():
        frame.write_parquet(made / f"{name}.parquet")
    for name, content in files.items():
        (made / name).write_bytes(content)
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)


def _kept(place: Path) -> JobResult | None:
    """The result in a folder, None if there is none, or one of another form."""
    try:
        section = msgspec.json.decode((place / _SECTION).read_bytes(), type=ReportSection)
        return JobResult(section, {name: pl.read_parquet(place / f"{name}.parquet") for name in section.tables})
    except (OSError, msgspec.MsgspecError, pl.exceptions.PolarsError):
        return None


class DayParts:
    """The kept days of one job, in its folder; another policy makes them anew."""

    def __init__(self, folder: Path, job: Job, policy: ArchivePolicy) -> None:
        self._folder = folder / "parts"
        self._rules = f"version {job.version} rules {sha256(msgspec.json.encode(policy)).hexdigest()}"

    def stale(self, days: Mapping[date, Day]) -> list[date]:
        """Days that are to be made; what is kept of days that are gone is removed."""
        if self._folder.is_dir():
            for place in self._folder.iterdir():
                if place.name not in {str(day) for day in days}:
                    shutil.rmtree(place)
        return [day for day, of in days.items() if self._made_of(day) != self._mark(of)]

    def keep(self, frames: Frames, days: Mapping[date, Day]) -> None:
        """Keep what was made of these days, split by the column `day`."""
        for day, of in days.items():
            of_day = {name: frame.filter(pl.col("day") == day) for name, frame in frames.items()}
            put_whole(self._folder / str(day), of_day, {_MARK: self._mark(of).encode()})

    def frames(self, period: Period, known: Collection[date]) -> dict[str, pl.DataFrame]:
        """Frames of the period's days among the known ones, one after the other; none for a period without days."""
        files: dict[str, list[pl.DataFrame]] = {}
        for day in sorted(known):
            for file in (self._folder / str(day)).glob("*.parquet") if day in period else ():
                files.setdefault(file.stem, []).append(pl.read_parquet(file))
        return {name: pl.concat(frames, how="diagonal_relaxed") for name, frames in sorted(files.items())}

    def _mark(self, of: Day) -> str:
        return f"{self._rules}\n{of.mark}\n"

    def _made_of(self, day: date) -> str:
        mark = self._folder / str(day) / _MARK
        return mark.read_text() if mark.is_file() else ""


_LOCK_TIMEOUT_S = 600


def run(
    job: Job,
    source: MiningSource,
    period: Period,
    *,
    root: Path,
    policy: ArchivePolicy,
    progress: Progress = lambda *_: None,
) -> JobResult:
    """Bring a job's result of a period up to date.

    Idempotent: a second run with the same rows, rules and code reads what the first one kept. Killed at any point, the
    next run goes on with the days that are missing.

    Args:
        job: What to look for.
        source: The archive.
        period: Of it; days before it are made, too, where the job asks for them.
        root: Folder `mining` of the data directory.
        policy: Rules; what is shown needs `policy.anonymity` sessions and users.
        progress: Told how many days are made, and of how many.

    Raises:
        StoreUnavailable: Another run of the job takes longer than ten minutes.
    """
    folder = root / job.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=_LOCK_TIMEOUT_S), source.snapshot():
            return _run(job, source, period, folder=folder, policy=policy, progress=progress)
    except Timeout:
        raise StoreUnavailable(
            f"another `turntide analyse mine {job.name}` has locked {folder}: wait for it, or end it"
        ) from None


def _run(
    job: Job, source: MiningSource, period: Period, *, folder: Path, policy: ArchivePolicy, progress: Progress
) -> JobResult:
    begun = time.monotonic()
    days = source.days(job)
    parts = DayParts(folder, job, policy)
    stale = parts.stale(days)
    made_of = _made_of(job, days, policy, source.without)
    place = folder / "results" / f"{period.since}_{period.until}"
    kept = _kept(place)
    if kept is not None and not stale and kept.section.made_of == made_of:
        return kept
    done = 0
    for batch in _batches(stale, days, policy.mining_batch_rows):
        tables = source.tables(job.about.grouped, batch)
        heavy = {name: source.rows(expression) for name, expression in job.heavy(tables, policy).items()}
        parts.keep(job.refine(heavy, policy), {day: days[day] for day in batch})
        done += len(batch)
        progress(done, len(stale))
    asked = MiningInput(period, policy, lambda other: parts.frames(other, days), source.tables(), source.rows)
    here = [day for day in days if day in period]
    nothing = JobFindings(notes=["There are no rows in this period."])
    found = job.find(parts.frames(period, days), asked) if here else nothing
    told, frames = shown(found, job, source.con, policy)
    section = ReportSection(
        job=job.name,
        title=job.about.title,
        question=job.about.question,
        since=period.since,
        until=period.until,
        made_at=datetime.now(UTC),
        made_of=made_of,
        days=len(here),
        days_left_out=sorted(day for day in source.without if day in period),
        seconds=round(time.monotonic() - begun, 3),
        notes=list(found.notes),
        **told._asdict(),
    )
    put_whole(place, frames, {_SECTION: msgspec.json.format(msgspec.json.encode(section))})
    return JobResult(section, frames)


def _batches(stale: list[date], days: Mapping[date, Day], most_rows: int) -> list[list[date]]:
    """Days one after the other, together as long as they have few rows."""
    batches: list[list[date]] = []
    for day in stale:
        if not batches or sum(days[each].rows for each in (*batches[-1], day)) > most_rows:
            batches.append([])
        batches[-1].append(day)
    return batches


def _made_of(job: Job, days: Mapping[date, Day], policy: ArchivePolicy, without: Collection[date]) -> str:
    marks = [job.name, job.version, _SHOWN, policy, sorted(without), *(f"{day} {of.mark}" for day, of in days.items())]
    return sha256("\n".join(map(str, marks)).encode()).hexdigest()


_JOBS = Path(__file__).parent.parent


def failure_text(error: Exception) -> str:
    """What went wrong, without a text of a turn: an engine's message may quote one, ours never do.

    >>> failure_text(ValueError("what somebody said")).partition(" in ")[0]
    'ValueError'

    Raises:
        KeyboardInterrupt: Nothing did: Ctrl-C ended it, which DuckDB tells as an error of its own.
    """
    if isinstance(error.__cause__, KeyboardInterrupt):
        raise KeyboardInterrupt from None
    if isinstance(error, TurntideError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"the Python package `{error.name}` is not installed: install {install_of(error.name)}"
    # Where in our own code: a line of a library's says nothing to whoever has to mend it.
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent.parent == _JOBS
    ]
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
