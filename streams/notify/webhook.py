"""Alerts to any HTTP receiver, signed as Standard Webhooks say (standardwebhooks.com, version 1)."""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError
from models.events import AlertChanged
from models.risk.telling import ToldAlert
from models.wire.envelope import schema_of
from streams.notify.delivery import Poster
from streams.notify.forms import Tell
from streams.ports import NO_TRACE_IDS

_SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, no secret
_MIN_SECRET_BYTES, _MAX_SECRET_BYTES = 24, 64


class WebhookBody(Struct, frozen=True, omit_defaults=True):
    """The payload the specification recommends: type, time and data.

    The data is the whole change: probability and threshold, every contribution with its counterfactual, each turn's
    share, and by which model and policy. It names turns and holds no text of one. `told` is what a person needs of it:
    one sentence, the link, the next step and the grounds in words. `trace_id` is that of the producer's
    trace (W3C Trace Context) which the turn that caused it is of, and absent where it is of none.
    """

    type: str
    timestamp: datetime
    data: AlertChanged
    told: ToldAlert
    trace_id: str | None = None


def secret_bytes(secret: str) -> bytes:
    """Key of a `whsec_…` secret.

    Raises:
        ConfigurationError: It is no such secret.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not (secret.startswith(_SECRET_PREFIX) and _MIN_SECRET_BYTES <= len(key) <= _MAX_SECRET_BYTES):
        raise ConfigurationError(
            f"notify.webhook_secret must be `{_SECRET_PREFIX}` and {_MIN_SECRET_BYTES}-{_MAX_SECRET_BYTES} random "
            'bytes in base64: `echo "whsec_$(openssl rand -base64 32)"` makes one'
        )
    return key


def sign(key: bytes, message_id: str, sent_at: int, body: bytes) -> str:
    """Signature header `v1,…`: HMAC-SHA256 over id, seconds since the epoch and body, joined by dots."""
    signed = b".".join((message_id.encode(), str(sent_at).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, sha256)).decode()


class WebhookSink:
    """Posts each alert change by itself, in order; its `webhook-id` is the event's id, so repeats can be told."""

    name = "webhook"

    def __init__(
        self,
        poster: Poster,
        key: bytes | None,
        tell: Tell,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._poster = poster
        self._tell = tell
        self._key = key
        self._clock = clock

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver each, unsigned when there is no secret.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        for alert in alerts:
            kind, trace_id = f"turntide.{schema_of(AlertChanged)}", trace_ids.get(alert.id)
            body = msgspec.json.encode(WebhookBody(kind, alert.timestamp, alert, self._tell(alert), trace_id))
            sent_at = int(self._clock().timestamp())
            headers = {"webhook-id": alert.id, "webhook-timestamp": str(sent_at)}
            if self._key is not None:
                headers["webhook-signature"] = sign(self._key, alert.id, sent_at, body)
            await self._poster.post(body, headers)

    async def close(self) -> None:
        """Release connections."""
        await self._poster.close()
