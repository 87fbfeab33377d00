"""What came of the play, judged: did exactly the expected sessions alert, and what does the archive hold?"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.demo.policy import COMPRESSED_CLOCK
from jobs.demo.state import DemoState, SessionSeen
from models.events import AlertStatus, Severity
from streams.lake.catalog import LakePaths, open_reader, paths_of
from streams.lake.maintenance import maintain
from streams.lake.status import status
from streams.lake.verify import verify
from streams.lake.writer import LakeWriter
from streams.settings import Settings

_KIB = 1024
TOPIC_LIFE = ("started", "compacted", "unpacked", "evicted")
"""What topics of the session written for it must have done."""


class AlertSummary(Struct, frozen=True, kw_only=True):
    """One alert."""

    alert_id: str
    session_id: str
    turn: int
    """At which it was raised …"""
    turns_of_session: int
    """… of how many."""
    severity: Severity
    """The highest it reached."""
    status: AlertStatus
    causes: list[str]
    reason: str
    evidence_turns: list[int]
    latency_ms: float | None
    """From the sending of its turn to its arrival at the demo, through the whole pipeline."""


class TopicsSummary(Struct, frozen=True, kw_only=True):
    """Topics of all sessions, under the demo's compressed clock."""

    clock: str
    """How it is compressed."""
    started: int
    returned: int
    """Became active again; those that were unpacked for it are counted there."""
    compacted: int
    unpacked: int
    merged: int
    evicted: int
    history_bytes: int
    """JSON of what the compactions packed."""
    packed_bytes: int
    packed_to_history_ratio: float | None
    shown_by: dict[str, dict[str, int]]
    """Session written for it → cause → changes."""


class ArchiveSummary(Struct, frozen=True, kw_only=True):
    """The archive after its small files were merged."""

    rows: int
    files: int
    bytes: int
    json_bytes: int
    """Of the same records on their topics."""
    json_to_parquet_ratio: float | None
    findings: list[str]
    """What `turntide archive verify` has to say; nothing when every record is there once."""


class Summary(Struct, frozen=True, kw_only=True):
    """The demo's result. `as_expected` is its verdict."""

    as_expected: bool
    problems: list[str]
    turns: int
    sessions: int
    open_sessions: int
    segments: int
    episodes: int
    windows: int
    alerts_expected: list[str]
    """Session ids."""
    alerts_raised: list[str]
    alerts: list[AlertSummary]
    topics: TopicsSummary
    archive: ArchiveSummary
    seconds: float
    data_dir: str
    report: str


def summarise(state: DemoState, archive: ArchiveSummary, *, seconds: float, data_dir: str, report: str) -> Summary:
    """Judge: exactly the expected alerts, topics through their whole life, every turn folded, and a whole archive."""
    expected = sorted(i for i, s in state.sessions.items() if s.conversation.expected_alert)
    raised = sorted({alert.latest.session_id for alert in state.alerts.values()})
    problems = [
        *(f"{session} was expected to alert and did not" for session in expected if session not in raised),
        *(f"{session} alerted and was not expected to" for session in raised if session not in expected),
        *(f"{session}: no topic was {cause}" for session, cause in _not_shown(state)),
        *(f"archive: {finding}" for finding in archive.findings),
    ]
    if state.folded_turns != state.planned_turns:
        problems.append(f"{state.folded_turns} turns were folded, {state.planned_turns} were planned")
    return Summary(
        as_expected=not problems,
        problems=problems,
        turns=state.folded_turns,
        sessions=len(state.sessions),
        open_sessions=sum(session.episode is None for session in state.sessions.values()),
        segments=state.segments,
        episodes=state.episodes,
        windows=state.windows,
        alerts_expected=expected,
        alerts_raised=raised,
        alerts=_alerts(state),
        topics=_topics(state),
        archive=archive,
        seconds=round(seconds, 1),
        data_dir=data_dir,
        report=report,
    )


def _alerts(state: DemoState) -> list[AlertSummary]:
    return [
        AlertSummary(
            alert_id=alert_id,
            session_id=alert.latest.session_id,
            turn=alert.raised.turn,
            turns_of_session=len(state.sessions[alert.latest.session_id].conversation.turns),
            severity=alert.latest.severity,
            status=alert.latest.status,
            causes=alert.causes,
            reason=alert.gravest.reason,
            evidence_turns=[evidence.turn for evidence in alert.gravest.evidence],
            latency_ms=None if alert.latency_s is None else round(alert.latency_s * 1000, 1),
        )
        for alert_id, alert in state.alerts.items()
    ]


def _topics(state: DemoState) -> TopicsSummary:
    counts = state.topics
    packed = [c.compaction for s in state.sessions.values() for c in s.topics if c.compaction is not None]
    before, after = sum(each.bytes_before for each in packed), sum(each.bytes_after for each in packed)
    return TopicsSummary(
        clock=COMPRESSED_CLOCK,
        started=counts["started"],
        returned=counts["returned"],
        compacted=counts["compacted"],
        unpacked=counts["unpacked"],
        merged=counts["merged"],
        evicted=counts["evicted"],
        history_bytes=before,
        packed_bytes=after,
        packed_to_history_ratio=round(after / before, 3) if before else None,
        shown_by={i: dict(Counter(c.cause for c in s.topics)) for i, s in _showing_topics(state)},
    )


def _showing_topics(state: DemoState) -> list[tuple[str, SessionSeen]]:
    return [(i, session) for i, session in state.sessions.items() if session.conversation.shows_topics]


def _not_shown(state: DemoState) -> list[tuple[str, str]]:
    """Sessions written to show topics, each with what none of its topics did."""
    return [
        (session_id, cause)
        for session_id, session in _showing_topics(state)
        for cause in TOPIC_LIFE
        if cause not in {change.cause for change in session.topics}
    ]


def tidy_archive(settings: Settings) -> ArchiveSummary:
    """Merge the archive's small files, check it, and measure it. The archive role may be running.

    Raises:
        StoreUnavailable: It cannot be written or read.
    """
    paths: LakePaths = paths_of(settings)
    now = datetime.now(UTC)
    with closing(LakeWriter(paths)) as writer:
        maintain(writer, now=now, keep_replaced=timedelta(0), everything=True)
    with closing(open_reader(paths)) as lake:
        tables = status(lake).tables
        findings = verify(lake, prefix=settings.topic_prefix, now=now).findings
    size, json_bytes = sum(table.bytes for table in tables), sum(table.json_bytes for table in tables)
    return ArchiveSummary(
        rows=sum(table.rows for table in tables),
        files=sum(table.files for table in tables),
        bytes=size,
        json_bytes=json_bytes,
        json_to_parquet_ratio=round(json_bytes / size, 2) if size else None,
        findings=findings,
    )


def show(summary: Summary, console: Console, further: list[tuple[str, str]]) -> None:
    """Print it for people.

    Args:
        summary: What came of the play.
        console: Where to.
        further: What else to look at: what for, and the command.
    """
    console.print()
    console.print(_figures(summary))
    for problem in summary.problems:
        console.print(Text(f"✗ {problem}", style="bold red"))
    if summary.as_expected:
        alerts = ", ".join(f"{a.session_id} at turn {a.turn} of {a.turns_of_session}" for a in summary.alerts)
        console.print(Text(f"✓ Exactly the expected alerts: {alerts}.", style="bold green"))
        shown = ", ".join(summary.topics.shown_by)
        console.print(Text(f"✓ Topics of {shown} came, were packed, unpacked and evicted.", style="bold green"))
    console.print()
    console.print("[bold]How to look further[/]")
    for what, command in further:
        console.print(Text(f"  {what}", style="dim"))
        # Unwrapped, so that it can be copied.
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


def _figures(summary: Summary) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    archive = summary.archive
    ratio = f"{archive.json_to_parquet_ratio}× smaller than" if archive.json_to_parquet_ratio else "of"
    grid.add_row("turns", f"{summary.turns} in {summary.sessions} sessions, {summary.open_sessions} still open")
    grid.add_row("memory", f"{summary.segments} segments compacted, {summary.episodes} episodes closed")
    topics = summary.topics
    packed = f"{topics.compacted} packed, {topics.history_bytes:,} → {topics.packed_bytes:,} bytes"
    grid.add_row("topics", f"{topics.started} started, {packed}, {topics.unpacked} unpacked, {topics.evicted} evicted")
    grid.add_row("", topics.clock)
    for alert in summary.alerts:
        soon = "" if alert.latency_ms is None else f", {alert.latency_ms:.0f} ms after its turn"
        grid.add_row("alert", f"{alert.session_id}: {alert.severity} ({', '.join(alert.causes)}){soon}")
    grid.add_row(
        "archive",
        f"{archive.rows:,} rows in {archive.files} Parquet files, {archive.bytes / _KIB:,.0f} KiB, {ratio} JSON",
    )
    grid.add_row("time", f"{summary.seconds:.0f} s")
    return Group(Text("The play is over.", style="bold"), grid)
