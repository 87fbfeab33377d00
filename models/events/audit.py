"""What people did with what is remembered: read words, or changed something. Names who and what about, never the words.

Written by roles that serve memory over HTTP (`streams.http.audit`), one event for each request; not an output of a
fold: its id is random, and a replay makes none.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.base import UtcTime

AuditKind = Literal["text_read", "acted"]
_Name = Annotated[str, Meta(max_length=256)]


class AccessAudited(Struct, frozen=True, kw_only=True, tag_field="type", tag="access_audited", gc=False):
    """Somebody was answered with what was said, or did something; ids are empty where the request named none."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    timestamp: UtcTime
    kind: AuditKind
    by: _Name
    """Name of the token (`http.tokens`, name), never the token; `local` where a role needs none."""
    method: Annotated[str, Meta(max_length=16)]
    route: _Name
    """The route's template, without what stood in its places; of a tool `/mcp` and its name."""
    status: Annotated[int, Meta(ge=100, le=599)]
    """HTTP status of the answer."""
    given: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """How many things the answer had."""
    app_id: _Name = ""
    session_id: _Name = ""
    user_id: _Name = ""
    project_id: _Name = ""


AuditEvent = AccessAudited
"""Everything on `audit.v1`."""
