"""A partition's state in memory."""

from collections.abc import Collection, Mapping
from sys import intern

from streams.state.changelog import name_of
from streams.state.partition import TableProgress, Tail


class MemoryTable:
    """Entities in a dictionary. Also state by itself, without a changelog, for replays and benchmarks."""

    def __init__(self) -> None:
        self.entities: dict[str, dict[str, bytes]] = {}
        self.progress = TableProgress()
        self.size_bytes = 0

    def put(self, entity: str, changed: Mapping[str, bytes | None]) -> None:
        """Set and delete parts; an entity without parts is gone."""
        for part, value in changed.items():
            self._set(entity, part, value)

    def apply(
        self, parts: Mapping[bytes, bytes | None], *, offset: int, applied: int, tail: Tail | None, now_ms: int
    ) -> None:
        """See `PartitionTable`."""
        for key, value in parts.items():
            self._set(*name_of(key), value)
        self.progress = TableProgress(applied, offset, tail, now_ms)

    def forget(self, entities: Collection[str] | None = None) -> None:
        """Nothing else is kept of what was deleted."""

    def close(self) -> None:
        """Nothing is held."""

    def drop(self) -> None:
        """Nothing is kept."""

    def _set(self, entity: str, part: str, value: bytes | None) -> None:
        # Sessions share the few names of parts; a copy each would take as much as a third of their state.
        part = intern(part)
        parts = self.entities.get(entity)
        if parts is None:
            if value is not None:
                self.entities[entity] = {part: value}
                self.size_bytes += len(value)
            return
        old = parts.get(part)
        if old is not None:
            self.size_bytes -= len(old)
        if value is not None:
            # In place: taking out and putting back lets a dictionary grow to twice its size.
            parts[part] = value
            self.size_bytes += len(value)
            return
        parts.pop(part, None)
        if not parts:
            del self.entities[entity]
