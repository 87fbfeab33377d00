"""The demo's conversations through the real embedder, scorer and fold: what alerts, and how it is told and judged."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from rich.console import Console

from jobs.demo.conversations import load_play
from jobs.demo.policy import COMPRESSED_CLOCK
from jobs.demo.printed import show
from jobs.demo.stage import Stage, progress_line
from jobs.demo.state import DemoState
from jobs.demo.wording import line
from jobs.shared.output import OutputFormat
from models.events import AlertChanged, ErasedStore, OutputEvent, ProfileUpdated
from tests.demo_outputs import (
    ARCHIVE,
    DEMO_POLICY,
    ERASED,
    MADE_AT,
    PURGED,
    summary_of,
)


def test_exactly_the_expected_sessions_alert(played: DemoState) -> None:
    """Both escalations and no other; the fast one is acknowledged and resolved; all turns are folded."""
    summary = summary_of(played)

    assert summary.alerts_raised == ["account", "demand"]
    assert summary.problems == []
    assert summary.as_expected

    alert = played.alert_of("demand")

    assert alert
    assert (alert.causes[0], alert.causes[-2:]) == ("raised", ["acknowledged", "resolved"])

    assert summary.turns == played.planned_turns
    assert summary.open_sessions == 1
    assert summary.segments > summary.sessions


def test_slow_escalation_alerts_well_before_its_end(played: DemoState) -> None:
    """More than half of the conversation is left, and the worst of it; nothing said before the refusal alerts."""
    (slow,) = [alert for alert in summary_of(played).alerts if alert.session_id == "account"]

    assert 8 < slow.turn < slow.turns_of_session / 2
    assert slow.judgement
    assert slow.judgement.probability >= slow.judgement.threshold == DEMO_POLICY.modes.elevated.enter


@pytest.mark.parametrize(("turn", "problems"), [(33, []), (34, ["account alerted at turn 34 of 52 only"])])
def test_an_alert_in_the_last_third_is_a_problem(played: DemoState, turn: int, problems: list[str]) -> None:
    """Of 52 turns 34 have been said with turn 33; a later alert of the same session mends nothing."""
    first = played.alert_of("account")
    assert first
    first.raised = msgspec.structs.replace(first.raised, turn=turn)
    played.alerts["again"] = msgspec.structs.replace(
        first, raised=msgspec.structs.replace(first.raised, turn=51, alert_id="again")
    )

    assert summary_of(played).problems == problems


def test_others_keep_a_margin_to_the_alert(outputs: list[OutputEvent]) -> None:
    """But for the security homework: near its end it is watched, as its questions gather about attacks; no more."""
    highest: dict[str, float] = {}
    for profile in outputs:
        if isinstance(profile, ProfileUpdated):
            scores = [highest.get(profile.session_id, 0.0), *(point.score for point in profile.risk_points)]
            highest[profile.session_id] = max(scores)
    benign = {c.session_id: highest[c.session_id] for c in load_play() if not c.expected_alert}
    near = {i for i, score in benign.items() if score > DEMO_POLICY.modes.elevated.enter * 2 / 3}

    assert near <= {"homework"}
    assert max(benign.values()) < DEMO_POLICY.modes.elevated.enter


def test_lines_name_evidence_but_no_text(outputs: list[OutputEvent]) -> None:
    """Where there is no terminal an alert is one line with its reason; only memories quote a conversation."""
    told = [said for event in outputs if (said := line(event)) is not None]
    lines = [said for said in told if not said.startswith(("memory    ", "project   "))]

    assert any("account: raised" in said and "evidence: turns" in said for said in lines)
    turns = [text for c in load_play() for turn in c.turns for text in turn.values()]
    assert [text for text in turns for said in lines if text in said] == []


def test_missing_alerts_turns_and_findings_are_problems(played: DemoState) -> None:
    """The verdict fails on each, by name."""
    sessions = played.sessions
    for session_id in ("account", "medicine"):
        of = sessions[session_id].conversation
        sessions[session_id].conversation = msgspec.structs.replace(of, expected_alert=not of.expected_alert)
    played.sessions["parcel"].turns -= 1
    summary = summary_of(played, msgspec.structs.replace(ARCHIVE, findings=["turns.v1-0: 1 missing"]))

    assert not summary.as_expected
    assert summary.problems == [
        "medicine was expected to alert and did not",
        "account alerted and was not expected to",
        "archive: turns.v1-0: 1 missing",
        "731 turns were folded, 732 were planned",
    ]


def test_repeats_after_a_crash_change_nothing(outputs: list[OutputEvent], played: DemoState) -> None:
    """The log may hold an event twice with the same id."""
    before = summary_of(played)
    new = [event for event in outputs if played.take(event, at_s=1.0)]

    assert new == []
    assert summary_of(played) == before


def test_latency_is_from_sending_to_arrival(outputs: list[OutputEvent]) -> None:
    """The figure under an alert is that of the turn which raised it."""
    state = DemoState.of(load_play())
    (raised, *_) = [e for e in outputs if isinstance(e, AlertChanged) and e.session_id == "account"]
    state.sending("account", raised.turn, at_s=10.0)

    state.take(raised, at_s=10.25)

    (alert,) = summary_of(state).alerts
    assert alert.latency_ms == 250.0


def test_topics_come_are_packed_unpacked_and_evicted(played: DemoState) -> None:
    """More than twenty matters in one session; the one that comes back is packed and unpacked, and never evicted."""
    changes = played.sessions["household"].topics
    (bathroom, *_) = changes
    counts = summary_of(played).topics.shown_by["household"]

    assert counts["started"] > 20
    assert min(counts[cause] for cause in ("compacted", "unpacked")) >= 2
    assert counts["evicted"] >= 5
    assert {c.topic_id for c in changes if c.cause == "unpacked"} == {bathroom.topic_id}
    assert bathroom.topic_id not in {c.topic_id for c in changes if c.cause == "evicted"}
    assert max(c.session_topics for c in changes) > DEMO_POLICY.topics.max_topics


def test_topics_that_do_not_live_their_life_are_a_problem(played: DemoState) -> None:
    """The verdict names the session and what is missing."""
    session = played.sessions["household"]
    session.topics = [change for change in session.topics if change.cause != "evicted"]

    assert summary_of(played).problems == ["household: no topic was evicted"]


def test_summary_counts_topics_and_says_that_the_clock_is_compressed(played: DemoState) -> None:
    """Nobody should take a minute for the half-life that Turntide has."""
    topics = summary_of(played).topics
    console = Console(width=160)
    with console.capture() as captured:
        show(summary_of(played), console, [])

    assert (topics.clock, topics.packed_bytes < topics.history_bytes) == (COMPRESSED_CLOCK, True)
    assert f"{topics.started} started, {topics.compacted} packed" in captured.get()
    assert COMPRESSED_CLOCK in captured.get()


async def test_progress_stays_below_the_lines_on_a_terminal(
    outputs: list[OutputEvent], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a terminal, bar and figures are drawn again and again, and what was emitted stands above them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    stage, state = Stage(OutputFormat.TABLE, view=True), DemoState.of(load_play())
    drawing = asyncio.create_task(stage.draw(state))
    await asyncio.sleep(0)
    for event in outputs:
        stage.event(event)
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    shown = capsys.readouterr().out

    assert "turns 0/732" in shown
    assert "alert     account: raised" in shown


def test_throughput_is_that_of_the_last_seconds(outputs: list[OutputEvent]) -> None:
    """Old turns leave the rate."""
    state = DemoState.of(load_play())
    state.tick(1.0)
    for event in outputs:
        state.take(event, at_s=0.0)
    state.tick(3.0)
    assert state.turns_per_s == pytest.approx(732 / 3)
    assert progress_line(state).startswith("progress  0:03 turns 732/732 · 244.0/s · lag ? · archived ? · alerts 2")
    state.tick(3.0 + timedelta(minutes=1).total_seconds())

    assert state.turns_per_s == 0.0


def test_memories_of_apps_are_told_and_counted(played: DemoState) -> None:
    """Each conversation that ended made one, the eleventh and twelfth of an app were compacted."""
    summary = summary_of(played)

    assert (summary.apps.memories["assistant"], summary.apps.most_of_an_app) == (10, 10)
    assert [(c.app_id, c.before, c.after, c.action) for c in summary.apps.compactions] == [
        ("assistant", 11, 10, "edit"),
        ("assistant", 11, 10, "delete"),
    ]


def test_a_purge_and_an_erasure_that_fail_are_problems(played: DemoState) -> None:
    """Also a store that keeps something for ever; what expires by itself is none."""
    kept = [
        ErasedStore(store="archive turns", looked_at=9, removed=0, remaining=2),
        ErasedStore(store="topic turns.v1", looked_at=9, removed=0, remaining=2, expires_at=MADE_AT),
    ]
    problems = [f"{each.store} still holds what was erased" for each in kept if each.expires_at is None]
    erased = msgspec.structs.replace(ERASED, stores=kept, problems=problems)
    purged = msgspec.structs.replace(PURGED, problems=["a purged memory was read again"])

    assert summary_of(played, removed=(purged, erased)).problems == [
        "isp-support a purged memory was read again",
        "user-edith: archive turns still holds what was erased",
    ]
