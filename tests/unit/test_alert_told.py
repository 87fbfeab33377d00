"""How `turntide alerts list` tells an alert: on which grounds, what would be without them, and by which rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

from jobs.alerts.command import described, explained, harmless_alert
from models.events import AlertChanged, Contribution, Escalation, EvidenceTurn, SignalShare, TurnShare

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
ADDED = (2.0, 1.0, 0.5, 0.25, -0.125, 0.0625, 0.0625)
"""Log-odds by signal, the strongest first."""


def formula_alert() -> AlertChanged:
    """An alert by the source formulas alone."""
    shares = [SignalShare("level", 0.7, 0.8), SignalShare("trajectory", 0.2, 0.2), SignalShare("anomaly", 0.0, 0.0)]
    evidence = [EvidenceTurn("s_4", 4, 0.7, "risk 0.70", 1.25)]
    return msgspec.structs.replace(
        harmless_alert(NOW), session_id="s", app_id="shop", turn=4, score=0.61, signals=shares, evidence=evidence
    )


def judged_alert() -> AlertChanged:
    """An alert that a model raised, by seven signals."""
    escalation = Escalation(
        probability=0.68,
        log_odds=0.75,
        base_log_odds=-3.0,
        threshold=0.45,
        model="escalation-1@abc",
        contributions=[
            Contribution(f"signal_{n}", 0.5, added, 0.2 + n / 10, alert_without=n > 2, why=f"reason {n}")
            for n, added in enumerate(ADDED)
        ],
        turns=[TurnShare(2, 2.5), TurnShare(4, 1.25), TurnShare(4, -0.25)],
        earlier_log_odds=0.25,
    )
    return msgspec.structs.replace(formula_alert(), escalation=escalation, policy_digest="def")


def test_probability_contributions_and_rules_are_told() -> None:
    """The five strongest signals with their counterfactual, the rest as one, so that it adds up to the log-odds."""
    lines = explained(judged_alert()).splitlines()

    assert "probability 0.68 (alert from 0.45)" in lines[0]
    assert lines[2] == (
        "  signals  begins at -3.0; signal 0 +2.0 (without it 0.20, no alert); "
        "signal 1 +1.0 (without it 0.30, no alert); signal 2 +0.5 (without it 0.40, no alert); "
        "signal 3 +0.2 (without it 0.50, still an alert); signal 4 -0.1 (without it 0.60, still an alert); 2 more +0.1"
    )
    assert (
        lines[3]
        == "  else     Without signal 0 it would be 0.20, without signal 1 0.30, without signal 2 0.40: no alert."
    )
    assert lines[4] == "  turns    4 (risk 0.70, +1.2)"
    assert lines[5] == "  by       model escalation-1@abc, policy test (def)"


def test_json_has_everything_and_adds_up() -> None:
    """Programs get each contribution and each turn's share unrounded, also of a turn that is told twice."""
    row = json.loads(json.dumps(described(judged_alert())))

    assert [row[name] for name in ("probability", "threshold", "model", "policy_version", "policy_digest")] == [
        0.68,
        0.45,
        "escalation-1@abc",
        "test",
        "def",
    ]
    assert row["base_log_odds"] + sum(each["log_odds"] for each in row["contributions"]) == row["log_odds"]
    shares = [share["log_odds"] for share in row["turn_shares"]]
    assert row["base_log_odds"] + row["earlier_log_odds"] + sum(shares) == row["log_odds"]
    assert row["contributions"][0]["probability_without"] == pytest.approx(0.2)
    assert [turn["log_odds"] for turn in row["evidence"]] == [1.25]
