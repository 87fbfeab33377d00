"""Verdict on the demo: did exactly the expected sessions alert, does memory answer, is the archive whole?"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from jobs.demo.asking import Answers
from jobs.demo.play import DemoState
from jobs.demo.questions import Figures
from models.events import AlertChanged
from streams.archive.catalog import open_reader, paths_of
from streams.archive.maintenance import maintain
from streams.archive.verify import status, verify
from streams.archive.writer import LakeWriter
from streams.settings import Settings

IN_TIME = 2 / 3
"""Of a session's turns may have been said when it alerts: an alert at the end would help nobody."""


class AlertSummary(Struct, frozen=True, kw_only=True):
    """One alert through its life."""

    session_id: str
    turn: int
    """At which it was raised …"""
    turns_of_session: int
    """… of how many."""
    causes: list[str]
    """Of its changes, in their order."""
    gravest: AlertChanged
    """The change that made it as grave as it became: the one that explains it."""
    latency_ms: float | None
    """From the sending of its turn to its arrival at the demo, through the whole pipeline."""


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


class DemoSummary(Struct, frozen=True, kw_only=True):
    """The demo's result. `as_expected` is its verdict."""

    as_expected: bool
    problems: list[str]
    turns: int
    sessions: int
    alerts_expected: list[str]
    """Session ids."""
    alerts_raised: list[str]
    alerts: list[AlertSummary]
    figures: dict[str, str]
    """What the archive counted (`figures.toml`)."""
    answers: Answers
    """Of the index role."""
    archive: ArchiveSummary
    seconds: float
    data_dir: str
    report: str


def summarise(
    state: DemoState,
    counted: Figures,
    answers: Answers,
    archive: ArchiveSummary,
    *,
    seconds: float,
    data_dir: Path,
    report: Path,
) -> DemoSummary:
    """Judge: the expected alerts in time, no others, all memories through their life, right answers, nothing lost."""
    alerts = [_alert(state, changes) for changes in state.alerts.values()]
    expected = sorted(i for i, of in state.conversations.items() if of.expected_alert)
    raised = sorted({alert.session_id for alert in alerts})
    problems = [
        *(f"{session} was expected to alert and did not" for session in expected if session not in raised),
        *(f"{session} alerted and was not expected to" for session in raised if session not in expected),
        *_late(alerts),
        *counted.problems,
        *answers.problems,
        *(f"archive: {finding}" for finding in archive.findings),
    ]
    return DemoSummary(
        as_expected=not problems,
        problems=problems,
        turns=state.folded_turns,
        sessions=len(state.conversations),
        alerts_expected=expected,
        alerts_raised=raised,
        alerts=alerts,
        figures=counted.figures,
        answers=answers,
        archive=archive,
        seconds=round(seconds, 1),
        data_dir=str(data_dir),
        report=str(report),
    )


def _alert(state: DemoState, changes: list[AlertChanged]) -> AlertSummary:
    raised = changes[0]
    latency_s = state.latency_s.get(raised.alert_id)
    return AlertSummary(
        session_id=raised.session_id,
        turn=raised.turn,
        turns_of_session=len(state.conversations[raised.session_id].turns),
        causes=[each.cause for each in changes],
        gravest=[each for each in changes if each.cause in {"raised", "worsened"}][-1],
        latency_ms=None if latency_s is None else round(latency_s * 1000, 1),
    )


def _late(alerts: Sequence[AlertSummary]) -> Iterator[str]:
    """Sessions whose first alert came later than `IN_TIME`."""
    for alert in {alert.session_id: alert for alert in reversed(alerts)}.values():
        if alert.turn + 1 > IN_TIME * alert.turns_of_session:
            yield f"{alert.session_id} alerted at turn {alert.turn} of {alert.turns_of_session} only"


def tidy_archive(settings: Settings) -> ArchiveSummary:
    """Merge the archive's small files, check it, and measure it. The archive role may be running.

    Raises:
        StoreUnavailable: It cannot be written or read.
    """
    paths = paths_of(settings)
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
