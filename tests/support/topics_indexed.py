"""One session folded and indexed step by step: what its state says of topics, and what readers find of them."""

from typing import Any

import numpy as np

from models.events import OutputEvent, Role, TopicChanged
from models.policy import Policy
from models.policy.topic import TopicPolicy
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.inference.intake import topic_text
from streams.ports import VectorStore
from tests.support.session_driver import Session, said

POLICY = Policy(topics=TopicPolicy(similarity_threshold=0.7, max_topics=3, most_topics=4))
SUBJECTS = {
    "boats": "Which sails does a small boat need for the harbour?",
    "bread": "How long does sourdough bread bake in the oven?",
    "visas": "Do I need a visa for a week in Kenya?",
    "guitars": "Which strings are good for an old guitar?",
    "tulips": "When are tulip bulbs planted in the garden?",
    "taxes": "Can I deduct the train ticket from my income tax?",
}


class IndexedSession(Session):
    """A session whose turns and topic events are indexed as they come; every subject is a topic of its own."""

    def __init__(self, store: VectorStore, embedder: Any, policy: Policy = POLICY, *, session_id: str = "s") -> None:
        super().__init__(policy)
        self.session_id = session_id
        self.embedder = embedder
        keep = policy.memory.stored_vectors
        self.turns = SessionVectorMemory(store, embedder, keep_turns=keep)
        self.memory = TopicMemory(
            store, embedder, self.turns, keep_turns=keep, forgotten_after=policy.session.closed_retention
        )
        self.indexed = 0

    @property
    def changes(self) -> list[tuple[TopicChanged, int]]:
        """Every topic event so far; its place in the log is its place among them."""
        found = [output for output in self.outputs if isinstance(output, TopicChanged)]
        return [(event, offset) for offset, event in enumerate(found)]

    async def ask(self, turn: int, subject: str, **more: Any) -> list[OutputEvent]:
        """A user's turn on a subject, folded and indexed."""
        more.setdefault("vector", np.eye(len(SUBJECTS), dtype=np.float32)[list(SUBJECTS).index(subject)])
        return await self._turn(turn, f"{SUBJECTS[subject]} ({turn})", **more)

    async def answer(self, turn: int, content: str = "That depends.", **more: Any) -> list[OutputEvent]:
        """An assistant's turn, folded and indexed."""
        return await self._turn(turn, content, role=Role.ASSISTANT, **more)

    async def talk(self, *subjects: str, first: int = 0) -> None:
        """A question and an answer on each subject in turn."""
        for n, subject in enumerate(subjects):
            await self.ask(first + 2 * n, subject)
            await self.answer(first + 2 * n + 1, f"About {subject}: it depends ({first + 2 * n + 1}).")

    async def _turn(self, turn: int, content: str, *, vector: Any = None, **more: Any) -> list[OutputEvent]:
        more["session_id"] = self.session_id
        outputs = self.say(turn, content, vector=vector, **more)
        event = said(turn, content, **more)
        await self.turns.add_turns([event], self.embedder.embed([content]))
        await self.index()
        return outputs

    async def index(self) -> None:
        """Index the topic events that were not yet."""
        fresh = self.changes[self.indexed :]
        self.indexed += len(fresh)
        latest = list({change[0].topic_id: change for change in fresh}.values())
        vectors = self.embedder.embed([topic_text(event.title, event.summary) for event, _ in latest])
        await self.memory.add_changes(latest, vectors)
