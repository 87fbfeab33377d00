"""Audit events: who read words of people, or changed something, and what it was about. Never the words.

Written by roles that serve memory over HTTP (`streams.http.audit`), one event for each request; not an output of a
fold: its id is random, and a replay makes none.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.fields import BEHAVIOUR, IDENTIFIER, OPERATIONAL, UtcTime, about

AuditKind = Literal["text_read", "acted"]
_Name = Annotated[str, Meta(max_length=256)]


class AccessAudited(Struct, frozen=True, kw_only=True, tag_field="type", tag="access_audited", gc=False):
    """Somebody was answered with what was said, or did something; ids are empty where the request named none."""

    id: Annotated[str, about("Names the record; random.", IDENTIFIER, names="event", min_length=1, max_length=64)]
    timestamp: Annotated[UtcTime, about("When it was answered, aware, RFC 3339.")]
    kind: Annotated[AuditKind, about("Whether words were read or something was done.", BEHAVIOUR)]
    by: Annotated[_Name, about("Name of the token, never the token.", IDENTIFIER, names="operator")]
    method: Annotated[str, about("Of the request.", OPERATIONAL, max_length=16)]
    route: Annotated[_Name, about("The route's template; of a tool `/mcp` and its name.", OPERATIONAL)]
    status: Annotated[int, about("HTTP status of the answer.", BEHAVIOUR, unit="HTTP status", ge=100, le=599)]
    given: Annotated[int, about("How many things the answer had.", BEHAVIOUR, ge=0, le=2**53)] = 0
    app_id: Annotated[_Name, about("App that the request was about, if any.", OPERATIONAL, names="app")] = ""
    session_id: Annotated[_Name, about("Likewise its session.", IDENTIFIER, names="session")] = ""
    user_id: Annotated[_Name, about("Likewise its user.", IDENTIFIER, names="user")] = ""
    project_id: Annotated[_Name, about("Likewise its project.", IDENTIFIER, names="project")] = ""


AuditEvent = AccessAudited
"""Everything on `audit.v1`."""
