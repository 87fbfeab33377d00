"""Outputs of the fold of app memory, with deterministic ids."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from models.app.energy import level_units
from models.app.rules import CompactionDecision
from models.app.state import KeptMemory, SpaceState
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
from models.events.base import Position
from models.events.erase import SpaceErasure
from models.policy.app import AppPolicy
from models.state import entity
from models.state.entity import same_fields

_DIGITS = 6
"""Of units that are told: sums of fractions would else end in noise."""


class Made(Struct, frozen=True, gc=False):
    """A decision on a compaction, who made it, and why another one's could not be used."""

    decision: CompactionDecision
    decided_by: str
    fallback: str = ""


class AppEmission(entity.Emission[SpaceOutput]):
    """Outputs of one event, in order.

    Attributes:
        now: The broker's time of the event's record.
        owner: App and user whose space it is; an app's own names no user.
    """

    def __init__(
        self, state: SpaceState, event: SpaceEvent | SpaceErasure, position: Position, now: datetime, policy: AppPolicy
    ) -> None:
        of_user = not isinstance(event, ConversationEnded) or event.space == "user"
        app_id, user_id = self.owner = event.app_id, event.user_id if of_user else ""
        super().__init__(space_key(app_id, user_id), app_id, user_id, position, event.timestamp)
        self.now = now
        self._state = state
        self._policy = policy
        self._space: Space = "user" if user_id else "app"

    def memory(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """A memory came or changed."""
        self._changed(slot, memory, cause, (memory.session_id, memory.user_id), active=True)

    def gone(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """A memory went: its text is not emitted again, nor, of an erased one, whose it was."""
        named = ("", "") if cause == "erased" else (memory.session_id, memory.user_id)
        empty = KeptMemory(
            memory_id=memory.memory_id,
            content="",
            importance=0.0,
            tags=(),
            session_id="",
            user_id="",
            last_turn=0,
            related=(),
            created_at=memory.created_at,
            updated_at=max(memory.updated_at, self.timestamp),
            made_by="",
        )
        self._changed(slot, empty, cause, named, active=False)

    def _changed(
        self, slot: int, memory: KeptMemory, cause: MemoryCause, named: tuple[str, str], *, active: bool
    ) -> None:
        self.outputs.append(
            AppMemoryChanged(
                **self.common("app_memory_changed", *named),
                **same_fields(memory, AppMemoryChanged),
                space=self._space,
                slot=slot,
                active=active,
                cause=cause,
                related_conversations=list(memory.related),
            )
        )

    def skipped(self, ended: ConversationEnded, reason: str) -> None:
        """Emit that no memory was made of a conversation."""
        common = self.common("app_memory_skipped", ended.session_id, ended.user_id)
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
                **self.common("app_memories_compacted", *_named(new)),
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
                **self.common("memory_requested", ended.session_id, ended.user_id),
                space=self._space,
                request=request,
                summary=summary,
                notables=ended.notables,
                turns=ended.turns,
                earlier=ended.earlier,
            )
        )

    def ask_for_compaction(
        self, request: int, memories: Sequence[MemoryToKeep], new: MemoryToKeep, named: KeptMemory | None
    ) -> None:
        """A slower stage is to decide which memory goes."""
        common = self.common("compaction_requested", *_named(named))
        self.outputs.append(
            CompactionRequested(**common, space=self._space, request=request, memories=list(memories), new_memory=new)
        )

    def audited(self, command: AdminCommand, memory_id: int | None, outcome: str, count: int) -> None:
        """An admin did something."""
        self.outputs.append(
            AppMemoryAudited(
                **self.common("app_memory_audited"),
                space=self._space,
                action=str(command.__struct_config__.tag),
                memory_id=memory_id,
                by=command.by,
                request_id=command.request_id,
                outcome=outcome,
                count=count,
            )
        )

    def progress(self) -> None:
        """Emit the progress of the space."""
        head, energy = self._state.head, self._policy.energy
        self.outputs.append(
            AppMemoriesChanged(
                **self.common("app_memories_changed"),
                space=self._space,
                **same_fields(head, AppMemoriesChanged, "spent_units"),
                memories=len(self._state.memories),
                waiting=self._state.waiting,
                energy_units=round(level_units(head.energy, self.now, energy), _DIGITS),
                energy_capacity_units=energy.capacity_units,
                spent_units=round(head.spent_units, _DIGITS),
            )
        )


def _named(memory: KeptMemory | None) -> tuple[str, str]:
    """Session and user of a memory, so that an erasure of them finds what holds its text."""
    return (memory.session_id, memory.user_id) if memory is not None else ("", "")
