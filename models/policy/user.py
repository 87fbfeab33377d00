"""Rules of a user's memory, with the source's defaults. Part of `models.policy`, which has the whole."""

from typing import Annotated

from msgspec import Meta

from models.events import Ratio
from models.policy.stream import PolicySection, require


class FactPolicy(PolicySection, frozen=True, kw_only=True):
    """Facts of one user (user memory, long-term memory)."""

    min_confidence: Ratio = 0.4
    """Less sure ones are not stored (user memory, flow 2, step 2)."""
    min_importance: Ratio = 0.2
    """Less important ones are not stored (user memory, flow 2, step 2)."""
    most: Annotated[int, Meta(ge=1, le=1_000)] = 200
    """Facts of a user, past ones among them; the source speaks of 10-50. Beyond it past ones go from the state, then
    the least important."""
    history: Annotated[int, Meta(ge=0, le=64)] = 16
    """Past values of a key that are kept beside the present one; the archive has all."""
    ask: bool = False
    """Whether every user message also goes to the slower extractor; on where a language model is configured."""
    asked_chars: Annotated[int, Meta(ge=100, le=32_000)] = 8_000
    """Length of a message as the slower extractor sees it."""


class UserPolicy(PolicySection, frozen=True, kw_only=True):
    """The three tiers of a user, over all sessions of one app. A turn is one message.

    The source's two descriptions of the short-term tier disagree. The rule here: when `high_turns` turns are in no
    episode yet, they become one; the last `keep_turns` stay at hand besides. With the defaults 10-20 turns are at
    hand, and 100 turns are five episodes of 20, the last of which ends with turn 100.
    """

    enabled: bool = True
    """Whether users have a memory at all."""
    high_turns: Annotated[int, Meta(ge=2, le=40)] = 20
    """Turns of an episode (user memory, every 20 turns)."""
    keep_turns: Annotated[int, Meta(ge=0, le=40)] = 10
    """Latest turns that stay at hand, in an episode or not (user memory, keep last 10)."""
    waiting_episodes: Annotated[int, Meta(ge=1, le=32)] = 8
    """Requests for episodes without an answer, or so many episodes behind the newest request; beyond it the oldest is
    summarised without waiting any longer."""
    turn_chars: Annotated[int, Meta(ge=100, le=16_000)] = 16_000
    """Longest text kept of a turn at hand; the archive has all of it. Bounds the state."""
    asked_chars: Annotated[int, Meta(ge=100, le=4_000)] = 2_000
    """Length of a turn as the summariser sees it."""
    summary_sentences: Annotated[int, Meta(ge=1, le=10)] = 4
    """Sentences of an episode's extractive summary."""
    summary_chars: Annotated[int, Meta(ge=40, le=8_000)] = 2_000
    """Longest summary taken from a slower summariser."""
    facts: FactPolicy = FactPolicy()

    @property
    def most_turns(self) -> int:
        """Turns in the state at the most: asked for, not yet asked for, and at hand."""
        return (self.waiting_episodes + 1) * self.high_turns + self.keep_turns

    def __post_init__(self) -> None:
        require(self.keep_turns <= self.high_turns, "keep_turns must not exceed high_turns")
