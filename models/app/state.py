"""The state of one space of an app's memories: what it consists of, how it is read from and written to its parts.

| part | content | written |
|---|---|---|
| `head` | counters, energy, what was seen, the open request, outcomes of admins' commands | with each change |
| `m0` … | memories, one each, by their slot | when one changes |
| `c` | the candidate: one memory too many, until it is decided which goes | by the conversation it is of |
| `w1` … | ended conversations that wait, in order | when one must wait |

All parts of one batch are written together, so they always fit each other. A space that was erased, or never was,
has none.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from models.app.energy import Energy, SharedEnergy, begins_at
from models.events.app import ConversationEnded, MemoryToKeep
from models.events.base import CommandResult
from models.events.saved_search import SavedSearch
from models.events.user import MemoryMode
from models.language.contradiction import Facts, facts_of
from models.policy import Policy
from models.state.entity import CountParts, DueEntity, EntityState, Read, StateLayout, encode
from models.state.seen import MOST_SHORT_IDS, SHORT_ID, short_id, split_ids

TAG_CHARS = 64
FACTS_CHARS = 1_024
"""Of the facts that are kept with a memory."""


class KeptMemory(Struct, frozen=True, array_like=True):
    """A memory of an app, or of a user in one, as it is kept. Fields as in `models.events.app.AppMemoryChanged`."""

    memory_id: int
    content: str
    importance: float
    tags: tuple[str, ...]
    session_id: str
    user_id: str
    last_turn: int
    """Of the session, when it was last remembered."""
    related: tuple[str, ...]
    """Conversations that went into it besides."""
    created_at: datetime
    updated_at: datetime
    made_by: str
    pinned: bool = False
    shared_with: tuple[str, ...] = ()
    conflicts_with: tuple[int, ...] = ()
    unnamed: bytes = b""
    """Short ids of conversations that went into it too, beyond those that are named."""
    facts: tuple[dict[str, str], ...] | None = None
    """What each sentence of the content says of its user (`contradiction.facts_of`): to find it costs most of what
    becomes of a memory. None where that would be too large, or an older release wrote it: found when it is needed."""

    def is_of(self, session_ids: Collection[str]) -> bool:
        """True if one of the conversations went into it, or may have where too many did to tell."""
        if self.session_id in session_ids or any(name in session_ids for name in self.related):
            return True
        if len(self.unnamed) >= MOST_SHORT_IDS * SHORT_ID:
            return True
        unnamed = split_ids(self.unnamed)
        return bool(unnamed) and any(short_id(name) in unnamed for name in session_ids)

    def to_keep(self) -> MemoryToKeep:
        """Form in which deciders on a compaction see it."""
        return MemoryToKeep(
            memory_id=self.memory_id,
            content=self.content,
            importance=self.importance,
            pinned=self.pinned,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def facts_to_keep(content: str, known: Mapping[str, Facts]) -> tuple[dict[str, str], ...] | None:
    """The facts of a content's sentences, if they are small enough to be kept.

    >>> facts_to_keep("User lives in Oslo. The cup is blue.", {})
    ({'identity location': 'Oslo'}, {})
    """
    facts = tuple(dict(each) for each in facts_of(content, known))
    chars = sum(len(of) + len(value) + 2 for each in facts for of, value in each.items()) + len(facts)
    return facts if chars <= FACTS_CHARS else None


def paragraph(text: str) -> str:
    """On one line, as it stands in a prompt.

    >>> paragraph(" Likes tea.  Drinks it black. ")
    'Likes tea. Drinks it black.'
    """
    return " ".join(text.split())


def tags_of(tags: list[str], most: int) -> list[str]:
    """Shorten tags, and keep each once."""
    return list(dict.fromkeys(tag for tag in (paragraph(tag)[:TAG_CHARS].strip() for tag in tags) if tag))[:most]


LAYOUT = StateLayout("space of memories", version=1)


class UnansweredRequest(Struct, frozen=True, array_like=True, gc=False):
    """A request that is not answered: for the candidate if there is one, else for the first conversation that waits."""

    request: int
    at: datetime


class SpaceHead(Struct, array_like=True):
    """Counters of one space. Sizes are bounded by the policy and the number of partitions."""

    version: int = LAYOUT.version
    app_id: str = ""
    user_id: str = ""
    """Empty for an app's own space."""
    seen: dict[int, tuple[int, bytes]] = {}
    """Partition of `turns.v1` → offset of the last record that ended conversations, and short ids of these."""
    created: int = 0
    """Memories of all time; the newest has this number."""
    compactions: int = 0
    skipped: int = 0
    edited: int = 0
    energy: Energy | None = None
    spent_units: float = 0.0
    uninstalled: bool = False
    requests: int = 0
    """Requests of all time; the newest has this number."""
    asked: UnansweredRequest | None = None
    waited: int = 0
    """Conversations that had to wait, of all time; the newest has this number."""
    results: list[CommandResult] = []
    mode: MemoryMode = MemoryMode.ACTIVE
    oldest_at: datetime | None = None
    """Last change of the memory that expires first; None for none, or where none expires."""
    inject: bool | None = None
    """Whether all prompts of the app begin with its memories; None: as the policy says."""
    since: int = -1
    searches: list[SavedSearch] = []
    """Of the app's alerts, by title."""


_Part = TypeVar("_Part")
_CANDIDATE = "c"


class SpaceState(EntityState[SpaceHead]):
    """Working copy of one space. `models.app.fold.fold` consumes it.

    Attributes:
        memories: Slot → memory; read only, `put` and `drop` change it.
        shared: The budget of all spaces; the partition gives them the same one.
    """

    layout = LAYOUT
    head_type = SpaceHead
    gauges = ("app_memory_spaces", "app_memory_spaces_used", "app_memories_waiting")

    def __init__(self, key: str, read: Read, policy: Policy) -> None:
        super().__init__(key, read, policy)
        self._policy = policy.apps
        self.shared = SharedEnergy(policy.apps.energy)
        self._fresh: ConversationEnded | None = None
        self._waiting = sorted(int(name[1:]) for name in self.parts.names("w"))
        self.memories = {int(name[1:]): self._read(name, KeptMemory) for name in sorted(self.parts.names("m"))}
        self._candidate = LAYOUT.part(self.parts, _CANDIDATE, KeptMemory)

    @staticmethod
    def figures(head: SpaceHead, count: CountParts) -> tuple[int, ...]:  # noqa: ARG004 - the names of its parts say it
        """A space, whether it holds a memory, and conversations that wait in it."""
        return 1, int(count("m") > 0), _waiting(count)

    @staticmethod
    def next_due(head: SpaceHead, count: CountParts, policy: Policy) -> DueEntity | None:
        """Time at which waiting work can go on, an answer is overdue or a memory expires; None if only events help."""
        if head.asked is not None:
            return DueEntity(head.asked.at + policy.apps.answer_within, head.app_id, head.user_id, awaits_answer=True)
        at = begins_at(head.energy, policy.apps.energy) if _waiting(count) else None
        if head.oldest_at is not None and policy.apps.expire_after is not None:
            expires_at = head.oldest_at + policy.apps.expire_after
            at = expires_at if at is None else min(at, expires_at)
        return None if at is None else DueEntity(at, head.app_id, head.user_id)

    def erase(self) -> None:
        """Delete everything; the next event begins a new space."""
        super().erase()
        self.memories, self._candidate = {}, None
        self._fresh, self._waiting = None, []

    # --- memories

    @property
    def candidate(self) -> KeptMemory | None:
        """The memory too many, of which no reader knows yet."""
        return self._candidate

    @candidate.setter
    def candidate(self, memory: KeptMemory | None) -> None:
        self._candidate = memory
        if memory is None:
            self.parts.drop(_CANDIDATE)
        else:
            self.parts.put(_CANDIDATE, encode(memory))

    def put(self, slot: int, memory: KeptMemory) -> None:
        """Write a memory into its slot."""
        self.memories[slot] = memory
        self.parts.put(f"m{slot}", encode(memory))

    def drop(self, slot: int) -> KeptMemory:
        """Free a slot; gives what was there."""
        self.parts.drop(f"m{slot}")
        return self.memories.pop(slot)

    def free_slot(self) -> int:
        """The lowest that no memory has: so the compacted topic stays small."""
        return next(slot for slot in range(len(self.memories) + 1) if slot not in self.memories)

    def slot_of(self, memory_id: int) -> int | None:
        """Slot of a memory; None if it is not there."""
        return next((slot for slot, memory in self.memories.items() if memory.memory_id == memory_id), None)

    # --- what waits

    @property
    def waiting(self) -> int:
        """Conversations that wait to become a memory, the candidate's among them."""
        return self.queued + (self._candidate is not None)

    @property
    def queued(self) -> int:
        """Conversations that nothing was made of yet."""
        return len(self._waiting) + (self._fresh is not None)

    def wait(self, ended: ConversationEnded) -> None:
        """Put a conversation behind the others. It is written only where `keep_waiting` finds it."""
        self.keep_waiting()
        self._fresh = ended

    def first_waiting(self) -> ConversationEnded | None:
        """The conversation that comes next."""
        return self._read_waiting(self._waiting[0]) if self._waiting else self._fresh

    def next_waiting(self) -> None:
        """Remove the first waiting conversation."""
        if self._waiting:
            self.parts.drop(f"w{self._waiting.pop(0)}")
        else:
            self._fresh = None

    def keep_waiting(self) -> None:
        """Write what could not be done at once."""
        if self._fresh is not None:
            self.head.waited += 1
            self._waiting.append(self.head.waited)
            self.parts.put(f"w{self.head.waited}", encode(self._fresh))
            self._fresh = None

    def stop_waiting(self, is_meant: Callable[[ConversationEnded], bool]) -> int:
        """Forget conversations that wait, and a request for the first if it is one; gives how many."""
        self.keep_waiting()
        meant = [number for number in self._waiting if is_meant(self._read_waiting(number))]
        if self._candidate is None and meant and meant[0] == self._waiting[0]:
            self.head.asked = None
        for number in meant:
            self.parts.drop(f"w{number}")
        self._waiting = [number for number in self._waiting if number not in set(meant)]
        return len(meant)

    def _read_waiting(self, number: int) -> ConversationEnded:
        return self._read(f"w{number}", ConversationEnded)

    def _read(self, name: str, kind: type[_Part]) -> _Part:
        part = LAYOUT.part(self.parts, name, kind)
        assert part is not None, "the part was listed"  # noqa: S101
        return part


def _waiting(count: CountParts) -> int:
    return count("w") + count(_CANDIDATE)
