"""Alerts by e-mail (SMTP, encrypted): what follows of an alert answers its first message, so readers thread it."""

import asyncio
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from http import HTTPStatus
from typing import Final

from models.events import AlertChanged
from models.risk.telling import ToldAlert
from streams.notify.delivery import DeliveryRetry, NotTaken, Pause, taken
from streams.notify.forms import Tell
from streams.ports import NO_TRACE_IDS
from streams.settings.notify import NotifySettings

_LASTING: Final = HTTPStatus.INTERNAL_SERVER_ERROR
"""SMTP's replies from 500 are for good, as those below pass."""
_FOLD = "-- "
"""Line from which readers of mail show a signature: below it is why, in log-odds."""


def mail_message(alert: AlertChanged, told: ToldAlert, sender: str, receivers: Sequence[str]) -> EmailMessage:
    """A message in plain text."""
    message = EmailMessage()
    session = " ".join(f"session {alert.session_id} (app {alert.app_id})".split())
    message["Subject"] = f"[Turntide] {alert.severity.value}, {alert.category.value}: {session}"
    message["From"], message["To"] = sender, ", ".join(receivers)
    message["Date"] = alert.timestamp
    message["Message-ID"], message["References"] = f"<{alert.id}@turntide>", f"<{alert.alert_id}@turntide>"
    message["Auto-Submitted"] = "auto-generated"
    parts = [told.sentence, told.link, told.next_step, "\n".join([_FOLD, *told.grounds])]
    message.set_content("\n\n".join(filter(None, parts)))
    return message


class MailSink:
    """Sends each change by a connection of its own: alerts are rare, and servers close idle ones."""

    name = "mail"

    def __init__(
        self,
        settings: NotifySettings,
        tell: Tell,
        *,
        retry: DeliveryRetry | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._tell = tell
        self._retry = retry or DeliveryRetry()
        self._pause = pause

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:  # noqa: ARG002
        """Deliver each.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        settings = self._settings
        for alert in alerts:
            message = mail_message(alert, self._tell(alert), settings.mail_from, settings.mail_to)

            async def attempt(message: EmailMessage = message) -> None:
                await asyncio.to_thread(self._send, message)

            await taken(attempt, self.name, settings.mail_host or "", self._retry, self._pause)

    def _send(self, message: EmailMessage) -> None:
        settings, within_s = self._settings, self._retry.timeout.total_seconds()
        try:
            trusted = ssl.create_default_context(cafile=settings.mail_ca_file)
            where = settings.mail_host or "", settings.mail_port
            with (
                smtplib.SMTP_SSL(*where, timeout=within_s, context=trusted)
                if settings.mail_security == "tls"
                else smtplib.SMTP(*where, timeout=within_s)
            ) as server:
                if settings.mail_security == "starttls":
                    server.starttls(context=trusted)
                if settings.mail_user and settings.mail_password is not None:
                    server.login(settings.mail_user, settings.mail_password.get_secret_value())
                server.send_message(message)
        except smtplib.SMTPResponseException as error:
            raise NotTaken(f"reply {error.smtp_code}", may_pass=error.smtp_code < _LASTING) from error
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise NotTaken(f"replies {codes}", may_pass=min(codes) < _LASTING) from error
        except smtplib.SMTPServerDisconnected as error:
            raise NotTaken("disconnected", may_pass=True) from error
        except smtplib.SMTPException as error:
            raise NotTaken(type(error).__name__, may_pass=False) from error
        except OSError as error:
            raise NotTaken(type(error).__name__, may_pass=True) from error

    async def close(self) -> None:
        """Nothing is kept open."""
