"""Sinks of which each is one form of a JSON body, posted in order: the form is all that tells them apart."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from models.events import AlertChanged
from models.policy import NotifyPolicy
from models.risk.telling import ToldAlert, told, worst_turn
from streams.notify.delivery import Poster
from streams.ports import NO_TRACE_IDS
from streams.settings.live import LIVE_PAGE

Tell = Callable[[AlertChanged], ToldAlert]
"""Puts an alert into words, with the policy's next steps and the public address."""
Form = Callable[[AlertChanged, ToldAlert], object | None]
"""The body that a receiver wants; None: it has no word for such a change."""


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
    """Posts each change in a receiver's form. A repeat is told by the alert's id in the body."""

    def __init__(self, name: str, poster: Poster, tell: Tell, form: Form) -> None:
        self.name = name
        self._poster = poster
        self._tell = tell
        self._form = form

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:  # noqa: ARG002
        """Deliver each.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        for alert in alerts:
            if (body := self._form(alert, self._tell(alert))) is not None:
                await self._poster.post(msgspec.json.encode(body))

    async def close(self) -> None:
        """Release connections."""
        await self._poster.close()
