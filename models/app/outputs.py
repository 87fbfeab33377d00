"""Outputs of the fold of app memory, with deterministic ids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from models.app.energy import level_units
from models.app.memory import KeptMemory
from models.app.rules import Decision
from models.app.state import SpaceState
from models.events.app import (
    AdminCommand,
    AppMemoriesChanged,
    AppMemoriesCompacted,
    AppMemoryAudited,
    AppMemoryChanged,
    AppMemorySkipped,
    CompactionRequested,
    ConversationEnded,
    MemoryCause,
    MemoryRequested,
    MemoryToKeep,
    Space,
    SpaceEvent,
    SpaceOutput,
    space_key,
)
from models.events.base import OutputFields, Position
from models.events.erase import SpaceErasure
from models.events.ids import event_id
from models.policy.app import AppPolicy

_DIGITS = 6
"""Of units that are told: sums of fractions would else end in noise."""


class Made(Struct, frozen=True, gc=False):
    """A decision on a compaction, who made it, and why another one's could not be used."""

    decision: Decision
    decided_by: str
    fallback: str = ""


class Emission:
    """Outputs of one event, in order.

    Attributes:
        outputs: What was emitted so far.
        now: The broker's time of the event's record.
        timestamp: The event's time.
    """

    def __init__(
        self, state: SpaceState, event: SpaceEvent | SpaceErasure, position: Position, now: datetime, policy: AppPolicy
    ) -> None:
        self.outputs: list[SpaceOutput] = []
        self.now = now
        self.timestamp = event.timestamp
        self._state = state
        self._position = position
        self._policy = policy
        self._app_id = event.app_id
        of_user = not isinstance(event, ConversationEnded) or event.space == "user"
        self._user_id = event.user_id if of_user else ""
        self._key = space_key(self._app_id, self._user_id)
        self._ordinals: dict[str, int] = {}

    @property
    def owner(self) -> tuple[str, str]:
        """App and user whose space it is; an app's own names no user."""
        return self._app_id, self._user_id

    def memory(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """A memory came or changed."""
        self.outputs.append(
            AppMemoryChanged(
                **self._common("app_memory_changed", memory.session_id, memory.user_id),
                space=self._space,
                slot=slot,
                memory_id=memory.memory_id,
                active=True,
                cause=cause,
                content=memory.content,
                importance=memory.importance,
                tags=list(memory.tags),
                related_conversations=list(memory.related),
                created_at=memory.created_at,
                updated_at=memory.updated_at,
                pinned=memory.pinned,
                shared_with=list(memory.shared_with),
                conflicts_with=list(memory.conflicts_with),
                made_by=memory.made_by,
            )
        )

    def gone(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """A memory went: its text is not told again, nor, of an erased one, whose it was."""
        named = ("", "") if cause == "erased" else (memory.session_id, memory.user_id)
        self.outputs.append(
            AppMemoryChanged(
                **self._common("app_memory_changed", *named),
                space=self._space,
                slot=slot,
                memory_id=memory.memory_id,
                active=False,
                cause=cause,
                content="",
                importance=0.0,
                tags=[],
                related_conversations=[],
                created_at=memory.created_at,
                updated_at=max(memory.updated_at, self.timestamp),
                pinned=False,
                shared_with=[],
                conflicts_with=[],
                made_by="",
            )
        )

    def skipped(self, ended: ConversationEnded, reason: str) -> None:
        """Nothing was made of a conversation."""
        common = self._common("app_memory_skipped", ended.session_id, ended.user_id)
        self.outputs.append(AppMemorySkipped(**common, space=self._space, reason=reason))

    def compacted(
        self,
        made: Made,
        gone: int,
        before: Sequence[MemoryToKeep],
        after: Sequence[MemoryToKeep],
        new: KeptMemory | None,
    ) -> None:
        """One memory went, or went into another; the event names the conversation of the new one."""
        edits = made.decision.action == "edit"
        action: Literal["delete", "edit"] = "edit" if edits else "delete"
        self.outputs.append(
            AppMemoriesCompacted(
                **self._common("app_memories_compacted", *_named(new)),
                space=self._space,
                action=action,
                target_memory_id=made.decision.target_memory_id,
                merged_memory_id=gone if edits else None,
                new_content=made.decision.new_content if edits else None,
                reason=made.decision.reason,
                decided_by=made.decided_by,
                fallback=made.fallback,
                before=list(before),
                after=list(after),
            )
        )

    def ask_for_memory(self, request: int, ended: ConversationEnded, summary: str) -> None:
        """A slower stage is to make a memory of a conversation."""
        self.outputs.append(
            MemoryRequested(
                **self._common("memory_requested", ended.session_id, ended.user_id),
                space=self._space,
                request=request,
                summary=summary,
                notables=ended.notables,
                turns=ended.turns,
            )
        )

    def ask_for_compaction(
        self, request: int, memories: Sequence[MemoryToKeep], new: MemoryToKeep, named: KeptMemory | None
    ) -> None:
        """A slower stage is to decide which memory goes."""
        common = self._common("compaction_requested", *_named(named))
        self.outputs.append(
            CompactionRequested(**common, space=self._space, request=request, memories=list(memories), new_memory=new)
        )

    def audited(self, command: AdminCommand, memory_id: int | None, outcome: str, count: int) -> None:
        """An admin did something."""
        self.outputs.append(
            AppMemoryAudited(
                **self._common("app_memory_audited"),
                space=self._space,
                action=str(command.__struct_config__.tag),
                memory_id=memory_id,
                by=command.by,
                request_id=command.request_id,
                outcome=outcome,
                count=count,
            )
        )

    def standing(self) -> None:
        """How far the space is."""
        head, energy = self._state.head, self._policy.energy
        self.outputs.append(
            AppMemoriesChanged(
                **self._common("app_memories_changed"),
                space=self._space,
                memories=len(self._state.memories),
                created=head.created,
                compactions=head.compactions,
                skipped=head.skipped,
                edited=head.edited,
                waiting=self._state.waiting,
                energy_units=round(level_units(head.energy, self.now, energy), _DIGITS),
                energy_capacity_units=energy.capacity_units,
                spent_units=round(head.spent_units, _DIGITS),
                uninstalled=head.uninstalled,
                results=list(head.results),
            )
        )

    @property
    def _space(self) -> Space:
        return "user" if self._user_id else "app"

    def _common(self, kind: str, session_id: str = "", user_id: str = "") -> OutputFields:
        ordinal = self._ordinals[kind] = self._ordinals.get(kind, -1) + 1
        return {
            "id": event_id(kind, self._key, self._position, ordinal),
            "session_id": session_id,
            "user_id": self._user_id or user_id,
            "app_id": self._app_id,
            "timestamp": self.timestamp,
            "source": self._position,
        }


def _named(memory: KeptMemory | None) -> tuple[str, str]:
    """Session and user of a memory, so that an erasure of them finds what holds its text."""
    return (memory.session_id, memory.user_id) if memory is not None else ("", "")
