"""How many turns of a partition's users wait to become episodes: what compaction lags behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from models.errors import RecoveryFailed
from models.partition.sessions import Parts
from models.user.state import UserHead, read_head

_PREFIX = "user:"
"""Of the keys of users (`models.events.user.user_key`)."""


class UserStandings:
    """Follows the users of a partition from write to write; only those for whom something waits are kept.

    Args:
        entities: The partition's state.

    Attributes:
        waiting_turns: Turns that an episode was asked for and that are in none yet.
    """

    def __init__(self, entities: Mapping[str, Parts]) -> None:
        self.waiting_turns = 0
        self._waiting: dict[str, int] = {}
        for key, parts in entities.items():
            if key.startswith(_PREFIX) and parts:
                with suppress(RecoveryFailed):  # one user's damaged state is that user's matter, when it is folded
                    self.note(key, read_head(parts))

    def note(self, key: str, head: UserHead) -> None:
        """A user was written; of one who was erased the head says nothing."""
        waiting = head.requested - head.compressed
        self.waiting_turns += waiting - self._waiting.pop(key, 0)
        if waiting:
            self._waiting[key] = waiting
