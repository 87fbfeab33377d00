"""Erasing a user, a session or an app over HTTP (design §5): asking for it, and its proof."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import uuid4

import structlog
from msgspec import Meta, Struct

from models.events.erase import EraseRequested, EraseScope, ErasureProved
from models.events.fields import Identifier
from streams.api.apps.messages import now_utc
from streams.api.commands import read_only
from streams.api.sessions.turns import KnowsSessions
from streams.erase.record import KafkaEraseRequests
from streams.http.field_rules import Rules, given, never, some_of
from streams.http.problems import forbidden, invalid_field
from streams.http.route import Accepted, Group
from streams.http.security import Caller, caller
from streams.settings.http import TokenRole

log = structlog.get_logger(__name__)

_ERASURE = Group("erasure", "Erasing users, sessions and apps, for admins.", prefix="/v1/erase", role=TokenRole.ADMIN)


class Erase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Subject of an erasure: a user in one app or in all apps, a session of an app, or a whole app."""

    rules: ClassVar[Rules] = {
        **some_of(*map(given, ("user_id", "app_id", "session_id"))),
        **never(given("user_id", "session_id")),
        "examples": [{"user_id": "user-17", "app_id": "support", "session_id": None, "purge_logs": False}],
    }
    user_id: Annotated[Identifier, Meta(description="User to erase: in `app_id`, or else in all apps.")] | None = None
    app_id: Annotated[Identifier, Meta(description="App of the subject; alone: the whole app is erased.")] | None = None
    session_id: (
        Annotated[
            Identifier,
            Meta(
                description="Session to erase. App: `app_id`, else the token's only app, else the default app if it "
                "has such a session, else the only app that has one."
            ),
        ]
        | None
    ) = None
    purge_logs: Annotated[
        bool, Meta(description="Also purge Kafka's log files now; this drops earlier records of other subjects too.")
    ] = False


class ErasureAccepted(Struct, frozen=True, kw_only=True):
    """The erasure is accepted and will be completed, even after failures."""

    request_id: str
    scope: EraseScope
    status: str
    """Path of its proof."""


class ErasureStanding(Struct, frozen=True, kw_only=True):
    """Status of an erasure, with its proof once complete."""

    request_id: str
    proved: bool
    """False while it is in progress, and for an unknown id."""
    proof: ErasureProved | None


class Erasures:
    """Routes of erasure.

    Args:
        requests: Where they go; None: this role takes none.
        sessions: Knows whose session is meant where no app is named.
        now: The clock of requests.
    """

    def __init__(
        self, requests: KafkaEraseRequests | None, sessions: KnowsSessions, *, now: Callable[[], datetime] = now_utc
    ) -> None:
        self._requests = requests
        self._sessions = sessions
        self._now = now

    @_ERASURE.post("", "request_erasure", audits="acted", anonymous=True)
    async def erase(self, body: Erase) -> Accepted[ErasureAccepted]:
        """Request the erasure of a user, a session or an app from all stores. The proof follows later."""
        asked_by = caller()
        scope = _scope(body, asked_by)
        if self._requests is None:
            raise read_only()
        app_id = body.app_id
        if body.session_id is not None:
            app_id = asked_by.app_of(app_id) or await self._sessions.app_of(body.session_id)
            if app_id is None:
                raise invalid_field(
                    "app_id", "is missing, and no app of this token has an indexed turn of the session: give the app"
                )
        wanted = EraseRequested(
            request_id=uuid4().hex,
            timestamp=self._now(),
            scope=scope,
            app_id=app_id or "",
            user_id=body.user_id or "",
            session_id=body.session_id or "",
            by=asked_by.name,
            purge_logs=body.purge_logs,
        )
        await self._requests.request(wanted)
        log.info("erasure_requested", scope=scope, by=asked_by.name, request_id=wanted.request_id)
        place = f"/v1/erase/{wanted.request_id}"
        accepted = ErasureAccepted(request_id=wanted.request_id, scope=scope, status=place)
        return Accepted(accepted, {"Location": place})

    @_ERASURE.get("/{request_id}", "get_erasure", anonymous=True)
    async def proof(
        self, *, request_id: Annotated[Identifier, Meta(description="`request_id` of the response to the request.")]
    ) -> ErasureStanding:
        """Return the proof of an erasure: entries read and deleted, by store. It contains no names."""
        if self._requests is None:
            raise read_only()
        proof = await self._requests.proof(request_id)
        return ErasureStanding(request_id=request_id, proved=proof is not None, proof=proof)


def _scope(asked: Erase, asked_by: Caller) -> EraseScope:
    """What is to be erased, if the caller may.

    Raises:
        Problem: 422 nobody is named, or two things are; 403 it is another tenant's too.
    """
    if asked.session_id is not None and asked.user_id is not None:
        raise invalid_field("session_id", "excludes user_id, since a session is erased as a whole: leave one out")
    if asked.session_id is None and asked.user_id is None and asked.app_id is None:
        raise invalid_field("", "has no subject: give user_id, app_id, both, or session_id")
    if asked.app_id is not None:
        asked_by.app_of(asked.app_id)
    elif asked_by.apps is not None and asked.session_id is None:
        detail = "this token is restricted to apps: give the app_id of the user, or of the app to erase"
        raise forbidden(detail, "forbidden_app")
    if asked.purge_logs and asked_by.apps is not None:
        raise forbidden("purge_logs also drops earlier records of other tenants: use an admin token of all apps")
    if asked.session_id is not None:
        return "session"
    return "app" if asked.user_id is None else "user"
