"""Deduplication of what another role forwards: places of the log that were seen, and short ids of what came last."""

from hashlib import blake2b

from models.events import Position

SHORT_ID = 6
"""Bytes by which ends of conversations, and conversations, are told apart where their names would take too much."""
MOST_SHORT_IDS = 128
"""In one list: more than one record of `turns.v1` ends conversations."""

Seen = dict[int, tuple[int, bytes]]
"""Partition → offset of the last record that forwarded something, and short ids of what it forwarded."""


def is_new(seen: Seen, place: Position, event_id: str) -> bool:
    """Whether what a record forwarded is new; from now on it is not.

    After a crash the role that forwards repeats what it sent, from some record of its source on.
    """
    offset, ids = seen.get(place.partition, (-1, b""))
    short = short_id(event_id)
    if place.offset < offset or (place.offset == offset and short in split_ids(ids)):
        return False
    kept = ids if place.offset == offset else b""
    seen[place.partition] = (place.offset, (kept + short)[-MOST_SHORT_IDS * SHORT_ID :])
    return True


def short_id(name: str) -> bytes:
    """A few bytes that stand for a name."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=SHORT_ID).digest()


def split_ids(ids: bytes) -> set[bytes]:
    """A list of short ids, written one behind the other."""
    return {ids[n : n + SHORT_ID] for n in range(0, len(ids), SHORT_ID)}
