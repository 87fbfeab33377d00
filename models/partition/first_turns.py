"""Where the numbers of a session begin that nobody counts and no state knows: above all that it can have had.

A session that was forgotten may go on under its id, and what it said has numbers in archive and index. So of the
sessions that were forgotten the highest number stays, as one figure for each of 256 groups by a hash of their names: a
few hundred bytes a partition, however many sessions there were. A new session begins at 0 where nobody of its group was
forgotten, else a little higher.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

PART = "first_turns"
"""Of the partition's own state."""
CHANGED_BYTES = 256 * 12 + 120
_MOST = 2**52
"""A higher number of one session is no other's business: half of all numbers are left to count in."""


class FirstNumbers:
    """First numbers by group.

    Args:
        stored: Part → bytes of the partition's own state.
    """

    def __init__(self, stored: Mapping[str, bytes]) -> None:
        data = stored.get(PART)
        self._by_group = msgspec.msgpack.decode(data, type=dict[int, int]) if data else {}
        self._changed = False

    def of(self, key: str) -> int:
        """First number of a session that no state knows."""
        return self._by_group.get(_group(key), 0)

    def forget(self, key: str, last_turn: int) -> int:
        """A session is forgotten; gives how much larger the next write gets by it."""
        group, first = _group(key), last_turn + 1
        if not self._by_group.get(group, 0) < first <= _MOST:
            return 0
        self._by_group[group] = first
        self._changed = True
        return CHANGED_BYTES

    def take_changes(self) -> dict[str, bytes | None]:
        """The part, if it changed since the last call."""
        if not self._changed:
            return {}
        self._changed = False
        return {PART: msgspec.msgpack.encode(dict(sorted(self._by_group.items())))}


def _group(key: str) -> int:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0]
