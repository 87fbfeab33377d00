"""Requests and answers of the routes of erasure."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from models.events.erase import EraseScope, ErasureProved
from models.events.fields import Identifier


class Erase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who is to be forgotten: a user of an app or of all apps, a session, or a whole app."""

    user_id: Annotated[Identifier, Meta(description="With `app_id` of this app, else in all apps.")] | None = None
    app_id: Annotated[Identifier, Meta(description="Alone: everything of the app.")] | None = None
    session_id: Annotated[Identifier, Meta(description="Alone.")] | None = None
    purge_logs: Annotated[
        bool, Meta(description="Also from Kafka's own files at once, and with it what others wrote before.")
    ] = False


class ErasureAccepted(Struct, frozen=True, kw_only=True):
    """The erasure is in the log and will be carried out, whatever fails meanwhile."""

    request_id: str
    scope: EraseScope
    status: str
    """Where its proof will be."""


class ErasureStanding(Struct, frozen=True, kw_only=True):
    """Whether an erasure is proved."""

    request_id: str
    proved: bool
    """False while it is under way, and for one that nobody asked for."""
    proof: ErasureProved | None
