"""Counts of a partition's open sessions by risk mode."""

from __future__ import annotations

from models.events import Mode


class OpenModes:
    """Follows sessions from fold to fold; only those that are not calm are kept, which are few."""

    def __init__(self) -> None:
        self._other: dict[str, Mode] = {}
        self._sessions = dict.fromkeys(Mode, 0)

    def note(self, session_id: str, mode: Mode | None) -> None:
        """A session was folded.

        Args:
            session_id: Which.
            mode: In which it is now; None where it is not open.
        """
        before = self._other.get(session_id)
        now = None if mode is Mode.CALM else mode
        if before is now:
            return
        if before is not None:
            self._sessions[before] -= 1
            del self._other[session_id]
        if now is not None:
            self._sessions[now] += 1
            self._other[session_id] = now

    def of(self, open_sessions: int) -> dict[Mode, int]:
        """Sessions in each mode, of so many that are open."""
        return {**self._sessions, Mode.CALM: open_sessions - len(self._other)}
