"""Sinks that post JSON bodies in order, each in its receiver's form: PagerDuty, Teams, OnCall, Alertmanager, Slack.

PagerDuty (Events API v2) has one incident an alert, triggered, acknowledged and resolved with it. Its events cannot
snooze: an alert that rests, or repeats another, resolves its incident, and opens one anew when it is told again. An
incident that is only acknowledged would not page again. An Alertmanager groups, silences and routes alerts itself.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from models.errors import StoreUnavailable
from models.events import AlertChanged, AlertStatus, Escalation, Severity
from models.policy import NotifyPolicy
from models.risk.telling import ToldAlert, contribution_words, counterfactual, policy_words, strongest, told, worst_turn
from models.wire.codec import UNDECODABLE
from streams.notify.delivery import Poster
from streams.ports import NO_TRACE_IDS
from streams.settings.live import LIVE_PAGE

Tell = Callable[[AlertChanged], ToldAlert]
"""Puts an alert into words, with the policy's next steps and the public address."""
Form = Callable[[AlertChanged, ToldAlert, str | None], object | None]
"""The body that a receiver wants of a change, and of the id of its trace; None: it has no word for such a change."""


def teller(policy: NotifyPolicy, public_url: str = "") -> Tell:
    """What puts alerts into words. `public_url`: where people reach the live page's server; empty: no links."""
    return lambda alert: told(alert, policy, session_link(alert, public_url))


def session_link(alert: AlertChanged, public_url: str) -> str:
    """Address of the session on the live page, at its worst turn; empty without a base, and of an erased session."""
    if alert.cause == "erased":
        return ""
    return link_to(alert.app_id, alert.session_id, worst_turn(alert), public_url)


def link_to(app_id: str, session_id: str, turn: int | None, public_url: str) -> str:
    """Address of a session on the live page, at a turn; empty without a base."""
    if not public_url:
        return ""
    session, app = quote(session_id, safe=""), quote(app_id, safe="")
    return f"{public_url.rstrip('/')}{LIVE_PAGE}#/session/{session}?app={app}" + (
        "" if turn is None else f"&turn={turn}"
    )


class FormSink:
    """Posts each change by itself, in order, in a receiver's form: the last word on an alert must be the latest.

    A repeat is told by the event's id in the body, or merged by an Alertmanager.
    """

    def __init__(self, name: str, poster: Poster, tell: Tell, form: Form) -> None:
        self.name = name
        self._poster = poster
        self._tell = tell
        self._form = form

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver each.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        for alert in alerts:
            if (body := self._form(alert, self._tell(alert), trace_ids.get(alert.id))) is not None:
                await self._post(alert, msgspec.json.encode(body))

    async def _post(self, alert: AlertChanged, body: bytes) -> None:  # noqa: ARG002 - of receivers that want its id
        await self._poster.post(body)

    async def close(self) -> None:
        """Release connections."""
        await self._poster.close()


PAGERDUTY_PATH = "/v2/enqueue"
_MOST_SUMMARY = 1_024
_ACTIONS: Final = {
    AlertStatus.FIRING: "trigger",
    AlertStatus.ACKNOWLEDGED: "acknowledge",
    AlertStatus.RESOLVED: "resolve",
}


def pagerduty_form(key: str) -> Form:
    """Events for the service of an integration key; its severities are warning and critical, as ours."""

    def event(alert: AlertChanged, told: ToldAlert, _trace_id: str | None = None) -> object | None:
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


_FOLD = "grounds"


def teams_form(alert: AlertChanged, told: ToldAlert, _trace_id: str | None = None) -> object:
    """Adaptive card for a workflow that posts what a webhook receives; why is folded until somebody asks."""
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


def oncall_form(alert: AlertChanged, told: ToldAlert, _trace_id: str | None = None) -> object | None:
    """One alert group an alert (formatted webhook), over while it rests; None for what it cannot be told of."""
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


ALERT_NAME = "TurntideSessionEscalating"
HOLD = timedelta(days=1)
"""How long Alertmanager keeps a firing alert that nobody mentions again; without an end it would be five minutes."""
ALERTMANAGER_PATH = "/api/v2/alerts"
_MOST_CONTRIBUTIONS = 3
"""Told in an annotation; the webhook and the topic have all."""


class PostableAlert(Struct, frozen=True, kw_only=True, rename="camel"):
    """One alert as Alertmanager takes it; its labels are its identity."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime
    ends_at: datetime


def postable(
    alert: AlertChanged, told: ToldAlert, trace_id: str | None = None, *, hold: timedelta = HOLD
) -> list[PostableAlert]:
    """Alerts to post to Alertmanager (API v2) for one change.

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
        "contributions": "; ".join(map(contribution_words, strongest(escalation.contributions, _MOST_CONTRIBUTIONS))),
        "counterfactual": counterfactual(escalation),
    }


SLACK_PATH = "/chat.postMessage"
MOST_THREADS = 10_000
_COLOURS = {"warning": "#d97706", "critical": "#b91c1c"}
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class SlackAnswer(Struct, frozen=True):
    """What Slack says, with status 200, of what it took or not."""

    ok: bool
    ts: str = ""
    error: str = ""


def slack_message(alert: AlertChanged, told: ToldAlert, channel: str, thread: str | None) -> dict[str, Any]:
    """A message in blocks; long attachments Slack folds by itself, so why, in log-odds, is one.

    `thread`: time stamp of the alert's first message; an alert that grew worse, or woke, is shown in the channel too.
    """
    blocks: list[dict[str, Any]] = [_section(f"*{_plain(told.sentence)}*")]
    if told.next_step:
        blocks.append(_section(_plain(told.next_step)))
    if told.link:
        text = {"type": "plain_text", "text": "Open session"}
        blocks.append({"type": "actions", "elements": [{"type": "button", "text": text, "url": told.link}]})
    attachment = {"color": _COLOURS[alert.severity], "text": "\n".join(map(_plain, told.grounds))}
    message = {"channel": channel, "text": _plain(told.sentence), "blocks": blocks, "attachments": [attachment]}
    metadata = {"event_type": "turntide_alert", "event_payload": {"event_id": alert.id, "alert_id": alert.alert_id}}
    threaded = {} if thread is None else {"thread_ts": thread, "reply_broadcast": alert.cause in {"worsened", "woken"}}
    return message | {"metadata": metadata} | threaded


class SlackSink(FormSink):
    """A message an alert by the Web API, and what follows of it in its thread.

    Threads are known while the role runs: after a restart the next change of an alert begins a new one.
    """

    def __init__(self, poster: Poster, tell: Tell, *, token: str, channel: str) -> None:
        super().__init__(
            "slack", poster, tell, lambda alert, told, _: slack_message(alert, told, channel, self._of(alert))
        )
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json; charset=utf-8"}
        self._threads: dict[str, str] = {}

    def _of(self, alert: AlertChanged) -> str | None:
        return self._threads.get(alert.alert_id)

    async def _post(self, alert: AlertChanged, body: bytes) -> None:
        said = await self._poster.post(body, self._headers)
        try:
            answer = msgspec.json.decode(said, type=SlackAnswer)
        except UNDECODABLE:
            answer = SlackAnswer(ok=False, error="what answers is not Slack's API")
        if not answer.ok:
            raise StoreUnavailable(
                f"slack did not accept an alert ({answer.error}): check notify.slack_token and notify.slack_channel, "
                "and that the bot is in the channel; then `turntide alerts test --sink slack`"
            )
        self._threads.setdefault(alert.alert_id, answer.ts)
        if len(self._threads) > MOST_THREADS:
            del self._threads[next(iter(self._threads))]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _plain(text: str) -> str:
    """As Slack shows it as it is: ids of producers are no markup."""
    return text.translate(_ESCAPED)
