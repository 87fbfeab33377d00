"""Compaction of app memories by rules: which of one too many goes.

`decide` says which goes, `refusal` whether a decision can be carried out, whoever made it, and `oldest` is the way out
where it cannot. All are pure and give the same for the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, combinations
from typing import NamedTuple

from msgspec import Struct

from models.app.worth import is_of_use, worth
from models.events.app import MemoryToKeep
from models.language.contradiction import NOTHING_KNOWN, Facts, contradicts, sentences_of
from models.language.likeness import adds_nothing, contained, likeness, subjects_of, topics_in
from models.policy.app import AppPolicy

_DAY = timedelta(days=1)
_BOTH, _FEWEST_SHARED = 2, 2


class MemorySubject(NamedTuple):
    """User of a memory, and topics of the conversations that it was made of."""

    user_id: str
    topics: frozenset[str]


NO_SUBJECTS: Mapping[int, MemorySubject] = {}


class CompactionDecision(Struct, frozen=True, kw_only=True):
    """Decision on a compaction (app memory, `MemoryCompactionDecision`); unchecked until `refusal` is empty."""

    action: str
    """`delete`, or `edit`: the target gets `new_content`, another goes into it."""
    target_memory_id: int
    new_content: str | None
    reason: str
    merged_memory_id: int | None = None
    """With `edit`: which goes into the target; None where the decider did not say (`merged_into`)."""


def decide(
    memories: Sequence[MemoryToKeep],
    new: MemoryToKeep,
    now: datetime,
    policy: AppPolicy,
    *,
    known: Mapping[str, Facts] = NOTHING_KNOWN,
    subjects: Mapping[int, MemorySubject] = NO_SUBJECTS,
) -> CompactionDecision:
    """The default decider: merge the two that say most of the same, else let the one go that is worth least.

    Two also go together if they are of the same user, and of a subject that no other memory has (`_related`). A
    memory's worth is its importance, less with its age: slower if it is still of use (`worth`). Pinned ones stay.

    Args:
        memories: All but the new one.
        new: The one too many.
        now: Time of the decision; what changed later than that is as if it changed now.
        policy: Similarity from which two are merged, half-lives, longest memory.
        known: Facts of sentences that were found before (`conflicts`).
        subjects: By number of a memory, whose it is and what it is about.

    Raises:
        ValueError: Every memory is pinned.
    """
    free = _free(memories, new)
    for older, newer, why in _mergeable(free, subjects, policy):
        content = _merged(older, newer, policy, known)
        if content:
            return CompactionDecision(
                action="edit",
                target_memory_id=older.memory_id,
                new_content=content,
                merged_memory_id=newer.memory_id,
                reason=f"memories {older.memory_id} and {newer.memory_id} {why}",
            )
    ranked = sorted(free, key=lambda memory: (worth(memory, now, policy), memory.updated_at, memory.memory_id))
    return _deleted(ranked, now, policy)


def _mergeable(
    free: Sequence[MemoryToKeep], subjects: Mapping[int, MemorySubject], policy: AppPolicy
) -> Iterator[tuple[MemoryToKeep, MemoryToKeep, str]]:
    """Pairs that could be merged, the older first, and why; the best first."""
    for degree, older, newer in _alike(free, policy):
        yield older, newer, f"say much the same: likeness {degree:.2f}, merged from {policy.redundant_similarity:.2f}"
    for shared, older, newer in _related(free, subjects):
        yield older, newer, f"are of the same user and subject, {shared} topics that no other has"


def _alike(free: Sequence[MemoryToKeep], policy: AppPolicy) -> list[tuple[float, MemoryToKeep, MemoryToKeep]]:
    """Pairs that could be merged, the most alike first, of equals the earlier."""
    said = [(memory, subjects_of(memory.content)) for memory in free]
    # Most pairs share no word, and only those without any are compared otherwise.
    near = ((one, other) for (one, a), (other, b) in combinations(said, 2) if not (a and b and a.isdisjoint(b)))
    pairs = ((likeness(one.content, other.content), one, other) for one, other in near)
    alike = [pair for pair in pairs if pair[0] >= policy.redundant_similarity]
    return sorted(alike, key=lambda pair: (-pair[0], pair[1].memory_id, pair[2].memory_id))


def _related(
    free: Sequence[MemoryToKeep], subjects: Mapping[int, MemorySubject]
) -> list[tuple[int, MemoryToKeep, MemoryToKeep]]:
    """Pairs of the same user with topics that only these two have, and how many; most first, of equals the earlier."""
    named = Counter(chain.from_iterable(subject.topics for subject in subjects.values()))
    of_two = {topic for topic, memories in named.items() if memories == _BOTH}
    about = [(memory, subject) for memory in free if (subject := subjects.get(memory.memory_id)) and subject.user_id]
    pairs = []
    for (one, first), (other, second) in combinations(about, 2):
        shared = len(of_two.intersection(first.topics, second.topics)) if first.user_id == second.user_id else 0
        if shared >= _FEWEST_SHARED:
            pairs.append((shared, one, other))
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1].memory_id, pair[2].memory_id))


def _deleted(ranked: Sequence[MemoryToKeep], now: datetime, policy: AppPolicy) -> CompactionDecision:
    weakest = ranked[0]
    age = max(now - weakest.updated_at, timedelta()) / _DAY
    reason = (
        f"memory {weakest.memory_id} is worth least: importance {weakest.importance:.2f}, unchanged for {age:.1f} "
        f"days, worth {worth(weakest, now, policy):.3f}"
    )
    if len(ranked) > 1:
        reason += f"; the next, memory {ranked[1].memory_id}, {worth(ranked[1], now, policy):.3f}"
    return CompactionDecision(action="delete", target_memory_id=weakest.memory_id, new_content=None, reason=reason)


def _merged(older: MemoryToKeep, newer: MemoryToKeep, policy: AppPolicy, known: Mapping[str, Facts]) -> str:
    """What both say, nothing twice, and of what contradicts itself the newer; empty if nothing of the older fits."""

    def fits(kept: Sequence[str]) -> bool:
        return len(kept) + len(fresh) <= policy.sentences and _length([*kept, *fresh]) <= policy.most_content_chars

    first, second = sorted((older, newer), key=lambda memory: (memory.updated_at, memory.memory_id))
    fresh = list(_once(_sentences_of(second), known))
    kept = [
        sentence
        for sentence in _once(_sentences_of(first), known)
        if not any(adds_nothing(sentence, other) or contradicts(sentence, other, known) for other in fresh)
    ]
    fresh = [sentence for sentence in fresh if not any(adds_nothing(sentence, other) for other in kept)]
    own = len(kept)
    if not fits(kept):
        by_use = iter(sorted(kept, key=lambda sentence: (is_of_use(sentence), len(sentence))))
        while kept and not fits(kept):
            kept.remove(next(by_use))
    if (own and not kept) or _length(kept + fresh) > policy.most_content_chars:
        return ""
    return " ".join(kept + fresh)


def _sentences_of(memory: MemoryToKeep) -> list[str]:
    """Its sentences; releases up to 0.2 began with one that only said what the conversation was about."""
    return [sentence for sentence in sentences_of(memory.content) if not topics_in(sentence)]


def _once(sentences: Sequence[str], known: Mapping[str, Facts]) -> Iterator[str]:
    kept: list[str] = []
    for sentence in sentences:
        if not any(adds_nothing(sentence, other) and not contradicts(sentence, other, known) for other in kept):
            kept.append(sentence)
            yield sentence


def _length(sentences: Sequence[str]) -> int:
    return len(" ".join(sentences))


def refusal(
    decision: CompactionDecision, memories: Sequence[MemoryToKeep], new: MemoryToKeep, policy: AppPolicy
) -> str:
    """Reason why a decision cannot be carried out; empty if it can.

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


def oldest(memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> CompactionDecision:
    """First in, first out (app memory, Error Handling): the memory that was made first goes; no pinned one.

    Raises:
        ValueError: Every memory is pinned.
    """
    first = min(_free(memories, new), key=lambda memory: (memory is new, memory.created_at, memory.memory_id))
    return CompactionDecision(
        action="delete",
        target_memory_id=first.memory_id,
        new_content=None,
        reason=f"memory {first.memory_id} is the oldest that is not pinned, made {first.created_at.isoformat()}",
    )


def merged_into(decision: CompactionDecision, memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> int:
    """Memory that goes into the target of an `edit` that `refusal` does not refuse.

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
