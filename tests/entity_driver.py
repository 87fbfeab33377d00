"""What drivers of entities have in common: what came out, and the parts that a store would have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entities = dict[str, dict[str, bytes]]


def keep_parts(stored: dict[str, bytes], changed: Mapping[str, bytes | None]) -> None:
    """Keep what a fold changed of an entity; a part without a value goes."""
    for part, value in changed.items():
        stored.pop(part, None)
        if value is not None:
            stored[part] = value


def keep_entities(entities: Entities, changed: Mapping[str, Mapping[str, bytes | None]]) -> None:
    """The same for each entity of a result; one without a part goes."""
    for entity, parts in changed.items():
        keep_parts(entities.setdefault(entity, {}), parts)
        if not entities[entity]:
            del entities[entity]


class EntityDriver:
    """One entity with its state, what is stored of it, and everything that its fold put out."""

    state: Any
    stored: dict[str, bytes]
    outputs: list[Any]

    def load(self) -> Any:
        """The state as it is stored."""
        raise NotImplementedError

    def store(self) -> None:
        """Write changed parts, forget the working copy and read it back."""
        keep_parts(self.stored, self.state.changed_parts())
        self.state = self.load()

    def of(self, kind: type[Any]) -> list[Any]:
        """Outputs of a kind."""
        return [output for output in self.outputs if isinstance(output, kind)]
