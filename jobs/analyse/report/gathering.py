"""Contents of a report: each mining job's result of the period and of the one before, and facts of the archive."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import duckdb
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from jobs.analyse.mining.job import Figure, Job, JobResult, Period, ShownFinding
from jobs.analyse.mining.pictures import pictures_of
from jobs.analyse.mining.run import failure_text
from jobs.analyse.report import wording
from jobs.analyse.report.wording import FigureChange, change, counted
from jobs.shared.pictures import Drawn
from models.events import Harm
from models.policy.archive import AnonymityPolicy
from streams.archive.catalog import LAKE

_TOP, _TOP_OF_A_PART = 10, 3
_HEADLINE = (
    "alerting_sessions",
    "critical_sessions",
    "open_alerts",
    "right_alerts",
    "false_alerts",
    "at_risk_ratio",
    "sessions",
    "users",
    "turns",
    "alerts_per_1000_sessions",
    "tokens_saved",
    "dead_letters",
)
"""Figures of the overview that stand at the top of the page, on the card for chat and on the PDF."""
_IN_WORDS = {"alerting_sessions": "alerted", "critical_sessions": "became critical"}
_MOSTLY = (("kinds", "category", "sessions", "about"), ("apps", "app_id", "alerting_sessions", "of app"))
"""Tables that tell alerting sessions apart: columns of their name and number, and what is said before the name."""
_HALF = 0.5
NAMES_ALERTS = 'turntide query "FROM alerts SELECT session_id, severity, reason"'
"""Of the archive, as the report is: it needs no broker, which a demo's report outlives."""

Mined = Callable[[str, Period], JobResult]
"""A job's result of a period, by its name."""


class ArchiveFacts(Struct, frozen=True):
    """What was read, as a whole."""

    snapshot: int
    committed_at: datetime
    turns: int
    parquet_bytes: int
    json_bytes_of_turns: int

    @property
    def parquet_bytes_per_turn(self) -> float | None:
        """Of all tables, so that it is what a turn costs with all that follows from it."""
        return self.parquet_bytes / self.turns if self.turns else None


class Part(Struct, frozen=True, kw_only=True):
    """One job's part of the report. Without a result, `failure` says why."""

    name: str
    title: str
    question: str = ""
    result: JobResult | None = None
    earlier: JobResult | None = None
    pictures: Sequence[Drawn] = ()
    failure: str = ""

    def before(self, figure: Figure) -> float | None:
        """The figure's value in the earlier period; None if that has fewer days with rows: it would seem a rise."""
        if self.earlier is None or self.result is None or self.earlier.section.days < self.result.section.days:
            return None
        figures = self.earlier.section.figures
        return next((other.value for other in figures if other.name == figure.name), None)


class TopFinding(NamedTuple):
    """A finding with the section that it is from."""

    part: Part
    shown: ShownFinding


class MiningReport(Struct, frozen=True, kw_only=True):
    """All parts, in the order of the jobs."""

    period: Period
    parts: list[Part]
    archive: ArchiveFacts
    policy_version: str
    policy_digest: str
    anonymity: AnonymityPolicy
    made_at: datetime
    seconds: float

    @property
    def overview(self) -> Part | None:
        """The part that has the headline."""
        return next((part for part in self.parts if part.name == "overview"), None)

    @property
    def headline(self) -> list[Figure]:
        """Figures of the overview that stand at the top."""
        result = None if self.overview is None else self.overview.result
        figures = [] if result is None else result.section.figures
        return [figure for name in _HEADLINE for figure in figures if figure.name == name]

    def change(self, figure: Figure) -> FigureChange:
        """A figure of the headline against the earlier period."""
        return change(figure, None if self.overview is None else self.overview.before(figure))

    @property
    def in_words(self) -> str:
        """What happened, held against the earlier period: sessions that alerted, of which app, and critical ones."""
        figures = {figure.name: figure for figure in self.headline}
        said = []
        for name, what in _IN_WORDS.items():
            if name in figures and self.overview is not None:
                now, before = int(figures[name].value or 0), self.overview.before(figures[name])
                than = "" if before is None else f", {wording.times(now, int(before))} in the period before"
                most = self._mostly(now) if what == "alerted" else ""
                said.append(f"{counted(now, 'session')} {what}{than}{most}.")
        return " ".join(said)

    def _mostly(self, alerting: int) -> str:
        """The kind and the app of more than half of so many sessions, as far as they may be shown."""
        result = None if self.overview is None else self.overview.result
        said = ""
        for name, column, count, words in _MOSTLY:
            table = None if result is None else result.tables.get(name)
            if table is not None:
                for row, many in table.filter(pl.col(count) > _HALF * alerting).select(column, count).rows():
                    if row != Harm.OTHER:
                        said += f", {'all' if many == alerting else 'most'} of them {words} {row}"
        return said

    @property
    def is_empty(self) -> bool:
        """Whether no part has a day with rows."""
        return not any(part.result and part.result.section.days for part in self.parts)

    @property
    def failed(self) -> list[Part]:
        """Parts that something went wrong with."""
        return [part for part in self.parts if part.failure]

    @property
    def findings(self) -> list[TopFinding]:
        """Of all parts, the strongest first."""
        made = [(part, part.result.section) for part in self.parts if part.result]
        found = [TopFinding(part, shown) for part, section in made for shown in section.findings]
        return sorted(found, key=lambda each: -each.shown.finding.strength)

    @property
    def no_finding(self) -> str:
        """What is said where no finding is shown: that all is calm only where nothing is hidden and nobody alerted."""
        if self.is_empty:
            return "The archive holds nothing of this period."
        k, figures = self.anonymity, {figure.name: figure for figure in self.headline}
        few = f"fewer than {k.min_sessions} sessions or {k.min_users} users"
        left_out = sum(part.result.section.findings_left_out for part in self.parts if part.result)
        if left_out:
            return f"Nothing is shown: {counted(left_out, 'finding is', 'findings are')} about {few}: hidden."
        if any(figures[name].hidden for name in ("sessions", "users") if name in figures):
            return f"The period has {few}, too few to look for patterns."
        return "No pattern stands out." if self.happened else "Nothing stands out in this period."

    @property
    def nothing(self) -> str:
        """The same with the alerts, where `in_words` does not stand above it."""
        happened = " and ".join(self.happened)
        return f"{self.no_finding} But {happened}: `{NAMES_ALERTS}` names them." if happened else self.no_finding

    @property
    def happened(self) -> list[str]:
        """How many sessions alerted and became critical, each where there are any."""
        figures = {figure.name: int(figure.value or 0) for figure in self.headline}
        return [f"{counted(figures[name], 'session')} {what}" for name, what in _IN_WORDS.items() if figures.get(name)]

    @property
    def top_findings(self) -> list[TopFinding]:
        """The strongest, of each part a few: one job's many must not hide the others'."""
        seen: Counter[str] = Counter()
        top = []
        for found in self.findings:
            seen[found.part.name] += 1
            if seen[found.part.name] <= _TOP_OF_A_PART:
                top.append(found)
        return top[:_TOP]


def part_of(name: str, period: Period, *, job_of: Callable[[str], Job], mined: Mined) -> Part:
    """Run a job for both periods and draw its pictures. Whatever it raises is told, and spoils nothing else."""
    try:
        job = job_of(name)
    except Exception as error:  # noqa: BLE001 - a job that cannot be imported is one section less
        return Part(name=name, title=name.capitalize(), failure=failure_text(error))
    part = Part(name=name, title=job.about.title, question=job.about.question)
    try:
        result = mined(name, period)
        part = replace(part, result=result)
        part = replace(part, pictures=pictures_of(name, result.tables))
        earlier = mined(name, period.earlier)
        return replace(part, earlier=earlier if earlier.section.days else None)
    except Exception as error:  # noqa: BLE001 - the job's own code and the engine's; what is made so far is shown
        return replace(part, failure=failure_text(error))


def facts_of(con: duckdb.DuckDBPyConnection) -> ArchiveFacts:
    """Facts of a reader's archive."""
    found = con.execute(
        f"SELECT snapshot_id, snapshot_time, (SELECT count(*) FROM turns), "  # noqa: S608 - a constant
        f"(SELECT coalesce(sum(file_size_bytes), 0)::BIGINT FROM ducklake_table_info('{LAKE}')), "
        f"(SELECT coalesce(sum(record_bytes), 0)::BIGINT FROM turns) "
        f"FROM ducklake_snapshots('{LAKE}') ORDER BY snapshot_id DESC LIMIT 1"
    ).fetchone()
    assert found  # noqa: S101 - no archive is without a snapshot
    return ArchiveFacts(*found)
