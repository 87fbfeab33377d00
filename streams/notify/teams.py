"""Alerts to a channel of Microsoft Teams: adaptive cards for a workflow that posts what a webhook receives."""

from typing import Any

from models.events import AlertChanged, AlertStatus, Severity
from models.risk.telling import ToldAlert

_FOLD = "grounds"


def teams_form(alert: AlertChanged, told: ToldAlert) -> object:
    """A message of one card; why, in log-odds, is folded until somebody asks."""
    over = alert.is_silenced or alert.status is not AlertStatus.FIRING
    colour = "default" if over else "attention" if alert.severity is Severity.CRITICAL else "warning"
    actions: list[dict[str, Any]] = [{"type": "Action.ToggleVisibility", "title": "Why", "targetElements": [_FOLD]}]
    if told.link:
        actions.insert(0, {"type": "Action.OpenUrl", "title": "Open session", "url": told.link})
    body = [_text(told.sentence, weight="bolder", color=colour)]
    body += [_text(told.next_step)] * bool(told.next_step)
    grounds = [_text(ground, isSubtle=True, size="small") for ground in told.grounds]
    body.append({"type": "Container", "id": _FOLD, "isVisible": False, "items": grounds})
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "id": alert.id, "attachments": [attached]}


def _text(said: str, **looks: object) -> dict[str, Any]:
    """A block that is shown as it stands: Markdown of a `TextBlock` would make links of users' names."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": said, **looks}]}
