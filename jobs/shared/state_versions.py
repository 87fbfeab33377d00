"""State versions in the changelogs, read without decoding more than the versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from models.partition.commands import FOLDS
from models.partition.sessions import PARTITION_ENTITY
from models.session import state as session_state
from streams.kafka.client import read_to_end
from streams.oracle.folded import FOLDED, SESSIONS, Folded
from streams.settings import Settings
from streams.state.changelog import OFFSET_BYTES, name_of

_HEAD = "head"
READ: Mapping[str, int] = {
    "session": session_state.LAYOUT.version,
    **{kind: each.state.layout.version for kind, each in FOLDS.items()},
}
"""What this release reads and writes, by the kind of entity (of the memory role, the word its key begins with)."""


class _Versioned(Struct, array_like=True):
    version: int


_version_of = msgspec.msgpack.Decoder(_Versioned).decode
StateVersions = dict[tuple[str, str, int], int]
"""Role, kind of entity and version → entities."""


async def state_versions(settings: Settings, progress: Callable[[int], None] = lambda _: None) -> StateVersions:
    """What stands in the changelogs; an entity's last head counts.

    Raises:
        ConfigurationError: A changelog is missing.
        StoreUnavailable: Kafka does not answer.
    """
    found: Counter[tuple[str, str, int]] = Counter()
    records = 0
    for folded in FOLDED:
        heads: dict[str, tuple[str, str, int]] = {}
        async for record in read_to_end(settings.kafka, folded.changelog.full_name(settings.topic_prefix)):
            records += 1
            progress(records)
            entity, part = name_of(record.key)
            if part != _HEAD or entity == PARTITION_ENTITY or (kind := kind_of(folded, entity)) is None:
                continue
            if record.value is None:
                heads.pop(entity, None)
            else:
                heads[entity] = (folded.role, kind, version_of(record.value[OFFSET_BYTES:]))
        found.update(heads.values())
    return dict(found)


def kind_of(folded: Folded, entity: str) -> str | None:
    """Kind of an entity; None for what has no version of its own: a part of a project.

    >>> kind_of(FOLDED[1], "user:app/u"), kind_of(FOLDED[1], "project:app/p"), kind_of(FOLDED[0], "user:odd name")
    ('user', 'project', 'session')
    """
    if folded is SESSIONS:
        return "session"
    kind, _, rest = entity.partition(":")
    if kind == "project" and rest.count("/") > 1:
        return None
    return kind if kind in READ else None


def version_of(head: bytes) -> int:
    """Version of a head; −1 for one that has none.

    >>> version_of(msgspec.msgpack.encode([3, "more"])), version_of(b"rubbish")
    (3, -1)
    """
    try:
        return _version_of(head).version
    except msgspec.MsgspecError:
        return -1
