"""Parts of a job by day, kept as Parquet: a run that was cut short goes on, a day that changed is made again.

A day's folder is written beside its place and renamed: it is there as a whole or not at all. It holds ids of sessions,
so an erasure removes it (`streams.archive.mined`).
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from datetime import date
from hashlib import sha256
from pathlib import Path

import msgspec
import polars as pl

from jobs.analyse.mining.job import Frames, Job, Period
from jobs.analyse.mining.source import Day
from models.policy.archive import ArchivePolicy

_MARK = "made-of.txt"


class Parts:
    """The kept days of one job.

    Args:
        folder: Of the job.
        job: Whose.
        policy: By which they are made: another one makes them anew.
    """

    def __init__(self, folder: Path, job: Job, policy: ArchivePolicy) -> None:
        self._folder = folder / "parts"
        rules = sha256(msgspec.json.encode(policy)).hexdigest()
        self._rules = f"version {job.version} rules {rules}"

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
            made = self._folder / f"{day}.new"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            for name, frame in frames.items():
                frame.filter(pl.col("day") == day).write_parquet(made / f"{name}.parquet")
            (made / _MARK).write_text(self._mark(of))
            shutil.rmtree(self._folder / str(day), ignore_errors=True)
            made.rename(self._folder / str(day))

    def frames(self, period: Period, known: Collection[date]) -> dict[str, pl.DataFrame]:
        """Frames of the period's days among the known ones, one after the other; none for a period without days."""
        folders = [self._folder / str(day) for day in sorted(known) if day in period]
        names = {path.stem for folder in folders for path in folder.glob("*.parquet")}
        return {
            name: pl.concat(
                [
                    pl.read_parquet(folder / f"{name}.parquet")
                    for folder in folders
                    if (folder / f"{name}.parquet").is_file()
                ],
                how="diagonal_relaxed",
            )
            for name in sorted(names)
        }

    def _mark(self, of: Day) -> str:
        return f"{self._rules}\n{of.mark}\n"

    def _made_of(self, day: date) -> str:
        try:
            return (self._folder / str(day) / _MARK).read_text()
        except OSError:
            return ""
