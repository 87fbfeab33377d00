"""The named parts of one entity's state, as bytes, and which of them changed."""

from __future__ import annotations

from collections.abc import Mapping


class Parts:
    """A private overlay over what was loaded; the loaded mapping is never changed."""

    def __init__(self, loaded: Mapping[str, bytes]) -> None:
        self._loaded = loaded
        self._changed: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes | None:
        """The part's present bytes, or None."""
        if name in self._changed:
            return self._changed[name]
        return self._loaded.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Write a part."""
        self._changed[name] = value

    def drop(self, name: str) -> None:
        """Delete a part."""
        self._changed[name] = None

    def drop_all(self) -> None:
        """Delete every part."""
        self._changed = dict.fromkeys((*self._loaded, *self._changed))

    def changes(self) -> dict[str, bytes | None]:
        """What differs from what was loaded; None deletes."""
        return {name: value for name, value in self._changed.items() if value != self._loaded.get(name)}
