"""The changelog: encoding of state in records, and the rule for which records count when they are read again.

A fold's changes are one record batch, and every record has the fold's source offset: eight bytes before the value, or a
header for records without a value. `ChangelogReplay` reads them in log order by one rule: **a record whose source
offset is below the highest one accepted so far is stale and ignored; any other is accepted.**

Proof of this rule, and that a table may continue from its position instead of the log's start. A writer folds the
source in order, so a batch has every part that changed between its writer's base and its own offset, with the values
of the whole log up to that offset (the fold is deterministic). A writer has read its base from this log or written it,
so the base is never above the highest offset before its batch. Let the table be the state at offset O, the highest so
far:

- A batch below O is from a replaced worker that has not noticed it yet. The table already has its parts as of O: parts
  that changed again later have newer values there, the others the same.
- A batch at or above O has a base of at most O, so it has everything that changed after O: the table becomes the state
  at that batch's offset.

So the table depends only on the log read so far, and reading can stop anywhere: incremental recovery is the same left
fold as full recovery (`tests/property/test_replay.py`, with many writers, compaction and restarts).

Compaction keeps the last record of a key, not the one with the highest offset. A stale record in last place would
replace the valid value, so `ChangelogReplay.overruled` lists those keys, and recovery writes their parts again.

With encryption, changelogs and local stores have each part encrypted as a whole, with its app's key.

A part can be decrypted only under its own name. Folds, and tables in memory, have plain parts.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from models.entities import KINDS
from models.errors import RecoveryFailed
from models.events.base import name_of_part
from streams.encryption.keyring import NOBODY, Sealer, key_of_id
from streams.encryption.tokens import ID_BYTES, IV_BYTES, STATE_MARK
from streams.kafka.producer import Record
from streams.state.partition import PartitionTable, Tail

_KINDS = frozenset(kind.name for kind in KINDS)
_BEFORE_PART = b"\x1f"
"""`streams.state.changelog.SEPARATOR`."""
_MARKED = len(STATE_MARK)
_OVERHEAD_BYTES = _MARKED + ID_BYTES + IV_BYTES


def sealed_part(sealer: Sealer, key: bytes, value: bytes) -> bytes:
    """A part as stored, for its changelog key; unchanged if its app is not encrypted."""
    secret = sealer.key(_app_of(key.partition(_BEFORE_PART)[0]))
    return value if secret is None else STATE_MARK + secret.seal(value, key)


def is_sealed(kept: bytes) -> bool:
    """Whether a part is encrypted."""
    return kept.startswith(STATE_MARK)


def part_size_bytes(kept: bytes) -> int:
    """Size of the part itself."""
    return len(kept) - (_OVERHEAD_BYTES if is_sealed(kept) else 0)


def opened_part(key: bytes, kept: bytes) -> bytes | None:
    """Decrypt a part; None: its key was erased.

    Raises:
        ConfigurationError: The key is missing.
        RecoveryFailed: It was encrypted under another name, or changed.
    """
    if not is_sealed(kept):
        return kept
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - extra `encryption`

    sealed = kept[_MARKED:]
    if (secret := key_of_id(sealed[:ID_BYTES])) is None:
        return None
    try:
        return secret.opened(sealed, key)
    except InvalidTag:
        raise RecoveryFailed(
            "a part of state was encrypted under another name or changed since: find other writers to this changelog "
            "and stop them; then drop the state topic and replay the turns (`turntide ops reset`)"
        ) from None


@lru_cache(maxsize=65_536)
def _app_of(entity: bytes) -> str:
    """App of an entity, by its key; none for a partition's own entity."""
    kind, _, names = entity.decode().partition(":")
    return name_of_part(names.partition("/")[0]) if kind in _KINDS else NOBODY


Changes = Mapping[str, Mapping[str, bytes | None]]
"""Entity → part → new bytes, None to delete."""

SEPARATOR = "\x1f"
_ESCAPE = "\x1e"
_ESCAPED = str.maketrans({_ESCAPE: f"{_ESCAPE}0", SEPARATOR: f"{_ESCAPE}1"})
_OFFSET = struct.Struct(">q")
OFFSET_BYTES = _OFFSET.size
"""Size of the source offset at the beginning of every value."""
_OFFSET_HEADER = "offset"
_SEPARATOR_BYTES = SEPARATOR.encode()
_FOREIGN = (struct.error, TypeError, ValueError, AttributeError)
"""Errors of foreign records: no key or not the key of a part, no offset."""


def key_of(entity: str, part: str) -> bytes:
    r"""Key of one part. Ids may have any text, so the separator is escaped in them.

    >>> key_of("s-1", "head"), key_of("s\x1f1", "head")
    (b's-1\x1fhead', b's\x1e11\x1fhead')
    """
    if SEPARATOR in (both := entity + part) or _ESCAPE in both:  # hardly ever, and translating takes its time
        entity, part = entity.translate(_ESCAPED), part.translate(_ESCAPED)
    return f"{entity}{SEPARATOR}{part}".encode()


def name_of(key: bytes) -> tuple[str, str]:
    r"""Entity and part of a key.

    >>> name_of(b"s-1\x1fhead"), name_of(b"s\x1e11\x1fhead")
    (('s-1', 'head'), ('s\x1f1', 'head'))
    """
    entity, _, part = (both := key.decode()).partition(SEPARATOR)
    if _ESCAPE in both:
        return _unescaped(entity), _unescaped(part)
    return entity, part


def _unescaped(text: str) -> str:
    return text.replace(f"{_ESCAPE}1", SEPARATOR).replace(f"{_ESCAPE}0", _ESCAPE)


def keyed(changes: Changes) -> dict[bytes, bytes | None]:
    """The changes by changelog key."""
    return {key_of(entity, part): value for entity, parts in changes.items() for part, value in parts.items()}


def records_of(parts: Mapping[bytes, bytes | None], offset: int, sealer: Sealer | None = None) -> list[Record]:
    """Changelog records of parts as of a source offset, encrypted if there is a sealer."""
    prefix = _OFFSET.pack(offset)
    return [
        Record(key, None, ((_OFFSET_HEADER, prefix),))
        if value is None
        else Record(key, prefix + (value if sealer is None else sealed_part(sealer, key, value)))
        for key, value in parts.items()
    ]


def tail_of(position: int, record: Any) -> Tail:
    """Fingerprint of the record at `position`, to recognise another record there."""
    return Tail(position, crc32(record.value or b"", crc32(record.key)))


class ChangelogReplay:
    """Applies changelog records to one partition's table, from its current position on.

    Attributes:
        table: The table.
        overruled: Keys whose last record is stale: compaction would keep the wrong one.
    """

    def __init__(self, table: PartitionTable) -> None:
        self.table = table
        self.overruled: set[bytes] = set()
        self._offset = table.progress.offset

    def apply(self, records: Sequence[Any], *, now_ms: int) -> None:
        """Apply records, at least one, in log order. Records need `key`, `value`, `headers` and `offset`.

        Raises:
            RecoveryFailed: A record is foreign.
        """
        newest, overruled = self._offset, self.overruled
        accepted: dict[bytes, bytes | None] = {}
        unpack = _OFFSET.unpack_from
        for record in records:
            key, value = record.key, record.value
            try:
                (offset,) = unpack(_offset_header(record.headers) if value is None else value)
                key.index(_SEPARATOR_BYTES)
            except _FOREIGN:
                raise _foreign(record) from None
            if offset < newest:
                overruled.add(key)
                continue
            newest = offset
            accepted[key] = None if value is None else opened_part(key, value[OFFSET_BYTES:])
            if overruled:
                overruled.discard(key)
        last = records[-1]
        self._offset = newest
        tail = tail_of(last.offset, last)
        try:
            self.table.apply(accepted, offset=newest, applied=last.offset + 1, tail=tail, now_ms=now_ms)
        except UnicodeDecodeError:
            raise _foreign(last) from None


def _offset_header(headers: Iterable[tuple[str, bytes]]) -> bytes:
    return next((value for name, value in headers if name == _OFFSET_HEADER), b"")


def _foreign(record: Any) -> RecoveryFailed:
    return RecoveryFailed(
        f"changelog {record.topic}[{record.partition}] up to {record.offset}: a record names no source offset or no "
        "part of state, so none of ours wrote it. Look who else writes to this topic; then drop the state topic and "
        "replay the turns"
    )
