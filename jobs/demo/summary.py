"""Verdict on the demo: did exactly the expected sessions alert, does memory answer, is the archive whole?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from jobs.demo.alerts import AlertSummary, late_alerts, summarise_alerts
from jobs.demo.operator_commands import Erased, PurgedApp
from jobs.demo.policy import COMPRESSED_CLOCK
from jobs.demo.project_questions import ProjectRecalled
from jobs.demo.questions import Recalled
from jobs.demo.spaces import SpacesSummary, summarise_spaces
from jobs.demo.state import DemoState, SessionSeen
from jobs.demo.users import UserName, UserSeen, UsersSummary, summarise_users
from models.events import EpisodeClosed, SegmentCompacted, WindowClosed
from streams.archive.catalog import LakePaths, open_reader, paths_of
from streams.archive.maintenance import maintain
from streams.archive.status import status
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from streams.settings import Settings

TOPIC_LIFE = ("started", "compacted", "unpacked", "evicted")
"""What topics of the session written for it must have done."""
MEMORIES_OF_AN_APP = 10
"""At the most (app memory)."""
FACT_LIFE = ("stored", "updated", "retracted")
"""What facts of a user that is asked for must have gone through."""


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


class DemoSummary(Struct, frozen=True, kw_only=True):
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
    users: UsersSummary
    recalled: list[Recalled]
    """What memory answered."""
    project: ProjectRecalled
    apps: SpacesSummary
    purged: PurgedApp
    erased: Erased
    archive: ArchiveSummary
    seconds: float
    data_dir: str
    report: str


def summarise(
    state: DemoState,
    archive: ArchiveSummary,
    recalled: Sequence[Recalled],
    project: ProjectRecalled,
    removed: tuple[PurgedApp, Erased],
    *,
    seconds: float,
    data_dir: str,
    report: str,
) -> DemoSummary:
    """Judge: the expected alerts in time, no others, all memories through their life, right answers, nothing lost."""
    purged, erased = removed
    asked = list(dict.fromkeys((each.app_id, each.user_id) for each in recalled))
    expected = sorted(i for i, s in state.sessions.items() if s.conversation.expected_alert)
    raised = sorted({alert.latest.session_id for alert in state.alerts.values()})
    problems = [
        *(f"{session} was expected to alert and did not" for session in expected if session not in raised),
        *(f"{session} alerted and was not expected to" for session in raised if session not in expected),
        *(f"{session} alerted at turn {turn} of {turns} only" for session, turn, turns in late_alerts(state)),
        *(f"{session}: no topic was {cause}" for session, cause in _not_shown(state)),
        *(f"{user_id}: no fact was {cause}" for user_id, cause in _not_lived(state, asked)),
        *(f"{each.query} {problem}" for each in recalled for problem in each.problems),
        *(f"{project.project_id}: {problem}" for problem in project.problems),
        *_not_remembered(state),
        *(f"{purged.app_id} {problem}" for problem in purged.problems),
        *(f"{erased.user_id}: {problem}" for problem in erased.problems),
        *(f"archive: {finding}" for finding in archive.findings),
    ]
    if state.folded_turns != state.planned_turns:
        problems.append(f"{state.folded_turns} turns were folded, {state.planned_turns} were planned")
    return DemoSummary(
        as_expected=not problems,
        problems=problems,
        turns=state.folded_turns,
        sessions=len(state.sessions),
        open_sessions=sum(not session.ended for session in state.sessions.values()),
        segments=state.counts[SegmentCompacted],
        episodes=state.counts[EpisodeClosed],
        windows=state.counts[WindowClosed],
        alerts_expected=expected,
        alerts_raised=raised,
        alerts=summarise_alerts(state),
        topics=_topics(state),
        users=summarise_users(state.users, asked),
        recalled=list(recalled),
        project=project,
        apps=summarise_spaces(state.spaces),
        purged=purged,
        erased=erased,
        archive=archive,
        seconds=round(seconds, 1),
        data_dir=data_dir,
        report=report,
    )


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


def _not_lived(state: DemoState, asked: Iterable[UserName]) -> list[tuple[str, str]]:
    """Users that are asked for, each with what none of their facts went through."""
    seen = state.users.by_name
    return [(name[1], cause) for name in asked for cause in FACT_LIFE if not seen.get(name, UserSeen()).causes[cause]]


def _not_remembered(state: DemoState) -> Iterable[str]:
    """What is wrong with the memories of apps: one for each conversation that ended, and never more than ten."""
    ended = sum(session.ended for session in state.sessions.values())
    made = sum(space.causes["created"] for space in state.spaces.by_app.values())
    # A new memory that a compaction takes away at once never comes to be seen.
    made += sum(
        each.before[-1].memory_id not in {kept.memory_id for kept in each.after} for each in state.spaces.compactions
    )
    if made != ended:
        yield f"{ended} conversations ended, {made} became memories"
    if not any(state.spaces.compactions):
        yield "no memory was compacted"
    for app_id, space in state.spaces.by_app.items():
        if space.most > MEMORIES_OF_AN_APP:
            yield f"{app_id} had {space.most} memories"


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
