"""Sinks of alerts, constructed from settings, each told of what the policy's routes let through."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from models.errors import ConfigurationError
from models.events import AlertChanged
from models.policy import NotifyPolicy
from streams.notify import alertmanager, pagerduty, slack
from streams.notify.alertmanager import HOLD, AlertmanagerSink
from streams.notify.delivery import Poster
from streams.notify.forms import FormSink, teller
from streams.notify.mail import MailSink
from streams.notify.oncall import oncall_form
from streams.notify.slack import SlackSink
from streams.notify.teams import teams_form
from streams.notify.webhook import WebhookSink, secret_bytes
from streams.ports import NO_TRACE_IDS, AlertSink
from streams.settings import Settings

NO_SINK = "no alert sink is configured: set TURNTIDE_NOTIFY__… for one (deploy/escalation.md has each sink's settings)"
_MOST_TOLD = 10_000
_FOLLOWS = frozenset({"acknowledged", "assigned", "snoozed", "duplicate", "resolved", "erased"})


class RoutedSink:
    """A sink that is told of what the policy's routes let through, and of what becomes of alerts that it was told of.

    Nobody is told of a note, whose words stay in the log, nor of what a judge says of an alert that rests.
    What it was told of is known while the role runs; after a restart, from when an alert was raised.
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
        """Deliver what is wanted.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
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
    """A sink for each that is set; none is fine, alerts are on the topic all the same.

    `hold`: how long an Alertmanager keeps an alert that nobody mentions again; None: as ever.

    Raises:
        ConfigurationError: A sink's settings lack something, or the webhook's secret is none.
    """
    notify, tell = settings.notify, teller(policy, settings.http.public_url)
    sinks: list[AlertSink] = []
    if notify.webhook_url is not None:
        secret = notify.webhook_secret
        key = None if secret is None else secret_bytes(secret.get_secret_value())
        sinks.append(WebhookSink(Poster(WebhookSink.name, notify.webhook_url), key, tell))
    if notify.alertmanager_url is not None:
        url = notify.alertmanager_url.rstrip("/") + alertmanager.API_PATH
        sinks.append(AlertmanagerSink(Poster(AlertmanagerSink.name, url), tell, hold=hold or HOLD))
    if notify.slack_token is not None:
        if not notify.slack_channel:
            raise ConfigurationError("notify.slack_channel is not set: name the channel that the bot is a member of")
        poster = Poster(SlackSink.name, notify.slack_url.rstrip("/") + slack.API_PATH)
        token = notify.slack_token.get_secret_value()
        sinks.append(SlackSink(poster, tell, token=token, channel=notify.slack_channel))
    if notify.pagerduty_key is not None:
        form = pagerduty.pagerduty_form(notify.pagerduty_key.get_secret_value())
        url = notify.pagerduty_url.rstrip("/") + pagerduty.API_PATH
        sinks.append(FormSink("pagerduty", Poster("pagerduty", url), tell, form))
    if notify.oncall_url is not None:
        sinks.append(FormSink("oncall", Poster("oncall", notify.oncall_url.get_secret_value()), tell, oncall_form))
    if notify.teams_url is not None:
        sinks.append(FormSink("teams", Poster("teams", notify.teams_url.get_secret_value()), tell, teams_form))
    if notify.mail_host is not None:
        if not notify.mail_to:
            raise ConfigurationError('notify.mail_to is not set: name who gets e-mail, ["on-call@example.org"]')
        sinks.append(MailSink(notify, tell))
    return [RoutedSink(sink, policy) for sink in sinks]
