"""Which messages of a session are known by their producer's ids: the last 256, as short hashes in parts of their own.

| part | content | written |
|---|---|---|
| `m0` … `m15` | 16 hashes of 8 bytes each | by a turn with a message id, the one of the 16 that it falls into |

So a turn writes 128 bytes at most. They last while the session is known, also closed: a retry does not open it. A new
id is taken for a known one once in 10^16 messages.
"""

from hashlib import blake2b

from models.state.parts import Parts

PREFIX = "m"
KNOWN_MESSAGES = 256
_HASH_BYTES, _HASHES = 8, 16
PART_BYTES = _HASH_BYTES * _HASHES


def is_known(parts: Parts, message_id: str) -> bool:
    """Whether the id is among the last `KNOWN_MESSAGES` that were noted."""
    wanted = _hash(message_id)
    return any(_holds(parts.get(f"{PREFIX}{n}") or b"", wanted) for n in range(KNOWN_MESSAGES // _HASHES))


def note(parts: Parts, message_id: str, place: int) -> None:
    """Note an id in place of that which was noted `KNOWN_MESSAGES` before it.

    Args:
        parts: The session's.
        message_id: Not known yet.
        place: How many were noted before.
    """
    number, at = divmod(place % KNOWN_MESSAGES, _HASHES)
    name = f"{PREFIX}{number}"
    hashes = parts.get(name) or b""
    parts.put(name, hashes[: at * _HASH_BYTES] + _hash(message_id) + hashes[(at + 1) * _HASH_BYTES :])


def _hash(message_id: str) -> bytes:
    return blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


def _holds(hashes: bytes, wanted: bytes) -> bool:
    at = hashes.find(wanted)
    while at > 0 and at % _HASH_BYTES:
        at = hashes.find(wanted, at + 1)
    return at >= 0
