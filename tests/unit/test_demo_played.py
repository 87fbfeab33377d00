"""The demo's conversations through the real embedder, scorer and fold: what alerts, and how it is drawn and judged."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from datetime import timedelta

import msgspec
import pytest
from rich.console import Console

from jobs.demo.conversations import load_play
from jobs.demo.policy import COMPRESSED_CLOCK
from jobs.demo.printed import show
from jobs.demo.report import render_report, risk_curve
from jobs.demo.report_alerts import alerts_html, share_curve
from jobs.demo.state import DemoState
from jobs.demo.timeline import topic_timeline
from jobs.demo.view import render
from jobs.demo.wording import line
from models.events import AlertChanged, ErasedStore, OutputEvent
from streams.notify.wording import counterfactual
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


def test_others_keep_a_margin_to_the_alert(played: DemoState) -> None:
    """But for the security homework: near its end it is watched, as its questions gather about attacks; no more."""
    benign = {i: max(s.scores) for i, s in played.sessions.items() if not s.conversation.expected_alert}
    near = {i for i, score in benign.items() if score > DEMO_POLICY.modes.elevated.enter * 2 / 3}

    assert near <= {"homework"}
    assert max(benign.values()) < DEMO_POLICY.modes.elevated.enter


@pytest.mark.parametrize(("height", "width"), [(24, 80), (28, 80), (50, 200)])
def test_view_fits_the_screen(played: DemoState, height: int, width: int) -> None:
    """At the least height with both alerts shown nothing is cut off, and no line is wrapped."""
    console = Console(width=width, height=height)
    lines = console.render_lines(render(played, height=height, width=width), pad=False)

    assert len(lines) < height
    assert max(sum(segment.cell_length for segment in one) for one in lines) <= width


def test_lines_name_evidence_but_no_text(outputs: list[OutputEvent]) -> None:
    """Where there is no terminal an alert is one line with its reason; only memories quote a conversation."""
    told = [said for event in outputs if (said := line(event)) is not None]
    lines = [said for said in told if not said.startswith(("memory    ", "project   "))]

    assert any("account: raised" in said and "evidence: turns" in said for said in lines)
    turns = [text for c in load_play() for turn in c.turns for text in turn.values()]
    assert [text for text in turns for said in lines if text in said] == []


def test_report_loads_nothing_and_escapes_everything(played: DemoState) -> None:
    """It is opened from disk, offline; what people wrote must not become markup."""
    account = played.sessions["account"]
    account.conversation = msgspec.structs.replace(account.conversation, title="<script>alert(1)</script>")
    further = [("Ask & see", 'turntide query "SELECT 1 WHERE 1 < 2"')]
    html = render_report(played, summary_of(played), modes=DEMO_POLICY.modes, further=further, made_at=MADE_AT)

    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "1 &lt; 2" in html
    assert [word for word in ("http:", "https:", "src=", "@import", "$") if word in html] == []
    assert html.count("url(") == html.count("url(#")  # parts of a picture name each other
    pictures = len(played.sessions) + len(played.alerts) + 3  # a project has two
    assert (html.count("<svg"), len(html.encode()) < 250_000) == (pictures, True)


def test_report_takes_each_alert_apart(played: DemoState) -> None:
    """Probability against threshold, every signal with what would be without it, the counterfactual, and who judged."""
    alert = played.alert_of("demand")
    assert alert
    change = alert.gravest
    assert change.escalation
    level = change.escalation.contributions[0]
    html = alerts_html(played)

    for said in (
        f"<strong>Probability {change.escalation.probability:.2f}</strong> at turn {change.turn}, alert from 0.45.",
        f"<td>{level.log_odds:+.2f}</td><td>{level.probability_without:.2f}, no alert</td>",
        counterfactual(change.escalation),
        f"{change.escalation.base_log_odds:+.2f}",
        f"{change.escalation.log_odds:+.2f}",
        f"model {change.escalation.model} · policy demo-2 ({change.policy_digest})",
    ):
        assert said in html


def test_report_of_an_alert_without_a_model_has_the_shares(played: DemoState) -> None:
    """By the seed's formulas alone there is no probability to draw."""
    for alert in played.alerts.values():
        alert.gravest = msgspec.structs.replace(alert.gravest, escalation=None)
    html = alerts_html(played)

    assert ("score 0." in html, "Probability" in html, "<svg" in html) == (True, False, False)
    assert [alert.judgement for alert in summary_of(played).alerts] == [None, None]


def test_share_curve_has_a_bar_for_each_turn_and_ends_at_the_log_odds(played: DemoState) -> None:
    """Evidence in its own colour; the line starts at the base, so that the turns' shares add up to where it ends."""
    alert = played.alert_of("account")
    assert alert
    change = alert.gravest
    assert change.escalation
    shares = change.escalation.turns
    marked = {evidence.turn for evidence in change.evidence}
    drawn = list(ET.fromstring(share_curve(change.escalation, marked, "account")).iter())  # noqa: S314 - our own
    kinds = Counter(element.get("class") for element in drawn)
    (line,) = [element.get("points", "").split() for element in drawn if element.get("class") == "score"]
    (axis,) = [float(element.get("y1", "")) for element in drawn if element.get("class") == "axis"]
    (alert_from,) = [float(element.get("y1", "")) for element in drawn if element.get("class") == "threshold"]
    heights = [float(point.split(",")[1]) for point in line]
    per_log_odds = (heights[0] - axis) / -change.escalation.base_log_odds

    assert (kinds["evidence"], kinds["evidence"] + kinds["risk"], len(line)) == (
        len(marked),
        len(shares),
        len(shares) + 1,
    )
    assert axis - heights[-1] == pytest.approx(change.escalation.log_odds * per_log_odds, abs=0.2)
    assert heights[-1] < alert_from < heights[-2]  # it is this turn that crosses the threshold


def test_risk_curve_marks_alert_and_evidence(played: DemoState) -> None:
    """One bar per scored turn, those of the evidence in their own colour, and a flag where the alert was raised."""
    session, alert = played.sessions["account"], played.alert_of("account")
    assert alert
    kinds = [element.get("class") for element in ET.fromstring(risk_curve(session, alert, DEMO_POLICY.modes)).iter()]  # noqa: S314 - our own

    assert kinds.count("evidence") == len(alert.gravest.evidence)
    assert kinds.count("risk") + kinds.count("evidence") == len(session.points)
    assert kinds.count("flag") == 1


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


def test_timeline_has_a_row_for_each_topic_and_a_mark_for_each_event(played: DemoState) -> None:
    """Packed, unpacked and evicted, at their turns; titles are escaped."""
    changes = list(played.sessions["household"].topics)
    changes[0] = msgspec.structs.replace(changes[0], title="<b>")
    elements = list(ET.fromstring(topic_timeline("household", changes)).iter())  # noqa: S314 - our own
    kinds = Counter(element.get("class") for element in elements)
    causes = Counter(change.cause for change in changes)

    assert kinds["axis"] == causes["started"]
    assert [kinds[kind] for kind in ("packed", "unpacked", "evicted")] == [
        causes[cause] for cause in ("compacted", "unpacked", "evicted")
    ]


def test_throughput_is_that_of_the_last_seconds(outputs: list[OutputEvent]) -> None:
    """Old turns leave the rate."""
    state = DemoState.of(load_play())
    state.tick(1.0)
    for event in outputs:
        state.take(event, at_s=0.0)
    state.tick(3.0)
    assert state.turns_per_s == pytest.approx(732 / 3)
    state.tick(3.0 + timedelta(minutes=1).total_seconds())

    assert state.turns_per_s == 0.0


def test_memories_of_apps_are_told_and_counted(played: DemoState) -> None:
    """Each conversation that ended made one, the eleventh and twelfth of an app were compacted; the proof is shown."""
    summary = summary_of(played)
    html = render_report(played, summary, modes=DEMO_POLICY.modes, further=[], made_at=MADE_AT)

    assert (summary.apps.memories["assistant"], summary.apps.most_of_an_app) == (10, 10)
    assert [(c.app_id, c.before, c.after, c.action) for c in summary.apps.compactions] == [
        ("assistant", 11, 10, "edit"),
        ("assistant", 11, 10, "delete"),
    ]
    for said in ("Purged: isp-support", "Erased: user-edith of assistant", "vectors turns", "11 memories → 10"):
        assert said in html


def test_a_purge_and_an_erasure_that_fail_are_problems(played: DemoState) -> None:
    """Also a store that keeps something for ever; what expires by itself is none."""
    kept = [
        ErasedStore(store="archive turns", looked_at=9, removed=0, remaining=2),
        ErasedStore(store="topic turns.v1", looked_at=9, removed=0, remaining=2, expires_at=MADE_AT),
    ]
    problems = [f"{each.store} still holds what was erased" for each in kept if each.expires_at is None]
    erased = msgspec.structs.replace(ERASED, stores=kept, problems=problems)
    purged = msgspec.structs.replace(PURGED, problems=["a purged memory was read again"])

    assert summary_of(played, deeds=(purged, erased)).problems == [
        "isp-support a purged memory was read again",
        "user-edith: archive turns still holds what was erased",
    ]
