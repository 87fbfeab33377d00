"""Episodic memory of a project: the key moments that are kept, which of them merge, and the arc they make. Pure.

How they are told from turns is in `narrative_detection` (project memory, Layer 4).

| two episodes of one conversation | become |
|---|---|
| of one kind, ranges overlap, or at most `merge_gap_turns` lie between | one |
| an issue, and the solution that begins with it | the solution |
| of two kinds and exactly the same turns | the more significant |
| else, also a pivot in the midst of a long struggle | both stay: each is a moment of its own |
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from models.events.project_items import EpisodeKind, ProjectEpisode
from models.language.narrative_detection import tokens_of
from models.language.notable import clipped
from models.policy.project import NarrativePolicy
from models.project.kept_memories import decay_at

_THIRDS = 3


class Taken(Struct, frozen=True):
    """Changes of a new episode to the list of kept ones."""

    changed: list[ProjectEpisode]
    """The new one, or the one that it was merged into; none if it is the first that has to go."""
    gone: list[str]
    """Kept ones that were merged into another, or had to go because there were too many."""


class NarrativeArc(Struct, frozen=True):
    """A story in three parts (project memory, Narrative Arc Tracking), each in the order of turns."""

    beginning: list[ProjectEpisode]
    middle: list[ProjectEpisode]
    end: list[ProjectEpisode]
    key_moments: list[ProjectEpisode]
    """Of a significance from `key_moment` on."""


def take(episodes: Sequence[ProjectEpisode], new: ProjectEpisode, now: datetime, policy: NarrativePolicy) -> Taken:
    """Take an episode into the kept ones: it merges with those it overlaps; beyond `most` the weakest goes.

    The weakest has the lowest significance × decay, of equals it is the oldest. One of the same id is the same episode,
    told again.

    Args:
        episodes: Kept ones, in any order; not changed.
        new: The episode.
        now: For the decay.
        policy: Its rules.
    """
    kept = list(episodes)
    grown = new
    # What has grown may reach others.
    while (other := next((each for each in kept if _one(each, grown, policy)), None)) is not None:
        kept.remove(other)
        grown = _merged(other, grown, policy)
    kept.append(grown)
    kept.sort(
        key=lambda each: (-each.significance * decay_at(each, now, policy), -each.started_at.timestamp(), each.id)
    )
    stay = {each.id for each in kept[: policy.most]}
    changed = [grown] if grown.id in stay and grown not in episodes else []
    return Taken(changed, [each.id for each in episodes if each.id not in stay])


def merge_overlapping(
    episodes: Sequence[ProjectEpisode], policy: NarrativePolicy
) -> list[tuple[ProjectEpisode, list[str]]]:
    """Merge all that should be one (Memory Consolidation): each that grew, and the ids that went into it."""
    merged: list[tuple[ProjectEpisode, list[str]]] = []
    for episode in sorted(episodes, key=_order):
        grown, ids = episode, [episode.id]
        while (place := next((n for n, (each, _) in enumerate(merged) if _one(each, grown, policy)), None)) is not None:
            other, more = merged.pop(place)
            grown, ids = _merged(other, grown, policy), [*more, *ids]
        merged.append((grown, ids))
    return [
        (episode, [each for each in dict.fromkeys(ids) if each != episode.id]) for episode, ids in merged if ids[1:]
    ]


def narrative_arc(
    episodes: Sequence[ProjectEpisode],
    conversation_id: str | None,
    policy: NarrativePolicy,
    *,
    turns: tuple[int, int] | None = None,
) -> NarrativeArc:
    """The arc of a conversation, by thirds of its turns; or of a whole project, by thirds of its episodes in time.

    An episode stands where the middle of its range is.

    Args:
        episodes: Of the project.
        conversation_id: Of which conversation; None: of all.
        policy: From which significance a moment is a key moment.
        turns: First and last turn of the conversation, both inside; None: from its first episode to its last.
    """
    in_order = sorted(
        (each for each in episodes if conversation_id is None or each.conversation_id == conversation_id), key=_order
    )
    thirds: tuple[list[ProjectEpisode], ...] = ([], [], [])
    ends = [turn for each in in_order for turn in (each.first_turn, each.last_turn)]
    first, last = turns or (min(ends, default=0), max(ends, default=0))
    for place, episode in enumerate(in_order):
        if conversation_id is None:
            third = _THIRDS * place // len(in_order)
        else:
            # Of twice the numbers, so that the middle of a range stays whole.
            twice = episode.first_turn + episode.last_turn - 2 * first + 1
            third = _THIRDS * twice // (2 * max(1, last - first + 1))
        thirds[min(max(third, 0), _THIRDS - 1)].append(episode)
    beginning, middle, end = thirds
    return NarrativeArc(beginning, middle, end, [each for each in in_order if each.significance >= policy.key_moment])


def _order(episode: ProjectEpisode) -> tuple[datetime, int, str]:
    return episode.started_at, episode.first_turn, episode.id


def _one(a: ProjectEpisode, b: ProjectEpisode, policy: NarrativePolicy) -> bool:
    """Whether two are one, by the table above."""
    if a.id == b.id:
        return True
    if a.conversation_id != b.conversation_id:
        return False
    if a.kind is b.kind:
        return max(a.first_turn, b.first_turn) - min(a.last_turn, b.last_turn) - 1 <= policy.merge_gap_turns
    if (a.first_turn, a.last_turn) == (b.first_turn, b.last_turn):
        return True
    issue, other = (a, b) if a.kind is EpisodeKind.ISSUE_IDENTIFIED else (b, a)
    return (
        (issue.kind, other.kind) == (EpisodeKind.ISSUE_IDENTIFIED, EpisodeKind.PROBLEM_SOLVED)
        and issue.first_turn == other.first_turn
        and issue.last_turn <= other.last_turn
    )


def _merged(a: ProjectEpisode, b: ProjectEpisode, policy: NarrativePolicy) -> ProjectEpisode:
    """One of two: the more significant keeps its id, kind and title, of equals what was solved.

    A solution's summary says already what its issue was.
    """
    best, other = sorted((a, b), key=lambda each: (-each.significance, each.kind == "issue_identified", _order(each)))
    of_both = [best] if best.id == other.id or best.kind != other.kind else sorted((a, b), key=_order)
    summary = clipped(" ".join(dict.fromkeys(each.summary for each in of_both)), policy.summary_chars)
    outcome = best.outcome or other.outcome
    ids = [*best.merged_ids, *other.merged_ids, other.id]
    merged = msgspec.structs.replace(
        best,
        summary=summary,
        outcome=outcome,
        # An earlier release named who has no id by nothing.
        participants=sorted({*a.participants, *b.participants} - {""})[: policy.participants],
        linked_memories=list(dict.fromkeys([*best.linked_memories, *other.linked_memories]))[: policy.linked],
        first_turn=min(a.first_turn, b.first_turn),
        last_turn=max(a.last_turn, b.last_turn),
        started_at=min(a.started_at, b.started_at),
        ended_at=max(a.ended_at, b.ended_at),
        merged_ids=[each for each in dict.fromkeys(ids) if each != best.id][-policy.most :],
        access_count=best.access_count if best.id == other.id else a.access_count + b.access_count,
        last_accessed_at=max(a.last_accessed_at, b.last_accessed_at),
    )
    return msgspec.structs.replace(merged, tokens=tokens_of(merged))
