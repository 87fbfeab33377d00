"""Layout of a project's state: entities that are read when they are needed, and places for its items.

| entity | what it holds |
|---|---|
| `project:<app>/<project>` | the root: `models.project.state` |
| `…/shelf/<nn>` | memories, subjects and pending facts, spread by their names: `models.project.shards` |
| `…/conversation/<digest>` | one conversation: `models.project.short_term` |

A turn loads and writes the shards it touches and its conversation, so what it costs does not grow with the project.
Every entity has a part `head`: stores list entities by it.
"""

from typing import Final

from models.state.entity import HEAD, Read, StateLayout, record_bytes, write_part
from models.state.parts import Parts

SHARDS: Final = 128
"""Parts in which a project's memories lie, by the suffix of their ids."""
LAYOUT: Final = StateLayout("project", version=1)
_KEPT = b"\x01"
"""Head of an entity that has nothing to say in it."""
_SLOTS_PER_BLOCK = 128


def _shard(number: int) -> str:
    return f"/shelf/{number:02x}"


def _conversation(digest: str) -> str:
    return f"/conversation/{digest}"


class Store:
    """Working copies of a project's entities; `root` is the project itself."""

    def __init__(self, key: str, read: Read, root: Parts) -> None:
        self.key = key
        self.root = root
        self._read = read
        self._open = {"": root}

    def shard(self, number: int) -> Parts:
        """One of `SHARDS`."""
        return self.open(_shard(number))

    def conversation(self, digest: str) -> Parts:
        """A conversation, by the digest of its id."""
        return self.open(_conversation(digest))

    def open(self, name: str) -> Parts:
        """An entity by what comes behind the project's key."""
        parts = self._open.get(name)
        if parts is None:
            parts = self._open[name] = Parts(self._read(self.key + name) or {})
        return parts

    @staticmethod
    def put(parts: Parts, name: str, value: bytes) -> None:
        """Write a part of an entity whose head says nothing."""
        if parts.get(HEAD) is None:
            parts.put(HEAD, _KEPT)
        parts.put(name, value)

    def changes(self) -> dict[str, dict[str, bytes | None]]:
        """Entity → part → bytes, None to delete; without entities that nothing became of."""
        return {self.key + name: changed for name, parts in self._open.items() if (changed := parts.changes())}

    @property
    def written_bytes(self) -> int:
        """Size of the changelog records for all that was written so far."""
        return sum(
            parts.written_bytes + parts.written_parts * record_bytes(self.key + name)
            for name, parts in self._open.items()
            if parts.written_parts
        )

    def erase(self, digests: list[str], most_bytes: int) -> bool:
        """Delete everything, the root's head last; False if that takes more than so many bytes of the changelog.

        Args:
            digests: Of its conversations.
            most_bytes: The rest is for the next time.
        """
        entities = [
            *(_shard(number) for number in range(SHARDS)),
            *(_conversation(digest) for digest in digests),
            "",
        ]
        left_bytes = most_bytes
        for entity in entities:
            parts, each_bytes = self.open(entity), record_bytes(self.key + entity)
            for name in sorted(parts.names(""), key=HEAD.__eq__):
                if left_bytes <= 0:
                    return False
                parts.drop(name)
                left_bytes -= each_bytes + len(name)
        return True


class Slots:
    """Places of items on the compacted topic, by kind: a freed one is taken first, so the topic stays small.

    Free ones are a stack in blocks, of which only the last is written.

    Args:
        root: Parts of the project.
        counts: Kind → places that were ever taken, and how many of them are free; kept in the head.
    """

    def __init__(self, root: Parts, counts: dict[str, tuple[int, int]]) -> None:
        self._root = root
        self._counts = counts

    def take(self, kind: str) -> int:
        """A free place."""
        top, free = self._counts.get(kind, (0, 0))
        if not free:
            self._counts[kind] = (top + 1, 0)
            return top
        name = self._block(kind, free - 1)
        slots = self._slots(name)
        slot = slots.pop()
        self._counts[kind] = (top, free - 1)
        write_part(self._root, name, slots)
        return slot

    def give(self, kind: str, slot: int) -> None:
        """The place is free."""
        top, free = self._counts[kind]
        name = self._block(kind, free)
        write_part(self._root, name, [*self._slots(name), slot])
        self._counts[kind] = (top, free + 1)

    def _slots(self, name: str) -> list[int]:
        return LAYOUT.part(self._root, name, list[int]) or []

    @staticmethod
    def _block(kind: str, place: int) -> str:
        return f"f:{kind}/{place // _SLOTS_PER_BLOCK}"
