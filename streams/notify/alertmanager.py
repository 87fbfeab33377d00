"""Alerts to a Prometheus Alertmanager (API v2), which groups, silences and routes them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from models.events import AlertChanged, AlertStatus, Escalation, Severity
from models.risk.telling import ToldAlert, contribution_words, counterfactual, policy_words, strongest
from streams.notify.delivery import Poster
from streams.notify.forms import Tell
from streams.ports import NO_TRACE_IDS

ALERT_NAME = "TurntideSessionEscalating"
HOLD = timedelta(days=1)
"""How long Alertmanager keeps a firing alert that nobody mentions again; without an end it would be five minutes."""
API_PATH = "/api/v2/alerts"
_CONTRIBUTIONS = 3
"""Told in an annotation; the webhook and the topic have all."""


class PostableAlert(Struct, frozen=True, kw_only=True, rename="camel"):
    """One alert as Alertmanager takes it; its labels are its identity."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime
    ends_at: datetime


def postable(
    alert: AlertChanged, told: ToldAlert, hold: timedelta = HOLD, *, trace_id: str | None = None
) -> list[PostableAlert]:
    """Alerts to post for one change.

    A session's id and words go into annotations, since labels are kept for ever as series. The severity is a label:
    when an alert grows worse, the milder one ends at that moment. While it is snoozed or a duplicate, it is over there.
    """
    ended = alert.is_silenced or alert.status is AlertStatus.RESOLVED
    ends_at = alert.timestamp if ended else alert.timestamp + hold
    current = _postable(alert, told, alert.severity, ends_at=ends_at, trace_id=trace_id)
    if alert.cause != "worsened" or alert.severity is Severity.WARNING:
        return [current]
    return [_postable(alert, told, Severity.WARNING, ends_at=alert.timestamp, trace_id=trace_id), current]


def _postable(
    alert: AlertChanged, told: ToldAlert, severity: Severity, *, ends_at: datetime, trace_id: str | None
) -> PostableAlert:
    return PostableAlert(
        labels={
            "alertname": ALERT_NAME,
            "severity": severity.value,
            "app_id": alert.app_id,
            "fingerprint": alert.fingerprint,
        },
        annotations={
            "summary": told.sentence,
            **({"link": told.link} if told.link else {}),
            **({"next_step": told.next_step} if told.next_step else {}),
            "category": alert.category.value,
            "reason": alert.reason,
            "session_id": alert.session_id,
            "alert_id": alert.alert_id,
            "event_id": alert.id,
            "status": alert.status.value,
            **({"assignee": alert.assignee} if alert.assignee else {}),
            "mode": alert.mode.value,
            "score": f"{alert.score:.3f}",
            "evidence": ", ".join(turn.id for turn in alert.evidence),
            "source": f"{alert.source.topic}-{alert.source.partition}-{alert.source.offset}",
            "policy": policy_words(alert),
            **({} if trace_id is None else {"trace_id": trace_id}),
            **({} if alert.escalation is None else _judgement(alert.escalation)),
        },
        starts_at=alert.fired_at.astimezone(UTC),
        ends_at=ends_at.astimezone(UTC),
    )


def _judgement(escalation: Escalation) -> dict[str, str]:
    return {
        "probability": f"{escalation.probability:.3f}",
        "threshold": f"{escalation.threshold:.3f}",
        "model": escalation.model,
        "contributions": "; ".join(map(contribution_words, strongest(escalation.contributions, _CONTRIBUTIONS))),
        "counterfactual": counterfactual(escalation),
    }


class AlertmanagerSink:
    """Posts each change by itself, in order: the last word on a label set must be the latest."""

    name = "alertmanager"

    def __init__(self, poster: Poster, tell: Tell, *, hold: timedelta = HOLD) -> None:
        self._poster = poster
        self._tell = tell
        self._hold = hold

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver each; Alertmanager merges repeats by their labels.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        for alert in alerts:
            posted = postable(alert, self._tell(alert), self._hold, trace_id=trace_ids.get(alert.id))
            await self._poster.post(msgspec.json.encode(posted))

    async def close(self) -> None:
        """Release connections."""
        await self._poster.close()
