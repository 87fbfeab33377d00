"""CrewAI: a crew's memory in Turntide, without a model and an embedder of its own (extra `crewai`)."""

from __future__ import annotations

from typing import Any

from crewai.memory.types import MemoryMatch, MemoryRecord
from crewai.memory.unified_memory import Memory as CrewMemory
from pydantic import PrivateAttr

from turntide.memory import Memory


class TurntideCrewMemory(CrewMemory):
    """`Crew(memory=TurntideCrewMemory.of(memory, "research-crew"))`: what agents find out becomes turns of the crew.

    CrewAI's storage interface hands over vectors only, of an embedder that Turntide does not share; so this replaces
    its memory as a whole. There are no scopes, categories and importances: what is like the question is found. Single
    records are neither deleted nor changed: `reset` erases all that the crew remembers.
    """

    _turntide: Memory = PrivateAttr()
    _user_id: str = PrivateAttr()

    @classmethod
    def of(cls, memory: Memory, user_id: str) -> TurntideCrewMemory:
        """Memory of a crew.

        Args:
            memory: Where it is kept.
            user_id: Under which name: crews that share it share what they remember.
        """
        made = cls(storage=_NoStorage())
        made._turntide, made._user_id = memory, user_id
        return made

    def extract_memories(self, content: str) -> list[str]:
        """All of it: what is worth keeping is Turntide's to find."""
        return [content] if content.strip() else []

    def remember(self, content: str, *_scoped: Any, **_more: Any) -> MemoryRecord | None:
        """Remember a text; it is found on return."""
        self.remember_many([content])
        return None if self.read_only else MemoryRecord(content=content)

    def remember_many(
        self, contents: list[str], *_scoped: Any, agent_role: str | None = None, **_more: Any
    ) -> list[MemoryRecord]:
        """Remember texts; they are found on return."""
        if contents and not self.read_only:
            said = [{"role": "assistant", "content": each} for each in contents]
            session_id = f"crew-{self._user_id}-{agent_role}" if agent_role else None
            self._turntide.add(said, user_id=self._user_id, session_id=session_id, wait="visible")
        return []

    def recall(self, query: str, *_scoped: Any, limit: int = 10, **_more: Any) -> list[MemoryMatch]:
        """Return items similar to the question, best first."""
        found = self._turntide.search(query[:_MOST_CHARS], user_id=self._user_id, limit=limit)
        return [
            MemoryMatch(record=MemoryRecord(content=hit.turn.content, created_at=hit.turn.timestamp), score=hit.score)
            for hit in found.turns
        ]

    def reset(self, scope: str | None = None) -> None:  # noqa: ARG002 - there are none
        """Erase all that the crew remembers, everywhere."""
        self._turntide.forget(user_id=self._user_id, wait=True)


_MOST_CHARS = 8_000


class _NoStorage:
    """Keeps CrewAI from opening a store of its own; nothing asks it."""
