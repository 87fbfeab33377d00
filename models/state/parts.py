"""The named parts of one entity's state, as bytes, and which of them changed."""

from collections.abc import Mapping


class Parts:
    """A private overlay over what was loaded; the loaded mapping is never changed.

    Attributes:
        written_bytes: Names and values of all that was put so far, each time it was another one.
        written_parts: How often anything became another one, or went. Both tell what was done since a moment the
            same, whether or not what came before it is stored by now.
    """

    def __init__(self, loaded: Mapping[str, bytes]) -> None:
        self._loaded = dict(loaded)
        self._changed: dict[str, bytes | None] = {}
        self.written_bytes = 0
        self.written_parts = 0

    def settle(self) -> None:
        """What was changed is stored by now: begin anew from there."""
        for name, value in self._changed.items():
            if value is None:
                self._loaded.pop(name, None)
            else:
                self._loaded[name] = value
        self._changed = {}

    def get(self, name: str) -> bytes | None:
        """The part's present bytes, or None."""
        if name in self._changed:
            return self._changed[name]
        return self._loaded.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Write a part; the same bytes again are no change."""
        changed = self._changed
        if (changed[name] if name in changed else self._loaded.get(name)) != value:
            changed[name] = value
            self.written_bytes += len(name) + len(value)
            self.written_parts += 1

    def drop(self, name: str) -> None:
        """Delete a part; one that never was is left alone."""
        if self.get(name) is not None:
            self._changed[name] = None
            self.written_parts += 1

    def drop_all(self, *, but: tuple[str, ...] = ()) -> None:
        """Delete every part, except those whose name begins with one of `but`."""
        for name in {**self._loaded, **self._changed}:
            if not name.startswith(but):
                self._changed[name] = None

    def names(self, prefix: str) -> list[str]:
        """Parts whose names begin so, in no order."""
        names = {**self._loaded, **self._changed}
        return [name for name in names if name.startswith(prefix) and self._changed.get(name, b"") is not None]

    def count(self, prefix: str) -> int:
        """How many parts there are whose names begin so."""
        return len(self.names(prefix))

    def changes(self) -> dict[str, bytes | None]:
        """Every part that was changed or deleted, and its bytes now; None deletes.

        Also where it ended as it was loaded: should another worker have stored what lay between, this undoes it
        (`streams/state/changelog.py` rests on it).
        """
        return dict(self._changed)
