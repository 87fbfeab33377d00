"""Long-term memories of a project without its other parts, and what was told of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from models.events.project import ItemCause, ProjectMemoryEdited, RelationshipSet
from models.events.project_items import MemorySource, MemoryType, ProjectMemory
from models.policy.project import LongTermPolicy
from models.project.kept_memories import New
from models.project.long_term import LongTerm
from models.project.shards import MemoryCounts, ShardedMemories, StoredMemory
from models.project.store import Slots, Store
from models.state.parts import Parts
from tests.support.session_driver import NOON

KEY = "project:shop/web"
DAY = timedelta(days=1)


class HeldMemories(ShardedMemories):
    """Memories of a new project, and beside them what is kept and listed now."""

    def __init__(self) -> None:
        root = Parts({})
        super().__init__(Store(KEY, lambda _entity: None, root), Slots(root, {}), MemoryCounts())
        self.kept: dict[str, StoredMemory] = {}
        self.lists: dict[str, list[str]] = {}

    def put(self, kept: StoredMemory) -> None:
        """Keep a memory."""
        super().put(kept)
        self.kept[kept.memory.id] = kept

    def drop(self, memory_id: str) -> None:
        """Let go of it."""
        super().drop(memory_id)
        self.kept.pop(memory_id, None)

    def set_subject(self, subject: str, ids: list[str]) -> None:
        """Note a list."""
        super().set_subject(subject, ids)
        self.lists[subject] = ids


class Project:
    """One project's long-term memories, with a clock."""

    def __init__(self, policy: LongTermPolicy | None = None) -> None:
        self.policy = policy or LongTermPolicy()
        self.memories = HeldMemories()
        self.now = NOON
        self.told: list[tuple[str, ItemCause]] = []

    def long_term(self, now: datetime | None = None) -> LongTerm:
        """As of the clock."""
        return LongTerm(self.memories, self._tell, KEY, self.policy, now or self.now)

    def _tell(self, kept: StoredMemory, cause: ItemCause, _gone: bool) -> None:
        self.told.append((kept.memory.id, cause))

    def say(  # what the tests vary
        self,
        content: str,
        day: float = 0.0,
        subject: str = "",
        *,
        memory_type: MemoryType = MemoryType.DECISION,
        session: str = "s1",
        user: str = "ann",
        tags: Sequence[str] = (),
        until: float | None = None,
        confidence: float = 0.8,
    ) -> str:
        """Somebody said something on a day; its id. The clock moves on by a minute."""
        self.now += timedelta(minutes=1)
        said_at = NOON + day * DAY
        source = MemorySource(
            conversation_id=session, turn=int(day * 1_000), role="user", user_id=user, said_at=said_at
        )
        new = New(
            type=memory_type,
            content=content,
            subject=subject,
            tags=list(tags),
            confidence=confidence,
            source=source,
            valid_from=said_at,
            valid_until=None if until is None else NOON + until * DAY,
        )
        return self.long_term().add(new)[0]

    def edit(self, memory_id: str, **fields: object) -> tuple[str, str]:
        """Somebody puts a memory right."""
        self.now += timedelta(minutes=1)
        known = {"app_id": "shop", "project_id": "web", "timestamp": self.now, "memory_id": memory_id}
        return self.long_term().edit(ProjectMemoryEdited(**known, **fields))  # type: ignore[arg-type]

    def relate(self, source: str, target: str, relation: str, strength: float | None = 1.0) -> tuple[str, str]:
        """Somebody relates two memories."""
        self.now += timedelta(minutes=1)
        command = RelationshipSet(
            app_id="shop", project_id="web", timestamp=self.now,
            source_id=source, target_id=target, relation=relation, strength=strength,
        )  # fmt: skip
        return self.long_term().relate(command)

    def memory(self, memory_id: str) -> ProjectMemory:
        """A memory that is there."""
        return self.memories.kept[memory_id].memory

    def intervals(self) -> list[tuple[str, float, float | None]]:
        """Content and days from when until when, by time."""
        memories = [kept.memory for kept in self.memories.kept.values()]
        found = [
            (
                each.content,
                (each.valid_from - NOON) / DAY,
                None if each.valid_until is None else (each.valid_until - NOON) / DAY,
            )
            for each in memories
        ]
        return sorted(found, key=lambda each: (each[1], each[0]))

    def edges(self) -> set[tuple[str, str, str]]:
        """Contents at both ends, and the name between."""
        return {
            (kept.memory.content, edge.type, self.memory(edge.target_id).content)
            for kept in self.memories.kept.values()
            for edge in kept.memory.relationships
        }
