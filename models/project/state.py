"""The state of one project's memory: what it consists of, how it is read and written.

The root entity, under the project's key; memories and conversations lie beside it (`models.project.store`).

| part | content | written |
|---|---|---|
| `head` | counters, what was seen, how far a consolidation is | with each change |
| `r` | outcomes of commands by hand | with each |
| `c:<digest>` | a conversation's place, and when it was spoken in last | by each of its turns |
| `q` | conversations that are not active and have messages at hand | when one falls silent, or goes on |
| `e:<id>` | episodes, one each | when one changes |
| `y0` … | pending facts' confidences (`models.project.shards`) | when one changes |
| `f:<kind>/<n>` | free places (`models.project.store.Slots`) | when one is freed or taken |

All parts of one batch are written together, so they always fit each other. A project that was erased, or never was, has
none.
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
    """A consolidation that is under way; changed in place with each step. Counts memories."""

    run: int
    cause: Cause
    started_at: datetime
    shelf: int = 0
    """The next memory to look at is in this shard (its stored name) …"""
    after: str = ""
    """… behind this one."""
    looked_at: int = 0
    decay_updated: int = 0
    archived: int = 0
    archived_ids: list[str] = []
    tokens_reclaimed: int = 0
    """Of the archived."""
    displaced: int = 0


class AskedRun(Struct, frozen=True, array_like=True):
    """A consolidation that somebody asked for and that is not done: what is answered then."""

    request_id: str
    by: str


class ProjectHead(Struct, array_like=True):
    """Counters of one project. Sizes are bounded by the policy and the number of partitions."""

    version: int = LAYOUT.version
    app_id: str = ""
    project_id: str = ""
    born: str = ""
    born_at: datetime | None = None
    """The broker's time of the first record."""
    revision: int = 0
    seen: dict[int, tuple[int, bytes]] = {}
    """Partition of `turns.v1` → offset of the last record of which something came, and short ids of what came of it."""
    turn_count: int = 0
    memories: MemoryCounts = msgspec.field(default_factory=MemoryCounts)
    conversations: int = 0
    chunks: int = 0
    episodes: int = 0
    pending: int = 0
    slots: dict[str, tuple[int, int]] = {}
    release_from: int = 0
    """Turns of the project from which on the first of `q` is due; 0 for none."""
    consolidated_at: datetime | None = None
    runs: int = 0
    """Consolidations of all time, one under way among them."""
    run: Consolidation | None = None
    """The one under way."""
    asked: list[AskedRun] = []
    accessed: str = ""
    """Of a record of accesses that takes more than one write: the last id that is counted."""
    consolidated: ConsolidationFigures | None = None
    """What the last consolidation came to."""
    since: int = -1
    erased_offset: int = -1
    """Offset of the last record that erased a session: what was asked before may tell of it."""

    @property
    def items(self) -> int:
        """Number of items that are kept."""
        return self.memories.count + self.conversations + self.chunks + self.episodes + self.pending

    def due(self, policy: ProjectPolicy) -> datetime | None:
        """Time at which a consolidation is due, or goes on; None if it could change nothing."""
        if self.run is not None:
            return self.run.started_at
        last = self.consolidated_at or self.born_at
        if last is None or not (self.memories.count > self.memories.archived or self.pending):
            return None
        return last + policy.consolidation.every


EVENT_STATE_BYTES: Final = 1024 * 1024
"""Of the changelog, by one event of those that may change any number of items; beyond it no further one is changed:

| event | the rest |
|---|---|
| an erasure, accesses | with the event's next steps, each a write of its own (`models.project.fold.fold_step`) |
| a consolidation | with the project's next events |
| what is said in one message | is left out |
| an import | is as large as its record |
"""
CONVERSATION: Final = "conversation"
CHUNK: Final = "chunk"
EPISODE: Final = "episode"


class Spoken(Struct, frozen=True, array_like=True, gc=False):
    """Place of a conversation, and the project's number of turns at its last message."""

    turn_count: int
    slot: int


class KeptEpisode(Struct, frozen=True, array_like=True):
    """An episode in its place."""

    episode: ProjectEpisode
    slot: int


class ProjectState(EntityState[ProjectHead]):
    """Working copy of one project. `models.project.fold.fold` consumes it.

    Attributes:
        memories: Long-term memories.
        pending: Pending facts.
        slots: Places of items.
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
        """Entity → part → bytes, None to delete. Nothing of a project that never was."""
        self.changed_parts()
        return self._store.changes()

    @property
    def written_bytes(self) -> int:
        """Written so far, without the head."""
        return self._store.written_bytes

    def begin_event(self) -> None:
        """Another event is folded: what it writes is counted from here."""
        self.memories.dropped.clear()
        self._written_before = self._store.written_bytes

    @property
    def is_full(self) -> bool:
        """True if the event wrote as much as one may: what can wait, or be left out, does."""
        return self._store.written_bytes - self._written_before > EVENT_STATE_BYTES

    @staticmethod
    def figures(head: ProjectHead, count: CountParts) -> tuple[int, ...]:  # noqa: ARG004 - the head says it
        """A project and its memories."""
        return 1, head.memories.count

    @staticmethod
    def next_due(head: ProjectHead, count: CountParts, policy: Policy) -> DueEntity | None:  # noqa: ARG004 - likewise
        """A consolidation; after a step of it it is another one that is due."""
        at = head.due(policy.projects)
        looked_at = 0 if head.run is None else head.run.looked_at
        return None if at is None else DueEntity(at, head.app_id, head.project_id, (head.revision, looked_at))

    def erase_step(self) -> bool:
        """Delete everything, counts included; the next event begins a new project. False if more is left.

        Until all is gone nothing else may be folded: what is left does not fit together.
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
        """The latest, the newest last."""
        return LAYOUT.part(self.parts, "r", list[DeedResult]) or []

    def unname_results(self) -> bool:
        """Outcomes no longer name what is not there, as it may be erased; whoever waits for one still finds it.

        Why one was refused may name anything, so it goes as well.

        Returns:
            Whether that changed any.
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
        """Remember an outcome; but where nothing is kept, nothing is remembered of a name that somebody asked for."""
        if not (self.known or self.head.items):
            return
        kept = [*self.results, result][-self._policy.long_term.results :]
        self.parts.put("r", encode(kept))

    # --- conversations

    def conversation(self, conversation_id: str) -> ConversationState | None:
        """A conversation, None if it is not kept."""
        return self._conversation(digest_of(conversation_id))

    def _conversation(self, digest: str) -> ConversationState | None:
        state = self._conversations.get(digest)
        if state is None and (state := ConversationState.load(self._store.conversation(digest))) is not None:
            self._conversations[digest] = state
        return state

    def begin(self, conversation: ProjectConversation, user_id: str) -> ConversationState:
        """A conversation that was not kept."""
        digest = digest_of(conversation.id)
        head = ConversationHead(conversation, self.slots.take(CONVERSATION), user_id)
        state = self._conversations[digest] = ConversationState(self._store.conversation(digest), head)
        self.head.conversations += 1
        self.spoken(state)
        return state

    def spoken(self, state: ConversationState) -> None:
        """A conversation went on: it is kept, and is not silent."""
        digest = digest_of(state.head.conversation.id)
        self.parts.put(f"c:{digest}", encode(Spoken(self.head.turn_count, state.head.slot)))
        if self.head.release_from:
            silent = self._silent()
            kept = [each for each in silent if each[0] != digest]
            if len(kept) < len(silent):
                self._keep_silent(kept)

    def fell_silent(self, state: ConversationState) -> None:
        """A conversation is not active: its messages are released when the project went on for long."""
        digest = digest_of(state.head.conversation.id)
        silent = self._silent()
        if state.head.conversation.recent and digest not in {name for name, _ in silent}:
            self._keep_silent([*silent, (digest, self.head.turn_count)])

    def released(self) -> ConversationState | None:
        """A conversation whose messages are released now, one at a time."""
        if not self.head.release_from or self.head.turn_count < self.head.release_from:
            return None
        (digest, _), *rest = self._silent()
        self._keep_silent(rest)
        return self._conversation(digest)

    def longest_silent(self, *, but: str) -> ConversationState | None:
        """The conversation that was not spoken in for longest, other than the one named."""
        others = [name for name in self.parts.names("c:") if name != f"c:{digest_of(but)}"]
        spoken = [(each, name) for name in others if (each := LAYOUT.part(self.parts, name, Spoken)) is not None]
        if not spoken:
            return None
        _, name = min(spoken, key=lambda each: (each[0].turn_count, each[0].slot))
        return self._conversation(name[2:])

    def drop(self, state: ConversationState) -> None:
        """A conversation goes, with its messages and chunks; their places are free."""
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
        """Episodes, the oldest first."""
        return [kept.episode for name in sorted(self.parts.names("e:")) if (kept := self.episode(name[2:]))]

    def episode(self, episode_id: str) -> KeptEpisode | None:
        """An episode in its place, None if it is not there."""
        return LAYOUT.part(self.parts, f"e:{episode_id}", KeptEpisode)

    def put_episode(self, episode: ProjectEpisode) -> KeptEpisode:
        """Keep an episode, new or as it is now."""
        known = self.episode(episode.id)
        self.head.episodes += known is None
        kept = KeptEpisode(episode, self.slots.take(EPISODE) if known is None else known.slot)
        self.parts.put(f"e:{episode.id}", encode(kept))
        return kept

    def drop_episode(self, episode_id: str) -> KeptEpisode | None:
        """Let go of an episode; gives what was there."""
        known = self.episode(episode_id)
        if known is not None:
            self.head.episodes -= 1
            self.parts.drop(f"e:{episode_id}")
            self.slots.give(EPISODE, known.slot)
        return known
