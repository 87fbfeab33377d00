"""Rules of apps' memories, with the source's defaults. Part of `models.policy`, which has the whole."""

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta

from models.events import Ratio
from models.events.app import MOST_MEMORY_CHARS, Space
from models.policy.stream import ZERO, PolicySection, require

MOST_SPACE_CHARS = 40_000
"""Of all memories of a space: what happened to them must fit in one record."""
ANY_APP = "*"
"""In `inject`: every app."""
MOST_LISTED = 16
"""Highest number of tags of a memory, and of apps that it is shared with."""
_Units = Annotated[float, Meta(ge=0.0, le=1e9)]


class EnergyPolicy(PolicySection, frozen=True, kw_only=True):
    """What memory work of a space may cost (app memory, Energy Consumption).

    Every space has a budget of its own, so that no app can use up another's; one of all together is a choice. What a
    piece of work costs is its least cost, and beyond it what it took by tokens and time, up to its most.
    """

    capacity_units: Annotated[float, Meta(gt=0, le=1e9)] = 10_000.0
    """Budget of a space that has rested."""
    refill_units_per_hour: _Units = 10_000.0
    """With the defaults about 260 conversations an hour and space, each with a compaction."""
    floor_ratio: Ratio = 0.2
    """Work begins only above this part of the capacity (app memory, energy > 20 %); below it waits."""
    shared_capacity_units: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    """Budget of all spaces of a partition of `commands.v1` together, beside each one's own (app memory, the global
    energy budget); None: none. An app that uses it up makes the others wait."""
    shared_refill_units_per_hour: Annotated[float, Meta(ge=0, le=1e12)] = 100_000.0
    """What comes back of it; the number of partitions times this bounds a cluster."""
    creation_least_units: _Units = 10.0
    creation_most_units: _Units = 15.0
    """Of a memory (app memory, 10-15)."""
    compaction_least_units: _Units = 20.0
    compaction_most_units: _Units = 30.0
    """Of a compaction (app memory, 20-30)."""
    units_per_1000_tokens: _Units = 2.0
    units_per_second: _Units = 1.0

    def __post_init__(self) -> None:
        require(self.floor_ratio < 1, "floor_ratio must be below 1: work begins only above it")
        require(self.creation_least_units <= self.creation_most_units, "creation_least_units exceeds the most")
        require(self.compaction_least_units <= self.compaction_most_units, "compaction_least_units exceeds the most")


class AppPolicy(PolicySection, frozen=True, kw_only=True):
    """Memories of apps, and of users in apps."""

    enabled: bool = True
    """Whether ended conversations become memories at all."""
    spaces: Annotated[tuple[Space, ...], Meta(min_length=1, max_length=2)] = ("user",)
    """Whose memories a conversation becomes, and a prompt begins with: those of its user in the app (app memory, phase
    3), or the app's. An app's are shown to all its users: what one said in private is told to the others."""
    inject: tuple[str, ...] = ()
    """Apps whose prompts all begin with their memories (app memory, Context Injection Points), whether or not a request
    asks for it; `"*"`: every app. A request can still say no."""
    most: Annotated[int, Meta(ge=2, le=50)] = 10
    """Memories of a space (app memory); one more is compacted."""
    sentences: Annotated[int, Meta(ge=1, le=8)] = 4
    """Of a memory at the most (app memory, 2-4)."""
    content_chars: Annotated[int, Meta(ge=40, le=1_000)] = 200
    """What a memory made here fits in (app memory, ~200)."""
    most_content_chars: Annotated[int, Meta(ge=40, le=MOST_MEMORY_CHARS)] = 400
    """Longest memory taken from a language model or an admin; longer ones are refused."""
    tags: Annotated[int, Meta(ge=0, le=MOST_LISTED)] = 5
    related: Annotated[int, Meta(ge=1, le=16)] = 16
    """Conversations that a memory names beside its own; the latest stay."""
    notables: Annotated[int, Meta(ge=1, le=32)] = 12
    """Sentences of a conversation that are kept until it ends."""
    notable_chars: Annotated[int, Meta(ge=40, le=500)] = 240
    """Longest such sentence; longer ones are cut."""
    ask: bool = False
    """Whether a language model makes memories and decides on compactions; on where one is configured."""
    when_it_fails: Literal["skip", "extractive"] = "skip"
    """What becomes of a memory that a language model failed to make (app memory: skipped)."""
    asked_tokens: Annotated[int, Meta(ge=100, le=10_000)] = 8_000
    """Of a conversation that the language model sees whole; of a longer one the last turns and summaries of the rest.
    Bounds what is kept of an open session where a model is asked."""
    asked_turn_chars: Annotated[int, Meta(ge=100, le=20_000)] = 8_000
    """Length of a turn as the language model sees it."""
    answer_within: timedelta = timedelta(minutes=5)
    """An answer of the slower stage is not waited for any longer; its own limit for one call is 30 s (app memory)."""
    waiting: Annotated[int, Meta(ge=1, le=1_000)] = 256
    """Ended conversations that wait for energy; beyond it the first becomes a memory whatever the budget says."""
    most_pinned: Annotated[int, Meta(ge=0, le=48)] = 8
    """Pinned memories of a space."""
    shared_with: Annotated[int, Meta(ge=0, le=MOST_LISTED)] = MOST_LISTED
    """Apps that a memory can be shared with."""
    context_chars: Annotated[int, Meta(ge=200, le=20_000)] = 2_000
    """Of all memories in a prompt (app memory, ~2,000)."""
    redundant_similarity: Ratio = 0.5
    """From this similarity of their words two memories are merged rather than the weakest deleted."""
    half_life: timedelta = timedelta(days=30)
    """In which the worth of a memory of what was decided or done falls by half, from its last change."""
    lasting_half_life: timedelta = timedelta(days=180)
    """The same for what lasts: a season of purchases does not push out a preference."""
    lasting_use: Ratio = 0.7
    """From this use later on (table `notable`) a sentence says what lasts."""
    expire_after: timedelta | None = None
    """A memory that nothing changed for so long goes, by the time of its conversation; a pinned one stays (app memory,
    Data Retention). None: memories stay until they are purged."""
    over_worth: Ratio = 0.4
    """What is left of a memory's worth once the day is over that it named."""
    results: Annotated[int, Meta(ge=1, le=64)] = 16
    """Outcomes of admins' commands that a space remembers."""
    energy: EnergyPolicy = EnergyPolicy()

    def __post_init__(self) -> None:
        require(self.content_chars <= self.most_content_chars, "content_chars must not exceed most_content_chars")
        fits = self.most * self.most_content_chars <= MOST_SPACE_CHARS
        require(fits, f"most times most_content_chars exceeds {MOST_SPACE_CHARS}: a compaction is one record")
        require(self.most_pinned <= self.most - 2, "most_pinned must leave two memories that can be compacted")
        require(self.answer_within > ZERO and self.half_life > ZERO, "answer_within and half_life must be positive")
        require(self.expire_after is None or self.expire_after > ZERO, "expire_after must be positive")
        require(self.half_life <= self.lasting_half_life, "lasting_half_life must not be less than half_life")
        require(len(set(self.spaces)) == len(self.spaces), "spaces names one twice")
