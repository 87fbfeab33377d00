"""Sinks of alerts, constructed from settings; each gets the alerts that the policy's routes select.

Alerts to any HTTP receiver, signed as Standard Webhooks say (standardwebhooks.com, version 1).
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256

from msgspec import Struct

from models.errors import ConfigurationError
from models.events import AlertChanged
from models.policy import NotifyPolicy
from models.risk.telling import ToldAlert
from models.wire.envelope import schema_of
from streams.notify.delivery import Poster
from streams.notify.forms import (
    ALERTMANAGER_PATH,
    HOLD,
    PAGERDUTY_PATH,
    SLACK_PATH,
    FormSink,
    SlackSink,
    Tell,
    oncall_form,
    pagerduty_form,
    postable,
    teams_form,
    teller,
)
from streams.notify.mail import MailSink
from streams.ports import NO_TRACE_IDS, AlertSink
from streams.settings import Settings

_SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, no secret
_MIN_SECRET_BYTES, _MAX_SECRET_BYTES = 24, 64


class WebhookBody(Struct, frozen=True, omit_defaults=True):
    """The payload the specification recommends: type, time and data.

    The data is the whole change: probability and threshold, every contribution with its counterfactual, each turn's
    share, model and policy. It names turns and contains no text of them. `told` is the part for people: one sentence,
    the link, the next step and the grounds in words. `trace_id` is that of the producer's trace (W3C Trace Context)
    of the turn that caused the change, and absent without one.
    """

    type: str
    timestamp: datetime
    data: AlertChanged
    told: ToldAlert
    trace_id: str | None = None


def secret_bytes(secret: str) -> bytes:
    """Key of a `whsec_…` secret.

    Raises:
        ConfigurationError: The secret does not have this form.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not (secret.startswith(_SECRET_PREFIX) and _MIN_SECRET_BYTES <= len(key) <= _MAX_SECRET_BYTES):
        raise ConfigurationError(
            f"notify.webhook_secret must be `{_SECRET_PREFIX}` and {_MIN_SECRET_BYTES}-{_MAX_SECRET_BYTES} random "
            'bytes in base64: `echo "whsec_$(openssl rand -base64 32)"` creates one'
        )
    return key


def sign(key: bytes, message_id: str, sent_at: int, body: bytes) -> str:
    """Signature header `v1,…`: HMAC-SHA256 over id, seconds since the epoch and body, joined by dots."""
    signed = b".".join((message_id.encode(), str(sent_at).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, sha256)).decode()


class WebhookSink(FormSink):
    """Posts according to Standard Webhooks, unsigned without a key; `webhook-id` is the event's id."""

    def __init__(
        self,
        poster: Poster,
        key: bytes | None,
        tell: Tell,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__("webhook", poster, tell, _webhook_body)
        self._key = key
        self._clock = clock

    async def _post(self, alert: AlertChanged, body: bytes) -> None:
        sent_at = int(self._clock().timestamp())
        headers = {"webhook-id": alert.id, "webhook-timestamp": str(sent_at)}
        if self._key is not None:
            headers["webhook-signature"] = sign(self._key, alert.id, sent_at, body)
        await self._poster.post(body, headers)


def _webhook_body(alert: AlertChanged, told: ToldAlert, trace_id: str | None) -> WebhookBody:
    return WebhookBody(f"turntide.{schema_of(AlertChanged)}", alert.timestamp, alert, told, trace_id)


NO_SINK = "no alert sink is configured: set TURNTIDE_NOTIFY__… for one (deploy/escalation.md has each sink's settings)"
_MOST_TOLD = 10_000
_FOLLOWS = frozenset({"acknowledged", "assigned", "snoozed", "duplicate", "resolved", "erased"})


class RoutedSink:
    """A sink that gets the alerts that the policy's routes select, and later changes of those alerts.

    Notes are not delivered, their text stays in the log; nor are a judge's results for a silenced alert.
    Delivered alerts are remembered while the role runs; after a restart, the time of raising an alert decides.
    """

    def __init__(
        self, sink: AlertSink, policy: NotifyPolicy, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.name = sink.name
        self._sink = sink
        self._policy = policy
        self._clock = clock
        self._told: dict[str, None] = {}

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver the selected changes.

        Raises:
            StoreUnavailable: A change was not delivered; those before it were.
        """
        now = self._clock()
        for alert in alerts:
            if alert.cause == "noted" or (alert.cause == "judged" and alert.is_silenced):
                continue
            follows = alert.cause in _FOLLOWS
            when = [now, alert.fired_at] if follows else [now]
            if (follows and alert.alert_id in self._told) or any(self._wants(alert, each) for each in when):
                await self._sink.deliver([alert], trace_ids)
                self._told[alert.alert_id] = None
                if len(self._told) > _MOST_TOLD:
                    del self._told[next(iter(self._told))]

    def _wants(self, alert: AlertChanged, at: datetime) -> bool:
        utc = at.astimezone(UTC)
        return self._policy.wants(self.name, alert, utc.hour * 60 + utc.minute)

    async def close(self) -> None:
        """Release connections."""
        await self._sink.close()


def sinks_of(settings: Settings, policy: NotifyPolicy, *, hold: timedelta | None = None) -> list[AlertSink]:
    """A sink for each that the settings configure, possibly none: alerts are on the topic in any case.

    `hold`: how long an Alertmanager keeps an alert that is not sent again; None: the default.

    Raises:
        ConfigurationError: A sink's settings are incomplete, or the webhook's secret is invalid.
    """
    notify, tell = settings.notify, teller(policy, settings.http.public_url)
    sinks: list[AlertSink] = []
    if notify.webhook_url is not None:
        secret = notify.webhook_secret
        key = None if secret is None else secret_bytes(secret.get_secret_value())
        sinks.append(WebhookSink(Poster("webhook", notify.webhook_url), key, tell))
    if notify.alertmanager_url is not None:
        url = notify.alertmanager_url.rstrip("/") + ALERTMANAGER_PATH
        sinks.append(FormSink("alertmanager", Poster("alertmanager", url), tell, partial(postable, hold=hold or HOLD)))
    if notify.slack_token is not None:
        if not notify.slack_channel:
            raise ConfigurationError("notify.slack_channel is not set: set it to a channel that has the bot")
        poster = Poster("slack", notify.slack_url.rstrip("/") + SLACK_PATH)
        token = notify.slack_token.get_secret_value()
        sinks.append(SlackSink(poster, tell, token=token, channel=notify.slack_channel))
    if notify.pagerduty_key is not None:
        form = pagerduty_form(notify.pagerduty_key.get_secret_value())
        url = notify.pagerduty_url.rstrip("/") + PAGERDUTY_PATH
        sinks.append(FormSink("pagerduty", Poster("pagerduty", url), tell, form))
    if notify.oncall_url is not None:
        sinks.append(FormSink("oncall", Poster("oncall", notify.oncall_url.get_secret_value()), tell, oncall_form))
    if notify.teams_url is not None:
        sinks.append(FormSink("teams", Poster("teams", notify.teams_url.get_secret_value()), tell, teams_form))
    if notify.mail_host is not None:
        if not notify.mail_to:
            raise ConfigurationError('notify.mail_to is not set: give its addresses, ["on-call@example.org"]')
        sinks.append(MailSink(notify, tell))
    return [RoutedSink(sink, policy) for sink in sinks]
