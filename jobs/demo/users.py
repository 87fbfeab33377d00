"""Users' memories as the demo sees them: facts that come, change and go, and turns that became episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from models.events import EpisodeCompressed, FactCategory, FactChanged, UserMemoryChanged

UserNews = FactChanged | EpisodeCompressed
"""What is told of users one by one."""
UserName = tuple[str, str]
"""App id and user id: the same id in two apps is two users."""


class UserSeen(Struct):
    """One user of one app, over all sessions."""

    facts: dict[tuple[FactCategory, str], FactChanged] = {}
    """Category and key → the latest change."""
    causes: Counter[str] = field(default_factory=Counter)
    """Cause → changes of facts."""
    episodes: list[EpisodeCompressed] = []
    stats: UserMemoryChanged | None = None

    @property
    def active(self) -> list[FactChanged]:
        """Facts that hold, the most important first."""
        holding = [fact for fact in self.facts.values() if fact.active]
        return sorted(holding, key=lambda fact: (-fact.importance, fact.key))


class UsersSeen(Struct):
    """All users, by name. Whoever folds events in sees to it that none comes twice."""

    by_name: dict[UserName, UserSeen] = {}

    def take(self, event: UserNews | UserMemoryChanged) -> None:
        """Fold one event; of one user they come in their order."""
        user = self.by_name.setdefault((event.app_id, event.user_id), UserSeen())
        if isinstance(event, UserMemoryChanged):
            user.stats = event
            return
        if isinstance(event, EpisodeCompressed):
            user.episodes.append(event)
            return
        user.facts[event.category, event.key] = event
        user.causes[event.cause] += 1


# --- counted


class UserSummary(Struct, frozen=True, kw_only=True):
    """The memory of a user that the demo asks for."""

    app_id: str
    user_id: str
    turns: int
    """Of all the user's sessions."""
    turns_at_hand: int
    """The short-term tier."""
    facts: int
    """That hold."""
    past_values: int
    """That held before, retracted ones among them."""
    episodes: list[str]
    """Turn ranges."""


class UsersSummary(Struct, frozen=True, kw_only=True):
    """Memories of all users."""

    users: int
    facts: dict[str, int]
    """Category → facts that hold."""
    fact_changes: dict[str, int]
    """Cause (stored, updated, confirmed, retracted, evicted) → changes."""
    episodes: int
    episode_turns: int
    tokens_before: int
    """Of the turns that became episodes, estimated …"""
    tokens_after: int
    """… and of their summaries."""
    turns_to_summaries_ratio: float | None
    """Tokens before to tokens after."""
    shown: list[UserSummary]


def summarise_users(users: UsersSeen, shown: Iterable[UserName]) -> UsersSummary:
    """Count what is remembered.

    Args:
        users: Of all apps.
        shown: Whose memory is told one by one.
    """
    seen = users.by_name.values()
    episodes = [episode for user in seen for episode in user.episodes]
    before = sum(episode.tokens_before for episode in episodes)
    after = sum(episode.tokens_after for episode in episodes)
    return UsersSummary(
        users=len(seen),
        facts=dict(Counter(fact.category.value for user in seen for fact in user.active)),
        fact_changes=dict(sum((user.causes for user in seen), Counter())),
        episodes=len(episodes),
        episode_turns=sum(episode.last_turn - episode.first_turn + 1 for episode in episodes),
        tokens_before=before,
        tokens_after=after,
        turns_to_summaries_ratio=round(before / after, 1) if after else None,
        shown=[_user(name, users.by_name.get(name, UserSeen())) for name in shown],
    )


def _user(name: UserName, user: UserSeen) -> UserSummary:
    stats, (app_id, user_id) = user.stats, name
    ended = sum(not fact.active for fact in user.facts.values())
    return UserSummary(
        app_id=app_id,
        user_id=user_id,
        turns=stats.turn_count if stats else 0,
        turns_at_hand=sum(len(run.turns) for run in stats.short_term) if stats else 0,
        facts=len(user.active),
        past_values=ended + sum(len(fact.history) for fact in user.facts.values()),
        episodes=[episode.turn_range for episode in sorted(user.episodes, key=lambda e: e.first_turn)],
    )
