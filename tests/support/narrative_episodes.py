"""Episodes for tests, and what becomes of a conversation's turns one after the other."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from models.events import Role
from models.events.project_items import EpisodeKind, ProjectEpisode
from models.language.narrative_detection import ConversationTurn, NarrativeState, detect
from models.policy.project import NarrativePolicy
from models.project.narrative import take
from tests.support.session_driver import NOON

KEY = "project:shop/web"
POLICY = NarrativePolicy()


def episode(first: int, last: int | None = None, kind: str = "decision_made", **more: Any) -> ProjectEpisode:
    """An episode of turns; a minute lies between two turns."""
    end = first if last is None else last
    fields: dict[str, Any] = {
        "id": f"e-{kind[:2]}{first}",
        "title": f"{kind} at {first}",
        "summary": f"What happened at {first}.",
        "significance": 0.5,
        "conversation_id": "s0",
        "started_at": NOON + timedelta(minutes=first),
        "ended_at": NOON + timedelta(minutes=end),
        "last_accessed_at": NOON + timedelta(minutes=end),
    }
    return ProjectEpisode(kind=EpisodeKind(kind), first_turn=first, last_turn=end, **(fields | more))


def turn(number: int, content: str, role: Role = Role.USER, user_id: str = "nora") -> ConversationTurn:
    """A turn, a minute after the one before."""
    at = NOON + timedelta(minutes=number)
    return ConversationTurn(
        conversation_id="s0", turn=number, role=role, user_id=user_id, content=content, timestamp=at
    )


def told(
    turns: Iterable[ConversationTurn], policy: NarrativePolicy = POLICY, watch: NarrativeState | None = None
) -> list[ProjectEpisode]:
    """Episodes that are kept after these turns, in order of turns."""
    watch = NarrativeState() if watch is None else watch
    kept: list[ProjectEpisode] = []
    for said in turns:
        for found in detect(watch, said, [], KEY, policy):
            kept = taken(kept, found, policy)
    return sorted(kept, key=lambda each: (each.first_turn, each.last_turn, each.id))


def taken(
    kept: Sequence[ProjectEpisode], new: ProjectEpisode, policy: NarrativePolicy = POLICY
) -> list[ProjectEpisode]:
    """The kept ones after a new one came."""
    change = take(kept, new, new.ended_at, policy)
    by_id = {each.id: each for each in kept} | {each.id: each for each in change.changed}
    return [each for each_id, each in by_id.items() if each_id not in change.gone]
