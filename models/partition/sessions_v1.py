"""Migration of sessions' state of releases up to 0.2, which kept a session by its id alone, to a key by app and id.

An open session is its first turn's app's. Of a closed one the state does not say whose it is: its last profile does
(`profiles.v1`, compacted). Without a profile its number and time stay, as of the default app, and its words go: they
must not come to another tenant.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from models.events import DEFAULT_APP, session_key
from models.partition.log_fold import PARTITION_ENTITY, Parts
from models.session.state import LAYOUT
from models.state.entity import HEAD

_CLOSED = 1
_APP, _OTHER_APP = 8, 36
"""Places of fields in a head of that version."""
Changes = dict[str, dict[str, bytes | None]]


class _OldHead(Struct, array_like=True, gc=False):
    version: int


_version_of = msgspec.msgpack.Decoder(_OldHead).decode


def unbound(entities: Mapping[str, Parts]) -> list[str]:
    """Names of the sessions that are kept by their id alone."""
    heads = ((name, parts[HEAD]) for name, parts in entities.items() if name != PARTITION_ENTITY)
    return [name for name, head in heads if _version_of(head).version == 1]


def bound(entities: Mapping[str, Parts], names: list[str], apps: Mapping[str, str]) -> Changes:
    """Changes that bring sessions to their keys by app and id.

    Args:
        entities: State of one partition.
        names: Sessions as `unbound` gives them.
        apps: Session id → app of its last profile.
    """
    changes: Changes = {}
    for name in names:
        parts = entities[name]
        head: list[Any] = msgspec.msgpack.decode(parts[HEAD])
        app_id = apps.get(name, "") if head[_CLOSED] else head[_APP]
        kept = dict(parts) if app_id or not head[_CLOSED] else {}
        key = session_key(app_id or DEFAULT_APP, name)
        if key not in entities:
            changes[key] = {**kept, HEAD: _migrated(head)}
        changes[name] = dict.fromkeys(parts)
    return changes


def _migrated(head: list[Any]) -> bytes:
    fields = [field for place, field in enumerate(head) if head[_CLOSED] or place != _OTHER_APP]
    return msgspec.msgpack.encode([LAYOUT.version, *fields[1:]])
