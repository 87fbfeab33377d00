"""Wording of the sections, from `sections.toml`: jobs with their tables, figures with what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec
import polars as pl
from msgspec import Struct

from jobs.analyse.mining.coverage import Coverage, about, part_of
from jobs.analyse.mining.job import Figure, Frames, Job, JobFindings, MiningInput, TableWording
from models.policy.archive import ArchivePolicy
from streams.http.pages import source

if TYPE_CHECKING:
    import ibis

    from jobs.analyse.mining.source import Tables


class _JobWording(Struct, frozen=True):
    title: str
    question: str
    grouped: Literal["session", "date"]
    reads: tuple[str, ...]
    tables: dict[str, TableWording]


class _Sections(Struct, frozen=True):
    figures: dict[Literal["neither", "higher", "lower"], dict[str, str]]
    jobs: dict[str, _JobWording]


@cache
def _sections() -> _Sections:
    return msgspec.toml.decode(source("jobs/analyse/mining/sections.toml"), type=_Sections)


def figure_names() -> set[str]:
    """Every figure that has words."""
    return {name for meanings in _sections().figures.values() for name in meanings}


def mining_job(
    name: str,
    *,
    version: int,
    heavy: Callable[[Tables, ArchivePolicy], Mapping[str, ibis.Table]],
    find: Callable[[Frames, MiningInput], JobFindings],
    refine: Callable[[Frames, ArchivePolicy], Frames] = lambda frames, _policy: frames,
) -> Job:
    """The job of this name with its words; for the rest see `Job`."""
    said = _sections().jobs[name]
    return Job(name, version=version, heavy=heavy, find=find, refine=refine, **msgspec.structs.asdict(said))


def figure(
    name: str,
    value: object,
    whom: pl.DataFrame | Coverage,
    *,
    part: pl.Expr | Coverage | None = None,
    digits: int | None = None,
    **words: float,
) -> Figure:
    """A figure about these rows.

    Args:
        name: One of `figure_names`.
        value: A number, or None where there is nothing to tell.
        whom: Rows with `session_id` and `user_id`, or their counts.
        part: Of a share of the rows: the condition that it counts, or whom it tells of.
        digits: Decimals that are kept.
        words: Numbers that its meaning names.
    """
    if isinstance(part, pl.Expr):
        assert isinstance(whom, pl.DataFrame)  # noqa: S101 - a condition is one of rows
        part = part_of(whom, part)
    better, meaning = next((way, said[name]) for way, said in _sections().figures.items() if name in said)
    number = None if value is None else float(value)  # type: ignore[arg-type]
    return Figure(
        name=name,
        value=number if number is None or digits is None else round(number, digits),
        meaning=meaning.format(**words),
        **(about(whom) if isinstance(whom, pl.DataFrame) else whom),
        better=None if better == "neither" else better,
        part=part,
    )
