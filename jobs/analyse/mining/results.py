"""Results of a run: a folder per period with the section's words and figures and its tables as Parquet.

Nothing in it names a session or a user.
"""

import shutil
import traceback
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

import msgspec
import polars as pl
from msgspec import Struct

from jobs.analyse.mining.job import Figure, Finding, Frames, Period
from jobs.shared.extras import install_of
from models.errors import TurntideError

_SECTION = "section.json"


class ShownFinding(Struct, frozen=True, kw_only=True):
    """A finding with what its evidence was counted to be."""

    finding: Finding
    rows: int
    sessions: int | None
    users: int


class ShownTable(Struct, frozen=True, kw_only=True):
    """What is said of a table; its rows are in `<name>.parquet`."""

    title: str
    meaning: str
    rows: int
    left_out: int
    cells_hidden: int = 0
    """Of the rows that are shown."""


class ReportSection(Struct, frozen=True, kw_only=True):
    """One job's part of the report."""

    job: str
    title: str
    question: str
    since: date
    until: date
    made_at: datetime
    made_of: str
    """Changes with the rows that it was made of, the rules and the job's version."""
    days: int
    """Of the period, those that have rows."""
    days_left_out: list[date]
    """Whose files are damaged."""
    seconds: float
    figures: list[Figure]
    findings: list[ShownFinding]
    tables: dict[str, ShownTable]
    notes: list[str]
    findings_left_out: int
    """About too few sessions or users."""

    @property
    def period(self) -> Period:
        """The days that it is about."""
        return Period(self.since, self.until)


class JobResult(Struct, frozen=True):
    """A section with its tables."""

    section: ReportSection
    tables: Frames


def place_of(folder: Path, period: Period) -> Path:
    """Where a job's result of a period stands, in the job's folder."""
    return folder / "results" / f"{period.since}_{period.until}"


def write(folder: Path, result: JobResult) -> None:
    """Put the result in its place, as a whole."""
    encoded = msgspec.json.format(msgspec.json.encode(result.section))
    put_whole(place_of(folder, result.section.period), result.tables, {_SECTION: encoded})


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


def read(folder: Path, period: Period) -> JobResult | None:
    """The result of a period, None if there is none, or one of another form."""
    place = place_of(folder, period)
    try:
        section = msgspec.json.decode((place / _SECTION).read_bytes(), type=ReportSection)
        return JobResult(section, {name: pl.read_parquet(place / f"{name}.parquet") for name in section.tables})
    except (OSError, msgspec.MsgspecError, pl.exceptions.PolarsError):
        return None


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
