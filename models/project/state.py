"""State of one project's memory: its parts, reading and writing.

The root entity is under the project's key; memories and conversations are further entities (`models.project.store`).

| part | content | written |
|---|---|---|
| `head` | counters, seen offsets, progress of a consolidation | with each change |
| `r` | outcomes of commands by hand | with each command |
| `c:<digest>` | slot of a conversation, and its last activity | by each of its turns |
| `q` | inactive conversations with messages in the state | when one becomes inactive or active |
| `e:<id>` | an episode | when it changes |
| `y0` … | confidences of pending facts (`models.project.shards`) | when one changes |
| `f:<kind>/<n>` | free slots (`models.project.store.Slots`) | when one is freed or taken |

All parts of a batch are written together, so they are always consistent. An unknown or erased project has no parts.
"""

from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct

from models.events import DeedResult, ProjectEpisode
from models.events.project_items import ConsolidationFigures, ProjectConversation
from models.policy import Policy
from models.policy.project import ProjectPolicy
from models.project.shards import MemoryCounts, PendingFactStore, ShardedMemories
from models.project.short_term import ConversationHead, ConversationState
from models.project.store import LAYOUT, Slots, Store
from models.state.entity import HEAD, CountParts, DueEntity, EntityState, Read, digest_of, encode, write_part

Cause = Literal["scheduled", "asked"]


class Consolidation(Struct, kw_only=True):
    """A consolidation in progress, changed in place with each step. Its counters count memories."""

    run: int
    cause: Cause
    started_at: datetime
    shelf: int = 0
    """Shard of the next memory (the stored field name differs) …"""
    after: str = ""
    """… which follows this memory."""
    looked_at: int = 0
    decay_updated: int = 0
    archived: int = 0
    archived_ids: list[str] = []
    tokens_reclaimed: int = 0
    """Tokens of the archived memories."""
    displaced: int = 0


class AskedRun(Struct, frozen=True, array_like=True):
    """A requested consolidation that is not finished: request and caller for its result."""

    request_id: str
    by: str


class ProjectHead(Struct, array_like=True):
    """Counters of one project. Policy and number of partitions bound its size."""

    version: int = LAYOUT.version
    app_id: str = ""
    project_id: str = ""
    born: str = ""
    born_at: datetime | None = None
    """Broker time of the first record."""
    revision: int = 0
    seen: dict[int, tuple[int, bytes]] = {}
    """Partition of `turns.v1` → offset of the last record with events for the project, and short ids of these."""
    turn_count: int = 0
    memories: MemoryCounts = msgspec.field(default_factory=MemoryCounts)
    conversations: int = 0
    chunks: int = 0
    episodes: int = 0
    pending: int = 0
    slots: dict[str, tuple[int, int]] = {}
    release_from: int = 0
    """Turn count of the project at which the first of `q` is due; 0 for none."""
    consolidated_at: datetime | None = None
    runs: int = 0
    """Number of consolidations of all time, including one in progress."""
    run: Consolidation | None = None
    """The consolidation in progress."""
    asked: list[AskedRun] = []
    accessed: str = ""
    """Last counted id of a record of accesses that needs more than one write."""
    consolidated: ConsolidationFigures | None = None
    """Figures of the last consolidation."""
    since: int = -1
    erased_offset: int = -1
    """Offset of the last record that erased a session: earlier requests may quote it."""

    @property
    def items(self) -> int:
        """Number of items in the state."""
        return self.memories.count + self.conversations + self.chunks + self.episodes + self.pending

    def due(self, policy: ProjectPolicy) -> datetime | None:
        """Time at which a consolidation is due or continues; None if it could change nothing."""
        if self.run is not None:
            return self.run.started_at
        last = self.consolidated_at or self.born_at
        if last is None or not (self.memories.count > self.memories.archived or self.pending):
            return None
        return last + policy.consolidation.every


EVENT_STATE_BYTES: Final = 1024 * 1024
"""Limit of changelog bytes for one event that may change any number of items; beyond it:

| event | the remaining items |
|---|---|
| an erasure, accesses | follow in the event's next steps, each a separate write (`models.project.fold.fold_step`) |
| a consolidation | follow with the project's next events |
| statements of one message | are ignored |
| an import | has no limit but that of its record |
"""
CONVERSATION: Final = "conversation"
CHUNK: Final = "chunk"
EPISODE: Final = "episode"


class Spoken(Struct, frozen=True, array_like=True, gc=False):
    """Slot of a conversation, and the project's turn count at its last message."""

    turn_count: int
    slot: int


class KeptEpisode(Struct, frozen=True, array_like=True):
    """An episode with its slot."""

    episode: ProjectEpisode
    slot: int


class ProjectState(EntityState[ProjectHead]):
    """Working copy of one project. `models.project.fold.fold` consumes it.

    Attributes:
        memories: Long-term memories.
        pending: Pending facts.
        slots: Slots of items.
    """

    layout = LAYOUT
    head_type = ProjectHead
    gauges = ("projects", "project_memories")

    def __init__(self, key: str, read: Read, policy: Policy) -> None:
        super().__init__(key, read, policy)
        self._store = Store(key, read, self.parts)
        self._policy = policy.projects
        self._begin()

    def _begin(self) -> None:
        self._written_before = 0
        self.slots = Slots(self.parts, self.head.slots)
        self.memories = ShardedMemories(self._store, self.slots, self.head.memories)
        self.pending = PendingFactStore(self._store, self.slots)
        self._conversations: dict[str, ConversationState] = {}

    def changed(self) -> dict[str, dict[str, bytes | None]]:
        """Entity → part → bytes, None to delete; empty for a project that stays unknown."""
        self.changed_parts()
        return self._store.changes()

    @property
    def written_bytes(self) -> int:
        """Bytes written so far, without the head."""
        return self._store.written_bytes

    def begin_event(self) -> None:
        """Start a new event: reset the count of its written bytes."""
        self.memories.dropped.clear()
        self._written_before = self._store.written_bytes

    @property
    def is_full(self) -> bool:
        """Whether the event reached `EVENT_STATE_BYTES`: further items wait or are ignored."""
        return self._store.written_bytes - self._written_before > EVENT_STATE_BYTES

    @staticmethod
    def figures(head: ProjectHead, count: CountParts) -> tuple[int, ...]:  # noqa: ARG004 - the head says it
        """One project, and the number of its memories."""
        return 1, head.memories.count

    @staticmethod
    def next_due(head: ProjectHead, count: CountParts, policy: Policy) -> DueEntity | None:  # noqa: ARG004 - likewise
        """The next consolidation, or the next step of the one in progress."""
        at = head.due(policy.projects)
        looked_at = 0 if head.run is None else head.run.looked_at
        return None if at is None else DueEntity(at, head.app_id, head.project_id, (head.revision, looked_at))

    def erase_step(self) -> bool:
        """Delete everything, including counters; the next event creates a new project. False if more steps are needed.

        No other event may be folded until it is finished, since the remaining parts are inconsistent.
        """
        if self.known:
            self.parts.put(HEAD, encode(self.head))
        done = self._store.erase([name[2:] for name in self.parts.names("c:")], EVENT_STATE_BYTES)
        if done:
            self.head = ProjectHead()
        self._begin()
        return done

    # --- outcomes of commands by hand

    @property
    def results(self) -> list[DeedResult]:
        """The latest outcomes, newest last."""
        return LAYOUT.part(self.parts, "r", list[DeedResult]) or []

    def unname_results(self) -> bool:
        """Remove ids of missing items, which may be erased, from outcomes; waiting callers still find their outcome.

        Reasons of refusals are removed too, since they may quote anything.

        Returns:
            Whether any outcome changed.
        """
        known, kinds = self.results, (self.memories.get, self.pending.get, self.conversation)
        there = {each.item_id for each in known if any(of(each.item_id) is not None for of in kinds)}
        kept = [
            msgspec.structs.replace(each, item_id=each.item_id if each.item_id in there else "", detail="")
            for each in known
        ]
        if kept != known:
            self.parts.put("r", encode(kept))
        return kept != known

    def answer(self, result: DeedResult) -> None:
        """Store an outcome, unless the project is empty: a request must not leave state of an unknown name."""
        if not (self.known or self.head.items):
            return
        kept = [*self.results, result][-self._policy.long_term.results :]
        self.parts.put("r", encode(kept))

    # --- conversations

    def conversation(self, conversation_id: str) -> ConversationState | None:
        """A conversation; None if it is not in the state."""
        return self._conversation(digest_of(conversation_id))

    def _conversation(self, digest: str) -> ConversationState | None:
        state = self._conversations.get(digest)
        if state is None and (state := ConversationState.load(self._store.conversation(digest))) is not None:
            self._conversations[digest] = state
        return state

    def begin(self, conversation: ProjectConversation, user_id: str) -> ConversationState:
        """Create a conversation."""
        digest = digest_of(conversation.id)
        head = ConversationHead(conversation, self.slots.take(CONVERSATION), user_id)
        state = self._conversations[digest] = ConversationState(self._store.conversation(digest), head)
        self.head.conversations += 1
        self.spoken(state)
        return state

    def spoken(self, state: ConversationState) -> None:
        """Record activity in a conversation: it is stored as active."""
        digest = digest_of(state.head.conversation.id)
        self.parts.put(f"c:{digest}", encode(Spoken(self.head.turn_count, state.head.slot)))
        if self.head.release_from:
            silent = self._silent()
            kept = [each for each in silent if each[0] != digest]
            if len(kept) < len(silent):
                self._keep_silent(kept)

    def fell_silent(self, state: ConversationState) -> None:
        """Record that a conversation became inactive: its messages are released after further turns of the project."""
        digest = digest_of(state.head.conversation.id)
        silent = self._silent()
        if state.head.conversation.recent and digest not in {name for name, _ in silent}:
            self._keep_silent([*silent, (digest, self.head.turn_count)])

    def released(self) -> ConversationState | None:
        """The next conversation whose messages are released now; one a call."""
        if not self.head.release_from or self.head.turn_count < self.head.release_from:
            return None
        (digest, _), *rest = self._silent()
        self._keep_silent(rest)
        return self._conversation(digest)

    def longest_silent(self, *, but: str) -> ConversationState | None:
        """The least recently active conversation other than `but`."""
        others = [name for name in self.parts.names("c:") if name != f"c:{digest_of(but)}"]
        spoken = [(each, name) for name in others if (each := LAYOUT.part(self.parts, name, Spoken)) is not None]
        if not spoken:
            return None
        _, name = min(spoken, key=lambda each: (each[0].turn_count, each[0].slot))
        return self._conversation(name[2:])

    def drop(self, state: ConversationState) -> None:
        """Remove a conversation with its messages and chunks, and free their slots."""
        head, digest = state.head, digest_of(state.head.conversation.id)
        for _, slot in head.chunks:
            self.slots.give(CHUNK, slot)
        self.slots.give(CONVERSATION, head.slot)
        self.head.chunks -= len(head.chunks)
        self.head.conversations -= 1
        state.drop()
        self.parts.drop(f"c:{digest}")
        self._keep_silent([each for each in self._silent() if each[0] != digest])
        del self._conversations[digest]

    def _silent(self) -> list[tuple[str, int]]:
        return LAYOUT.part(self.parts, "q", list[tuple[str, int]]) or []

    def _keep_silent(self, silent: list[tuple[str, int]]) -> None:
        write_part(self.parts, "q", silent)
        self.head.release_from = silent[0][1] + self._policy.short_term.retention_turns if silent else 0

    # --- episodes

    def episodes(self) -> list[ProjectEpisode]:
        """Episodes, oldest first."""
        return [kept.episode for name in sorted(self.parts.names("e:")) if (kept := self.episode(name[2:]))]

    def episode(self, episode_id: str) -> KeptEpisode | None:
        """An episode with its slot; None if it does not exist."""
        return LAYOUT.part(self.parts, f"e:{episode_id}", KeptEpisode)

    def put_episode(self, episode: ProjectEpisode) -> KeptEpisode:
        """Store an episode, new or changed."""
        known = self.episode(episode.id)
        self.head.episodes += known is None
        kept = KeptEpisode(episode, self.slots.take(EPISODE) if known is None else known.slot)
        self.parts.put(f"e:{episode.id}", encode(kept))
        return kept

    def drop_episode(self, episode_id: str) -> KeptEpisode | None:
        """Remove an episode and return it."""
        known = self.episode(episode_id)
        if known is not None:
            self.head.episodes -= 1
            self.parts.drop(f"e:{episode_id}")
            self.slots.give(EPISODE, known.slot)
        return known
