"""Wording of the sections: jobs, tables and figures of `sections.toml`; findings and evidence of `findings.toml`."""

from typing import Any, Literal

import msgspec
import polars as pl
from msgspec import Struct

from jobs.analyse.mining.coverage import Coverage, PartialShare, about, part_of
from jobs.analyse.mining.job import SHARE, Figure, Finding, JobWording, Period, SessionMeasure
from streams.http.pages import source


class _Sections(Struct, frozen=True):
    figures: dict[Literal["neither", "higher", "lower"], dict[str, str]]
    jobs: dict[str, JobWording]


class _FindingWording(Struct, frozen=True):
    title: str
    text: str
    evidence: str


class _Findings(Struct, frozen=True):
    findings: dict[str, _FindingWording]
    evidence: dict[str, str]
    measures: dict[str, SessionMeasure]


_SECTIONS = msgspec.toml.decode(source("jobs/analyse/mining/sections.toml"), type=_Sections)
_FINDINGS = msgspec.toml.decode(source("jobs/analyse/mining/findings.toml"), type=_Findings)
JOBS = _SECTIONS.jobs
"""What each job is about."""
FIGURES = {name: (way, meaning) for way, said in _SECTIONS.figures.items() for name, meaning in said.items()}
"""Which way is better, and what it means, of every figure."""
MEASURES = _FINDINGS.measures
"""What drift measures of a session, by column; signals come besides as `signal_<name>`."""


def figure(
    name: str,
    value: object,
    whom: pl.DataFrame | Coverage,
    *,
    part: pl.Expr | Coverage | None = None,
    digits: int | None = None,
    always: bool = False,
    **words: float,
) -> Figure:
    """A figure about these rows.

    Args:
        name: One of `FIGURES`.
        value: A number, or None where there is nothing to tell.
        whom: Rows with `session_id` and `user_id`, or their counts.
        part: Of a share of the rows: the condition that it counts, or whom it tells of.
        digits: Decimals that are kept.
        always: It is shown however few it is about (`Figure`).
        words: Numbers that its meaning names.
    """
    if isinstance(part, pl.Expr):
        assert isinstance(whom, pl.DataFrame)  # noqa: S101 - a condition is one of rows
        part = part_of(whom, part)
    better, meaning = FIGURES[name]
    number = None if value is None else float(value)  # type: ignore[arg-type]
    return Figure(
        name=name,
        value=number if number is None or digits is None else round(number, digits),
        meaning=meaning.format(**words),
        **(about(whom) if isinstance(whom, pl.DataFrame) else whom),
        better=None if better == "neither" else better,
        part=part,
        always=always,
    )


def finding(
    name: str, period: Period, /, *, strength: float, shares: tuple[PartialShare, ...] = (), **words: Any
) -> Finding:
    """A finding about a period.

    Args:
        name: Of its words.
        period: In which the sessions of the evidence began.
        strength: 0-1.
        shares: For the places of the text that say `{share}`.
        words: What title, text and evidence name.
    """
    said = _FINDINGS.findings[name]
    return Finding(
        title=said.title.format(period=period, **words),
        text=said.text.format(period=period, share=SHARE, **words),
        evidence=evidence(said.evidence, period, **words),
        strength=strength,
        shares=shares,
    )


def evidence(name: str, period: Period, /, **words: Any) -> str:
    """SQL of some evidence."""
    begun = (
        "(app_id, session_id) IN (SELECT (app_id, session_id) FROM turns GROUP BY app_id, session_id "  # noqa: S608
        f"HAVING min(date) BETWEEN DATE '{period.since}' AND DATE '{period.until}')"
    )
    return _FINDINGS.evidence[name].format(period=period, begun=begun, **words)
