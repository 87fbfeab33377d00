"""Routes of the live page's data: `/v1/live`, for operators; text only with the permission for it, and audited.

Those of a session, of a search and of alerts stand beside what answers them (`timeline`, `searching`, `commands`). A
session id may hold slashes, so it ends a path: text has a path of its own.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from models.events.fields import Identifier
from streams.api.answers import answered
from streams.api.live import stream
from streams.api.live.hub import Hub
from streams.api.live.messages import Me
from streams.http.route import Group
from streams.http.security import caller
from streams.settings.http import TokenRole

LIVE = Group(
    "live", "Sessions, alerts and roles as they are now, for operators.", prefix="/v1/live", role=TokenRole.OPERATOR
)
_STREAM = (
    'event: changes\nid: 7\ndata: {"sessions":[],"gone":["order-4711"],"gone_sessions":[{"app_id":"shop",'
    '"session_id":"order-4711"}],"alerts":[]}\n\n'
)


class OfApp(Struct, frozen=True, kw_only=True):
    """A request about one app or all."""

    app_id: Annotated[Identifier, Meta(description="Only of this app; none: of all that the token reads.")] | None = (
        None
    )


class LiveData:
    """Who asks, and what changes.

    Args:
        hub: Tells of changes.
        tokens: Whether this server asks for tokens.
    """

    def __init__(self, hub: Hub, *, tokens: bool) -> None:
        self._hub = hub
        self._tokens = tokens

    @LIVE.get("/me", "describe_caller", role=TokenRole.READER)
    async def me(self) -> Me:
        """Who asks, and what they may."""
        asked_by = caller()
        apps = None if asked_by.apps is None else sorted(asked_by.apps)
        return answered(Me, asked_by, role=asked_by.role.value, apps=apps, tokens=self._tokens)

    @LIVE.get("/stream", "stream_changes", lasting=True, also={stream.LiveStream.media_type: _STREAM})
    async def stream(self, asked: OfApp) -> stream.LiveStream:
        """Sessions, alerts and roles as they are (`snapshot`, in pieces), then what changes (`changes`, `roles`)."""
        asked_by = caller()
        app = asked_by.app_of(asked.app_id)
        apps = asked_by.apps if app is None else frozenset({app})
        return stream.LiveStream(self._hub, apps, token=asked_by.name if self._tokens else "")
