"""Alerts to PagerDuty (Events API v2): one incident an alert, triggered, acknowledged and resolved with it.

Its events cannot snooze: an alert that rests, or repeats another, resolves its incident, and opens one anew when it is
told again. An incident that is only acknowledged would not page again.
"""

from typing import Final

from models.events import AlertChanged, AlertStatus
from models.risk.telling import ToldAlert
from streams.notify.forms import Form

API_PATH = "/v2/enqueue"
_MOST_SUMMARY = 1_024
_ACTIONS: Final = {
    AlertStatus.FIRING: "trigger",
    AlertStatus.ACKNOWLEDGED: "acknowledge",
    AlertStatus.RESOLVED: "resolve",
}


def pagerduty_form(key: str) -> Form:
    """Events for the service of an integration key; its severities are warning and critical, as ours."""

    def event(alert: AlertChanged, told: ToldAlert) -> object | None:
        if alert.cause == "assigned":
            return None
        return {
            "routing_key": key,
            "event_action": _ACTIONS[AlertStatus.RESOLVED if alert.is_silenced else alert.status],
            "dedup_key": alert.alert_id,
            "client": "Turntide",
            "links": [{"href": told.link, "text": "Session on the live page"}] if told.link else [],
            "payload": {
                "summary": told.sentence[:_MOST_SUMMARY],
                "source": f"{alert.app_id}/{alert.session_id}",
                "severity": alert.severity.value,
                "timestamp": alert.timestamp.isoformat(),
                "component": alert.app_id,
                "class": alert.category.value,
                "custom_details": {"next_step": told.next_step, "why": told.grounds, "event_id": alert.id}
                | ({"assignee": alert.assignee} if alert.assignee else {}),
            },
        }

    return event
