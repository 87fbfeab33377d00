"""Thresholds keep their target, and land in a policy file that says the same."""

import random
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.escalation.backtest.figures import figures_of
from jobs.escalation.calibrate.proposing import (
    Shadow,
    Target,
    basis_of,
    calibrated,
    missed,
    moved,
    next_version,
    threshold_for,
    write_new,
    written,
)
from models.errors import ConfigurationError
from models.events import InputEvent
from models.policy import AppModes, ModePolicy, ModeThreshold, Policy, load_policy
from models.risk.scorer import RuleScorer
from tests.support.backtest_sessions import CALM, conversation, judged, label, labelled_file, log_of, traffic_of
from tests.support.command_line import printed, refused
from tests.support.data_files import data_file
from tests.support.zero_embedder import ZeroEmbedder

POLICY = Policy()
RATIOS = st.integers(0, 10_000).map(lambda n: n / 10_000)


def shadow(events: Sequence[InputEvent], *, watched_for: timedelta | None = None) -> Shadow:
    """Shadow mode over these events."""
    traffic = traffic_of(log_of(events))
    return Shadow(
        opening=lambda: nullcontext(traffic), embedder=ZeroEmbedder(), scorer=RuleScorer(), watched_for=watched_for
    )


def steady(app_id: str, levels: Sequence[float], *, apart_days: float = 0.01) -> list[InputEvent]:
    """A benign conversation for each level, all its turns of that risk."""
    events: list[InputEvent] = []
    for n, level in enumerate(levels):
        session_id, day = f"{app_id}-{n}", n * apart_days
        events += [*conversation(session_id, [level] * 6, app_id=app_id, day=day)]
        events.append(label(session_id, escalating=False, day=day))
    return events


@given(highest=st.lists(st.floats(0, 0.9999), min_size=1, max_size=60), allowed=st.integers(0, 70))
def test_no_more_sessions_than_allowed_reach_the_threshold_and_no_lower_one_would_do(
    highest: list[float], allowed: int
) -> None:
    """One step lower, one session too many reaches it."""
    found = threshold_for(highest, allowed)

    if found is None:
        assert allowed >= len(highest)
    else:
        assert sum(score >= found for score in highest) <= allowed
        assert sum(score >= found - 0.0001 - 1e-9 for score in highest) > allowed


@given(enter=RATIOS.filter(lambda ratio: ratio > 0), app_id=st.sampled_from(["", "support", "other"]))
def test_every_threshold_makes_modes_that_can_be_entered_and_left(enter: float, app_id: str) -> None:
    """Modes rise from watch to critical, and `leave` never falls to nothing: a session could not calm down."""
    own = AppModes(
        app_id="other", elevated=ModeThreshold(enter=0.5, leave=0.4), critical=ModeThreshold(enter=0.6, leave=0.5)
    )

    modes = moved(ModePolicy(apps=(own,)), app_id, enter)

    watch, elevated, critical = modes.thresholds(app_id)
    assert elevated.enter == enter
    assert 0 < elevated.leave <= elevated.enter or enter <= 0.0001
    assert watch.enter <= elevated.enter <= critical.enter <= 1
    assert elevated.leave <= critical.leave
    if app_id != "other":
        assert modes.thresholds("other")[1:] == (own.elevated, own.critical)


def test_a_false_alarm_target_is_met_on_the_traffic_itself_app_by_app() -> None:
    """Expected is measured by folding again: of 20 sessions two. The noisier app is given the higher threshold."""
    levels = [0.4 + 0.01 * n for n in range(20)]
    random.Random(5).shuffle(levels)
    events = steady("quiet", [0.01 * n for n in range(1, 21)]) + steady("noisy", levels)
    target = Target(false_alarm_ratio=0.1)

    found = calibrated(shadow(events).judged, POLICY, target, ["quiet", "noisy"])

    quiet, noisy = found.proposals
    assert quiet.enter < quiet.present == POLICY.modes.elevated.enter < noisy.enter
    assert {(each.learnt_from, each.expected.benign, each.expected.false_alarms) for each in found.proposals} == {
        (20, 20, 2)
    }
    assert any("fewer than 200" in note for note in quiet.notes)
    assert found.modes.elevated == POLICY.modes.elevated

    (all_allowed,) = calibrated(shadow(events).judged, POLICY, Target(false_alarm_ratio=1.0), []).proposals

    assert all_allowed.enter == POLICY.modes.elevated.enter
    assert any("stays" in note for note in all_allowed.notes)


def test_an_alert_budget_is_by_day_of_event_time() -> None:
    """Ten sessions over 2.25 days at one alert a day: two of them."""
    events = steady("support", [0.05 * n for n in range(10)], apart_days=0.25)

    (proposal,) = calibrated(shadow(events).judged, POLICY, Target(alerts_per_day=1), []).proposals

    assert proposal.expected.alerted == 2
    assert proposal.expected.alerts_per_day == pytest.approx(2 / 2.25, abs=0.01)


def test_live_traffic_counts_sessions_from_their_first_turn_and_the_time_watched() -> None:
    """Of a session that was under way already, the score before is not known."""
    late = [event for event in conversation("under-way", CALM) if event.turn > 2]
    seen = shadow([*conversation("whole", CALM), *late], watched_for=timedelta(hours=1)).judged(POLICY)

    assert ([each.session_id for each in seen.sessions], seen.span) == (["whole"], timedelta(hours=1))


def test_in_an_archive_sessions_that_nobody_labelled_count_as_benign() -> None:
    """Mostly alerts are labelled: of 40 sessions the one labelled benign is the one that alerted, not all there is."""
    events: list[InputEvent] = []
    for n in range(36):
        events += conversation(f"quiet-{n}", [0.01 * n] * 6, day=0.01 * n)
    for n in range(4):
        events += [*conversation(f"loud-{n}", [0.9] * 6, day=1), label(f"loud-{n}", escalating=n > 0, day=1)]

    found = calibrated(shadow(events).judged, POLICY, Target(false_alarm_ratio=0.1), [])
    (proposal,) = found.proposals

    assert (proposal.learnt_from, proposal.expected.benign, proposal.expected.false_alarms) == (37, 37, 3)
    assert (proposal.expected.recall, proposal.expected.recall_interval, proposal.expected.precision) == (None,) * 3
    assert any("36 of 40 sessions have no label and count as benign" in note for note in proposal.notes)
    assert not any("misses the target" in note for note in proposal.notes)


def test_sessions_labelled_escalating_are_not_learnt_from_unless_there_are_no_others() -> None:
    """And that is said; no session, or no time in which alerts could be counted, is refused."""
    unlabelled = [judged(f"u{n}", 0.01 * n) for n in range(30)]
    escalating, benign = judged("e", 0.9, escalating=True), judged("b", 0.2, escalating=False)
    target = Target(false_alarm_ratio=0.1)

    without = basis_of("", [*unlabelled, escalating], target, None)
    with_benign = basis_of("", [*unlabelled, escalating, benign], target, None)

    alone = basis_of("", [escalating], target, None)

    for sessions, said in (([], "no session"), ([benign], "needs times")):
        with pytest.raises(ConfigurationError, match=said):
            basis_of("", sessions, Target(alerts_per_day=1), None)
    assert (len(without.highest), without.allowed) == (30, 3)
    assert (len(with_benign.highest), 0.9 in with_benign.highest) == (31, False)
    assert alone.highest == [0.9]
    assert any("all are taken" in note for note in alone.notes)


def test_misses_are_said_beside_their_targets() -> None:
    """Alerts a day and false alarms of benign sessions (of all where none is labelled), above and far below."""
    alarming = figures_of([judged("a", 0.9, alert_at=2), judged("b", 0.1, day=1)], timedelta(days=0.5))

    assert missed(Target(alerts_per_day=1), alarming) == [
        "misses the target: 2 alerts per day (1 alerts of 1 sessions)"
    ]
    assert missed(Target(alerts_per_day=2), alarming) == []
    assert "far below the target: 2 alerts per day" in missed(Target(alerts_per_day=9), alarming)[0]

    benign = [judged(f"b{n}", 0.9, escalating=False, alert_at=1 if n == 0 else None) for n in range(10)]
    unlabelled = [judged("u", 0.9, alert_at=1), judged("v", 0.1)]

    assert missed(Target(false_alarm_ratio=0.1), figures_of(benign, None)) == []
    assert "misses the target: 10.00%" in missed(Target(false_alarm_ratio=0.05), figures_of(benign, None))[0]
    assert "misses the target: 50.00%" in missed(Target(false_alarm_ratio=0.4), figures_of(unlabelled, None))[0]
    assert "far below" in missed(Target(false_alarm_ratio=0.3), figures_of(benign, None))[0]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of harmless talk: three dialogues of a source that the shipped scorer knows, three of another."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    said = ["Good morning.", "Which ferry goes to the island?", "How do I get a ticket?", "Thank you."]
    dialogues = [(f"{source}-{n}", source, "benign", said) for n in range(3) for source in ("own_support", "new")]
    return labelled_file(tmp_path / "d.jsonl", dialogues)


def test_sources_that_the_scorer_knows_are_said(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured scorer is the one that learns, and for another app nothing is said."""
    arguments = ["calibrate", "--data", str(data), "--target-fpr", "0.1", "--app", "own_support", "--app", "new"]

    known, new = printed(*arguments)["proposals"]
    monkeypatch.setenv("TURNTIDE_SCORER__KIND", "rules")
    by_rules = printed(*arguments)["proposals"]

    assert any("trained on own_support" in note for note in known["notes"])
    assert not any("trained" in note for each in (new, *by_rules) for note in each["notes"])


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_the_new_file_keeps_everything_else_of_the_old_one(tmp_path: Path, kind: str) -> None:
    """Whatever its format; a null of JSON, which TOML has not, is a default."""
    old = tmp_path / f"policy.{kind}"
    old.write_text(
        'version = "night-7"\n[session]\ntimeout = "PT5M"\n[alerts]\nmin_scored_turns = 4'
        if kind == "toml"
        else '{"version": "night-7", "session": {"timeout": "PT5M"}, '
        '"alerts": {"min_scored_turns": 4, "quiet_hours": null}}'
    )
    present = load_policy(old.read_bytes(), "toml" if kind == "toml" else "json")
    modes = moved(moved(present.modes, "", 0.61), "support", 0.2)

    new = load_policy(written(old, next_version(present.version), modes, said="test"), "toml")

    assert new.version == "night-8"
    assert new.modes == modes
    assert (new.session, new.alerts) == (present.session, present.alerts)


def test_the_command_writes_what_it_proposes(data: Path) -> None:
    """From a labelled file to a policy file that loads and is never overwritten, with a rate and its interval."""
    file = data.with_name("policy-2.toml")
    arguments = ["calibrate", "--data", str(data), "--target-fpr", "0.1", "--app", "new", "--write", str(file)]

    (proposal,) = printed(*arguments)["proposals"]

    assert proposal["expected"]["false_alarm_interval"][0] == 0
    content = file.read_bytes()
    policy = load_policy(content, "toml")
    with pytest.raises(ConfigurationError, match="never overwritten"):
        write_new(file, b"two")
    assert file.read_bytes() == content
    assert policy.version == "default-2"
    assert policy.modes.thresholds("new")[1].enter == proposal["enter"]
    assert policy.modes.elevated == POLICY.modes.elevated


@pytest.mark.parametrize(("options", "said"), data_file("calibrate")["refused"])
def test_options_that_do_not_fit_are_refused_before_anything_is_read(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with what to do."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    assert said in refused("calibrate", *options)
