"""Alerts to Grafana OnCall, or IRM in its cloud, by the formatted-webhook integration."""

from models.events import AlertChanged, AlertStatus
from models.risk.telling import ToldAlert


def oncall_form(alert: AlertChanged, told: ToldAlert) -> object | None:
    """One alert group an alert, over while it rests; None for what this integration cannot be told of."""
    if (alert.status is AlertStatus.ACKNOWLEDGED and not alert.is_silenced) or alert.cause == "assigned":
        return None
    return {
        "alert_uid": alert.alert_id,
        "title": told.sentence,
        "state": "ok" if alert.is_silenced or alert.status is AlertStatus.RESOLVED else "alerting",
        "link_to_upstream_details": told.link,
        "message": "\n\n".join(filter(None, [told.next_step, *told.grounds])),
        "severity": alert.severity.value,
        "category": alert.category.value,
        "app_id": alert.app_id,
        "event_id": alert.id,
    }
