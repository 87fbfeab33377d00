"""Users folded and indexed step by step: what their events say, and what readers find of them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.events import EpisodeCompressed, FactChanged, UserMemoryChanged, UserOutput
from models.text.words import words_of
from streams.index.user_memory import UserMemory
from streams.ports import Embedder, VectorStore
from tests.support.user_driver import User

MATTERS = ("databases", "boats", "bread", "visas", "taxes", "music")


class MatterEmbedder(Embedder):
    """A direction for each matter that a text names; counts what it was asked to embed."""

    name = "matter"
    dim = len(MATTERS)
    topic_similarity = 0.5
    episode_distance = 0.4

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The matters' directions, added."""
        self.embedded += texts
        words = [words_of(text.lower()) for text in texts]
        counts = [[said.count(matter) for matter in MATTERS] for said in words]
        rows = np.array(counts, dtype=np.float32).reshape(-1, self.dim)
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        found: NDArray[np.float32] = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
        return found


class IndexedUser(User):
    """A user whose events are indexed as they come; several may share a store.

    Args:
        store: Where points live.
        app: The user's app.
        user: The user's id there.
        first: Offset of the first event in `facts.v1`, as where the app's users share a partition with others.
    """

    def __init__(self, store: VectorStore, *, app: str = "a", user: str = "u", first: int = 0, **users: Any) -> None:
        super().__init__(**users)
        self.app, self.user = app, user
        self.embedder = MatterEmbedder()
        self.memory = UserMemory(store, self.embedder)
        self.log: list[tuple[UserOutput, int]] = []
        self._next = first

    def put(self, event: Any) -> list[UserOutput]:
        """Fold one event of this user."""
        outputs = super().put(msgspec.structs.replace(event, app_id=self.app, user_id=self.user))
        for output in outputs:
            self.log.append((output, self._next))
            self._next += 1
        return outputs

    async def index(self, log: Sequence[tuple[UserOutput, int]] | None = None) -> None:
        """Index events, by default all of them, one batch."""
        log = self.log if log is None else log
        await self.memory.add_episodes([(e, n) for e, n in log if isinstance(e, EpisodeCompressed)])
        await self.memory.add_facts([(e, n) for e, n in log if isinstance(e, FactChanged)])
        await self.memory.add_stats([(e, n) for e, n in log if isinstance(e, UserMemoryChanged)])
