"""Parts of a report without an archive, for tests of its page, pictures and document."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from html.parser import HTMLParser

import altair as alt
import polars as pl

from jobs.analyse.mining.job import Figure, Finding, JobResult, Period, ReportSection, ShownFinding, ShownTable
from jobs.analyse.report.gathering import ArchiveFacts, MiningReport, Part
from jobs.shared.pictures import drawn
from models.policy.archive import AnonymityPolicy

WEEK = Period(date(2026, 3, 9), date(2026, 3, 15))
NOW = datetime(2026, 3, 16, 8, tzinfo=UTC)


def figure(name: str, value: float | None, **fields: str) -> Figure:
    """A figure about nine sessions and users."""
    return Figure(name=name, value=value, meaning="What it says.", sessions=9, users=9, **fields)  # type: ignore[arg-type]


def finding(
    title: str, strength: float = 0.5, evidence: str = "SELECT session_id, user_id FROM alerts"
) -> ShownFinding:
    """A finding with evidence of nine rows."""
    found = Finding(title=title, text=f"The text of {title}.", evidence=evidence, strength=strength)
    return ShownFinding(finding=found, rows=9, sessions=8, users=7)


def result(
    *,
    job: str = "overview",
    period: Period = WEEK,
    figures: Sequence[Figure] = (),
    findings: Sequence[ShownFinding] = (),
    tables: dict[str, pl.DataFrame] | None = None,
    notes: Sequence[str] = (),
    days: int = 7,
) -> JobResult:
    """A job's result."""
    frames = tables or {}
    section = ReportSection(
        job=job,
        title=job.capitalize(),
        question="What is asked?",
        since=period.since,
        until=period.until,
        made_at=NOW,
        made_of="0",
        days=days,
        days_left_out=[],
        seconds=1.5,
        figures=list(figures),
        findings=list(findings),
        tables={
            name: ShownTable(title=f"Table {name}", meaning="What stands in it.", rows=frame.height, left_out=2)
            for name, frame in frames.items()
        },
        notes=list(notes),
        findings_left_out=3,
    )
    return JobResult(section, frames)


def part(name: str = "overview", *, made: JobResult | None = None, pictures: int = 0, **fields: object) -> Part:
    """A part of the report, with some pictures of a frame of two rows."""
    chart = alt.Chart(pl.DataFrame({"x": ["</script><b>", "b"], "y": [1, 2]})).mark_bar().encode(x="x:N", y="y:Q")
    charts = [drawn(f"Picture {n} <i>", "What it shows & how.", chart) for n in range(pictures)]
    return Part(name=name, title=name.capitalize(), result=made, pictures=charts, **fields)  # type: ignore[arg-type]


def report(*parts: Part, turns: int = 1_000) -> MiningReport:
    """A report of these parts."""
    return MiningReport(
        period=WEEK,
        parts=list(parts),
        archive=ArchiveFacts(12, NOW, turns, 50_000, 400_000),
        policy_version="default-1",
        policy_digest="abc",
        anonymity=AnonymityPolicy(),
        made_at=NOW,
        seconds=2.5,
    )


_VOID = {"meta", "br", "img", "input", "link"}


class Outline(HTMLParser):
    """Collects a page's tags with their attributes, ids, texts and links; balance is checked on the way."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        assert tag in _VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text that is read."""
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text.append(data)

    def ids(self) -> list[str]:
        """All ids, in order."""
        return [attributes["id"] or "" for _, attributes in self.tags if "id" in attributes]

    def addresses(self) -> list[str]:
        """What links and loaded things name, but places on the page itself."""
        named = [attributes.get(name) or "" for _, attributes in self.tags for name in ("href", "src", "action")]
        return [address for address in named if address and not address.startswith("#")]

    @property
    def said(self) -> str:
        """The text that is read."""
        return " ".join("".join(self.text).split())
