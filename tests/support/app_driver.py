"""Drives one space of memories through the fold, with places in both logs and clocks that the test moves."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from models import events
from models.app.state import KeptMemory
from models.entities import APP
from models.events.erase import SpaceErased, SpaceErasure, SpaceSessionErased
from models.policy import Policy
from models.policy.app import AppPolicy
from tests.support.entity_driver import MemoryDriver

THINGS = (
    *("a red bicycle", "the piano lessons", "green curtains", "a tent for Norway", "the night train", "oat bread"),
    *("a wooden boat", "the blue kettle", "Tuesday yoga", "a garden shed", "the chess club", "sourdough"),
    "a tall lamp",
)
"""What nobody would take for one another."""


class Space(MemoryDriver):
    """One space: commands get the next offset and a second each, ended conversations the next place of `turns.v1`."""

    def __init__(self, policy: Policy | None = None, *, app: str = "shop", user: str = "", **apps: object) -> None:
        policy = policy or Policy(apps=msgspec.convert(apps, AppPolicy))
        super().__init__(APP, events.AppMemoriesChanged, policy, events.space_key(app, user), app_id=app, user_id=user)
        self.told: dict[int, events.AppMemoryChanged] = {}
        self.most = self.policy.apps.most
        self._ends = 0

    def put(self, event: events.SpaceEvent | SpaceErasure) -> list[events.SpaceOutput]:
        """Fold one event; gives its outputs. A reader of the compacted topic never sees more than there may be."""
        self.now += timedelta(seconds=1)
        outputs = super().put(event)
        for output in outputs:
            if isinstance(output, events.AppMemoryChanged):
                self.told[output.slot] = output
            assert len(self.active) <= self.most
        return outputs

    def end(self, **more: Any) -> list[events.SpaceOutput]:
        """A conversation ends; gives the outputs."""
        return self.put(self.ended(**more))

    def ended(self, said: str = "", session: str = "", **more: Any) -> events.ConversationEnded:
        """The next end of a conversation, by default with a decision of its own."""
        number = self._ends
        self._ends += 1
        again = f" for the {number // len(THINGS)}th time" if number >= len(THINGS) else ""
        said = said or f"I decided to buy {THINGS[number % len(THINGS)]}{again}."
        owner = {"app_id": self.ids["app_id"], "user_id": self.ids["user_id"] or "anna"}
        more.setdefault("space", "user" if self.ids["user_id"] else "app")
        return ended(said, session or f"s{number}", events.Position("turns", 0, number), self.now, **(owner | more))

    def fill(self, count: int | None = None) -> None:
        """As many conversations end as there may be memories, or the given number."""
        for _ in range(self.policy.apps.most if count is None else count):
            self.end()

    def propose(self, content: str = "User prefers tea.", request: int = 0, **more: Any) -> list[events.SpaceOutput]:
        """A slower stage answers with a memory, by default to the latest request."""
        fields: dict[str, Any] = {"timestamp": self.now, "content": content, "made_by": "llm"} | self.ids | more
        return self.put(events.MemoryProposed(request=request or self.state.head.requests, **fields))

    def decide(
        self, action: str = "delete", target: int = 1, request: int = 0, **more: Any
    ) -> list[events.SpaceOutput]:
        """A slower stage decides on a compaction, by default on the latest request."""
        fields: dict[str, Any] = {"timestamp": self.now, "reason": "old", "decided_by": "llm"} | self.ids | more
        decided = events.CompactionDecided(
            request=request or self.state.head.requests, action=action, target_memory_id=target, **fields
        )
        return self.put(decided)

    def erase(self, *session_ids: str) -> list[events.SpaceOutput]:
        """Sessions are erased, or without any the space; gives the outputs."""
        fields: dict[str, Any] = {"timestamp": self.now, "request_id": "e"} | self.ids
        if session_ids:
            return self.put(SpaceSessionErased(session_ids=list(session_ids), **fields))
        return self.put(SpaceErased(**fields))

    def command(self, kind: type[Any], **fields: Any) -> events.AppMemoryAudited:
        """An admin's command; gives what the audit says of it."""
        more = {"timestamp": self.now, "request_id": f"r{self.offset}", "by": "root"} | self.ids | fields
        (audited,) = [output for output in self.put(kind(**more)) if isinstance(output, events.AppMemoryAudited)]
        return audited

    @property
    def due(self) -> datetime | None:
        """When something is due in it."""
        due = self.state.next_due(self.state.head, self.state.parts.count, self.policy)
        return None if due is None else due.at

    @property
    def active(self) -> dict[int, events.AppMemoryChanged]:
        """Number → memory, as a reader of the compacted topic has them."""
        return {memory.memory_id: memory for memory in self.told.values() if memory.active}

    @property
    def memories(self) -> dict[int, KeptMemory]:
        """Number → memory, as the state has them."""
        return {memory.memory_id: memory for memory in self.state.memories.values()}

    @property
    def contents(self) -> list[str]:
        """Of all memories, by number."""
        return [memory.content for _, memory in sorted(self.active.items())]

    @property
    def compactions(self) -> list[events.AppMemoriesCompacted]:
        """Every compaction."""
        return self.of(events.AppMemoriesCompacted)

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Session and reason of every conversation of which nothing was made."""
        return [(output.session_id, output.reason) for output in self.of(events.AppMemorySkipped)]

    @property
    def asked_for_memories(self) -> list[events.MemoryRequested]:
        """Every request for a memory."""
        return self.of(events.MemoryRequested)


def ended(said: str, session: str, source: events.Position, at: datetime, **more: Any) -> events.ConversationEnded:
    """An end as the sessions role forwards it, with one notable sentence of its user."""
    notables = [events.NotableSentence(events.NotableKind.DECISION, events.Role.USER, 3, said, 0.8)]
    fields: dict[str, Any] = {
        "id": f"{session}@{source.partition}-{source.offset}",
        "app_id": "shop",
        "user_id": "anna",
        "space": "app",
        "reason": "done",
        "first_turn": 0,
        "last_turn": 5,
        "turn_count": 6,
        "summary": said,
        "key_topics": [],
        "notables": notables,
        "turns": [],
        "started_at": at - timedelta(minutes=10),
        "ended_at": at,
    }
    return events.ConversationEnded(session_id=session, source=source, timestamp=at, **(fields | more))


def causes(outputs: Sequence[events.SpaceOutput]) -> list[tuple[int, str]]:
    """What became of which memory, in order."""
    return [(output.memory_id, output.cause) for output in outputs if isinstance(output, events.AppMemoryChanged)]
