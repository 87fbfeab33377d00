"""What is decided about an app's memories by rules (seed 003): what a conversation leaves, and which memory goes.

`compose` makes a memory of an ended conversation, `decide` says which of one too many goes, `refusal` whether a
decision can be carried out, whoever made it, and `oldest` is the way out where it cannot. All are pure and give the
same for the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations

from msgspec import Struct

from models.app_events import MemoryToKeep
from models.app_policy import AppPolicy
from models.memory.composing import Draft, compose
from models.memory.contradiction import conflicts, sentences_of
from models.memory.likeness import adds_nothing, contained, likeness

__all__ = ["Decision", "Draft", "compose", "conflicts", "decide", "merged_into", "oldest", "refusal"]

_DAY = timedelta(days=1)


class Decision(Struct, frozen=True, kw_only=True):
    """Which memory goes (seed 003, `MemoryCompactionDecision`); unchecked until `refusal` says nothing."""

    action: str
    """`delete`, or `edit`: the target gets `new_content`, another goes into it."""
    target_memory_id: int
    new_content: str | None
    reason: str
    merged_memory_id: int | None = None
    """With `edit`: which goes into the target; None where the decider did not say (`merged_into`)."""


def decide(memories: Sequence[MemoryToKeep], new: MemoryToKeep, now: datetime, policy: AppPolicy) -> Decision:
    """The default decider: merge the two that say most of the same, else let the one go that is worth least.

    A memory's worth is its importance, halved with every half-life since its last change. Pinned ones are left alone.

    Args:
        memories: All but the new one.
        new: The one too many.
        now: Time of the decision; what changed later than that is as if it changed now.
        policy: Similarity from which two are merged, half-life, longest memory.

    Raises:
        ValueError: Every memory is pinned.
    """
    free = _free(memories, new)
    alike = sorted(
        ((likeness(one.content, other.content), one, other) for one, other in combinations(free, 2)),
        key=lambda pair: (-pair[0], pair[1].memory_id, pair[2].memory_id),
    )
    for degree, older, newer in alike:
        if degree < policy.redundant_similarity:
            break
        content = _merged(older, newer, policy)
        if content:
            return Decision(
                action="edit",
                target_memory_id=older.memory_id,
                new_content=content,
                merged_memory_id=newer.memory_id,
                reason=(
                    f"memories {older.memory_id} and {newer.memory_id} say much the same: likeness {degree:.2f}, "
                    f"merged from {policy.redundant_similarity:.2f}"
                ),
            )
    ranked = sorted(free, key=lambda memory: (_worth(memory, now, policy), memory.updated_at, memory.memory_id))
    return _deleted(ranked, now, policy)


def _deleted(ranked: Sequence[MemoryToKeep], now: datetime, policy: AppPolicy) -> Decision:
    weakest = ranked[0]
    age, lasting = max(now - weakest.updated_at, timedelta()) / _DAY, policy.half_life / _DAY
    reason = (
        f"memory {weakest.memory_id} is worth least: importance {weakest.importance:.2f}, unchanged for {age:.1f} "
        f"days, half-life {lasting:g} days, worth {_worth(weakest, now, policy):.3f}"
    )
    if len(ranked) > 1:
        reason += f"; the next, memory {ranked[1].memory_id}, {_worth(ranked[1], now, policy):.3f}"
    return Decision(action="delete", target_memory_id=weakest.memory_id, new_content=None, reason=reason)


def _worth(memory: MemoryToKeep, now: datetime, policy: AppPolicy) -> float:
    age: float = max(now - memory.updated_at, timedelta()) / policy.half_life
    return float(memory.importance * 0.5**age)


def _merged(older: MemoryToKeep, newer: MemoryToKeep, policy: AppPolicy) -> str:
    """What both say, nothing twice, and of what contradicts itself the newer; empty if nothing of the older fits."""
    first, second = sorted((older, newer), key=lambda memory: (memory.updated_at, memory.memory_id))
    fresh = list(_once(sentences_of(second.content)))
    kept = [
        sentence
        for sentence in _once(sentences_of(first.content))
        if not any(conflicts(sentence, other) or adds_nothing(sentence, other) for other in fresh)
    ]
    fresh = [sentence for sentence in fresh if not any(adds_nothing(sentence, other) for other in kept)]
    own = len(kept)
    while kept and (len(kept) + len(fresh) > policy.sentences or _length(kept + fresh) > policy.most_content_chars):
        kept.remove(min(kept, key=len))
    if (own and not kept) or _length(kept + fresh) > policy.most_content_chars:
        return ""
    return " ".join(kept + fresh)


def _once(sentences: Sequence[str]) -> Iterator[str]:
    told: list[str] = []
    for sentence in sentences:
        if not any(adds_nothing(sentence, other) and not conflicts(sentence, other) for other in told):
            told.append(sentence)
            yield sentence


def _length(sentences: Sequence[str]) -> int:
    return len(" ".join(sentences))


def refusal(decision: Decision, memories: Sequence[MemoryToKeep], new: MemoryToKeep, policy: AppPolicy) -> str:
    """Why a decision cannot be carried out; empty if it can.

    `unknown_action`, `unknown_memory` (of another space, or gone), `pinned`, `empty_content`, `too_long`.
    """
    if decision.action not in {"delete", "edit"}:
        return "unknown_action"
    known = {memory.memory_id: memory for memory in (*memories, new)}
    touched = [decision.target_memory_id]
    if decision.action == "edit" and decision.merged_memory_id is not None:
        touched.append(decision.merged_memory_id)
    if any(number not in known for number in touched) or len(set(touched)) < len(touched):
        return "unknown_memory"
    if any(known[number].pinned for number in touched):
        return "pinned"
    if decision.action == "delete":
        return ""
    content = decision.new_content or ""
    if not content.strip() or len(content) > policy.most_content_chars:
        return "too_long" if content.strip() else "empty_content"
    return "" if len(_free(memories, new)) > 1 else "pinned"


def oldest(memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> Decision:
    """First in, first out (seed 003, Error Handling): the memory that was made first goes; no pinned one.

    Raises:
        ValueError: Every memory is pinned.
    """
    first = min(_free(memories, new), key=lambda memory: (memory is new, memory.created_at, memory.memory_id))
    return Decision(
        action="delete",
        target_memory_id=first.memory_id,
        new_content=None,
        reason=f"memory {first.memory_id} is the oldest that is not pinned, made {first.created_at.isoformat()}",
    )


def merged_into(decision: Decision, memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> int:
    """Of an `edit` that `refusal` does not refuse: which memory goes into the target.

    What the decider said, else the one that the new content tells most of; of equals the new one, then the latest.
    """
    if decision.merged_memory_id is not None:
        return decision.merged_memory_id
    others = [memory for memory in _free(memories, new) if memory.memory_id != decision.target_memory_id]
    content = decision.new_content or ""
    best = max(others, key=lambda memory: (contained(memory.content, content), memory is new, memory.memory_id))
    return best.memory_id


def _free(memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> list[MemoryToKeep]:
    """What is not pinned, by number."""
    free = sorted((memory for memory in (*memories, new) if not memory.pinned), key=lambda memory: memory.memory_id)
    if not free:
        raise ValueError("every memory is pinned: none can be compacted")
    return free
