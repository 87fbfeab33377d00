"""Alerts as a fold emits them, with fixed times."""

from __future__ import annotations

import msgspec
import pytest

from models.events import AlertAcknowledged, AlertStatus
from tests.support.session_driver import NOON, POLICY, Session


def test_alert_is_raised_explained_and_not_repeated() -> None:
    """One alert for a rising session, with numbers, shares and evidence, and without a word of the turns."""
    session = Session()
    for turn in range(14):
        session.say(turn, "Sesame sails sing secretly.", risk=min(0.06 * turn, 0.8))
    raised = session.alerts[0]

    assert ["raised"] == [alert.cause for alert in session.alerts if alert.cause != "worsened"]
    assert (
        "risk rises 0.060 ± 0.000 per turn over 6 turns; recent risk level 0.30 (highest 0.30 at turn 5)"
        == raised.reason
    )
    assert pytest.approx(1.0) == sum(signal.share for signal in raised.signals)
    assert [f"s_{evidence.turn}" for evidence in raised.evidence] == [evidence.id for evidence in raised.evidence]
    assert POLICY.alerts.evidence_turns >= len(raised.evidence) > 0
    assert "sesame" not in msgspec.json.encode(raised).decode().lower()


def test_alert_can_be_acknowledged_once() -> None:
    """The right id acknowledges; any other does nothing; closing resolves."""
    session = Session()
    session.say(0, risk=0.95)
    alert_id = session.alerts[0].alert_id
    for wanted in ("other", alert_id, alert_id):
        session.put(AlertAcknowledged(session_id="s", timestamp=NOON, alert_id=wanted, by="on-call"))
    session.end()

    assert ["raised", "acknowledged", "resolved"] == [alert.cause for alert in session.alerts]
    assert [AlertStatus.FIRING, AlertStatus.ACKNOWLEDGED, AlertStatus.RESOLVED] == [a.status for a in session.alerts]
    assert {alert_id} == {alert.alert_id for alert in session.alerts}
    assert (3, 3, 1) == (
        len({alert.id for alert in session.alerts}),
        len(session.alerts),
        len({alert.fingerprint for alert in session.alerts}),
    )


def test_second_alert_has_another_id_and_the_same_fingerprint() -> None:
    """After it is resolved a new rise is a new alert of the same session."""
    session = Session()
    session.say(0, risk=0.95)
    for turn in range(1, 25):
        session.say(turn, risk=0.0)
    session.say(25, risk=0.95)

    assert ["raised", "resolved", "raised"] == [alert.cause for alert in session.alerts]
    assert (2, 1) == (len({a.alert_id for a in session.alerts}), len({a.fingerprint for a in session.alerts}))
