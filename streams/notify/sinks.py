"""Sinks of alerts, constructed from settings."""

from datetime import timedelta

from streams.notify.alertmanager import API_PATH, HOLD, AlertmanagerSink
from streams.notify.delivery import Poster
from streams.notify.webhook import WebhookSink, secret_bytes
from streams.ports import AlertSink
from streams.settings import NotifySettings


def sinks_of(notify: NotifySettings, *, hold: timedelta | None = None) -> list[AlertSink]:
    """A sink for each address that is set; none is fine, alerts are on the topic all the same.

    `hold`: how long an Alertmanager keeps an alert that nobody mentions again; None: as ever.

    Raises:
        ConfigurationError: The webhook's secret is none.
    """
    sinks: list[AlertSink] = []
    if notify.webhook_url is not None:
        secret = notify.webhook_secret
        key = None if secret is None else secret_bytes(secret.get_secret_value())
        sinks.append(WebhookSink(Poster(WebhookSink.name, notify.webhook_url), key))
    if notify.alertmanager_url is not None:
        url = notify.alertmanager_url.rstrip("/") + API_PATH
        sinks.append(AlertmanagerSink(Poster(AlertmanagerSink.name, url), hold=HOLD if hold is None else hold))
    return sinks
