"""Rules of projects' memory, with the source's defaults. Part of `models.policy`, which has the whole.

Where the source's configuration and its tables disagree (recency 0.3 or 0.2, importance 0.4 or 0.1), the tables stand.
"""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from models.events.fields import Ratio
from models.events.project_items import MOST_CONTENT_CHARS, EpisodeKind, MemoryType
from models.policy.stream import ZERO, PolicySection, require

MOST_MEMORY_CHARS = 70_000
"""Of a memory and its earlier states together."""
_Weight = Annotated[float, Meta(ge=0, le=10)]
_Tokens = Annotated[int, Meta(ge=0, le=10_000_000)]


class ShortTermPolicy(PolicySection, frozen=True, kw_only=True):
    """Messages at hand, and what becomes of older ones (project memory, Layer 2). A message is a turn."""

    recent_messages: Annotated[int, Meta(ge=1, le=200)] = 20
    """Kept verbatim (`maxRecentMessages`)."""
    chunk_messages: Annotated[int, Meta(ge=1, le=200)] = 10
    """The oldest so many become a chunk when there are more (`chunkSize`)."""
    max_chunks: Annotated[int, Meta(ge=2, le=1_000)] = 50
    """Of a conversation; beyond it the two oldest merge. Not in the source: 250 turns make 23 to 25."""
    retention_turns: Annotated[int, Meta(ge=1, le=100_000)] = 50
    """Messages of a conversation that is no longer active become a chunk once the project went on for so many turns
    (`shortTermRetentionTurns`)."""
    message_chars: Annotated[int, Meta(ge=100, le=16_000)] = 16_000
    """Longest text kept of a message at hand; the archive has all of it. Bounds the state."""
    summary_sentences: Annotated[int, Meta(ge=1, le=10)] = 4
    """Of a chunk."""
    summary_chars: Annotated[int, Meta(ge=100, le=4_000)] = 800
    """Of a chunk (project memory: summaries of 100-200 tokens)."""
    merged_summary_chars: Annotated[int, Meta(ge=200, le=16_000)] = 4_000
    """Of merged chunks: `Earlier: … Then: …`; beyond it what is oldest goes."""
    key_topics: Annotated[int, Meta(ge=1, le=20)] = 5
    merged_key_topics: Annotated[int, Meta(ge=1, le=100)] = 20
    conversations: Annotated[int, Meta(ge=1, le=10_000)] = 500
    """Of a project; beyond it the one that is silent longest goes, with its chunks. The archive has its turns."""
    named: Annotated[int, Meta(ge=0, le=200)] = 50
    """Memories and episodes that a conversation names, the latest."""


class DefaultImportances(PolicySection, frozen=True, kw_only=True):
    """Of memories by type (project memory, Memory Types)."""

    fact: Ratio = 0.5
    decision: Ratio = 0.7
    preference: Ratio = 0.6
    entity: Ratio = 0.5
    procedure: Ratio = 0.5
    constraint: Ratio = 0.6
    goal: Ratio = 0.8

    def of(self, kind: MemoryType) -> float:
        """Importance of a new memory."""
        importance: float = getattr(self, kind.value)
        return importance


class LongTermPolicy(PolicySection, frozen=True, kw_only=True):
    """Long-term memories (project memory, Layer 3, Fact Extraction and Decay Function)."""

    importance: DefaultImportances = DefaultImportances()
    half_life: timedelta = timedelta(days=30)
    """Of the decay, from the last access."""
    access_boost: Ratio = 0.1
    """What each access adds to the decay factor …"""
    access_boost_most: Ratio = 0.5
    """… up to this. The source formula: five accesses keep half of it for ever."""
    mention_gain: Ratio = 0.05
    """What saying it again adds to the importance (not in the source), up to 1."""
    promote_from: Ratio = 0.7
    """Confidence from which what was said is a memory at once (not in the source; the lowest of its patterns)."""
    ask: bool = False
    """Whether a second reader is asked for sentences in which the rules find nothing; on where one is configured."""
    pending_from: Ratio = 0.3
    """Less sure ones are not even pending."""
    pending: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Facts that wait to be promoted; beyond it the least sure, then the oldest goes."""
    pending_days: Annotated[float, Meta(gt=0, le=10_000)] = 90.0
    """A consolidation drops facts that waited longer."""
    most: Annotated[int, Meta(ge=10, le=200_000)] = 20_000
    """Memories of a project, archived ones among them; beyond it the archived that decayed most go from the state, then
    the weakest. The archive has all."""
    content_chars: Annotated[int, Meta(ge=40, le=MOST_CONTENT_CHARS)] = 1_000
    """Longest content taken; longer ones are refused, what is extracted is cut at a word."""
    tags: Annotated[int, Meta(ge=0, le=32)] = 8
    sources: Annotated[int, Meta(ge=1, le=64)] = 16
    """Places where it was said that a memory names: the first and the latest."""
    relationships: Annotated[int, Meta(ge=1, le=256)] = 64
    """That go out from a memory."""
    history: Annotated[int, Meta(ge=0, le=64)] = 16
    """Earlier states of knowledge that a memory keeps."""
    rivals: Annotated[int, Meta(ge=1, le=256)] = 32
    """Memories of one subject that are looked at when another of it comes, the latest."""
    results: Annotated[int, Meta(ge=1, le=64)] = 16
    """Outcomes of commands by hand that a project remembers."""
    related: Annotated[int, Meta(ge=0, le=16)] = 4
    """Relationships of a kind (`related_to`, `contradicts`) that a new memory gets by itself at the most (not in the
    source)."""
    related_overlap: Ratio = 0.5
    """Share of common tags (Jaccard) from which two memories are related."""

    def __post_init__(self) -> None:
        require(self.half_life > ZERO, "half_life must be positive")
        require(self.pending_from <= self.promote_from, "pending_from must not exceed promote_from")
        require(
            self.content_chars * (self.history + 1) <= MOST_MEMORY_CHARS,
            f"content_chars times history and one must not exceed {MOST_MEMORY_CHARS}: a memory is one record",
        )


class EpisodeSignificances(PolicySection, frozen=True, kw_only=True):
    """Of episodes by kind, before what raises it (not in the source)."""

    decision_made: Ratio = 0.6
    problem_solved: Ratio = 0.55
    breakthrough: Ratio = 0.75
    issue_identified: Ratio = 0.4
    task_completed: Ratio = 0.5
    pivot: Ratio = 0.75

    def of(self, kind: EpisodeKind) -> float:
        """Significance of an episode of which nothing else is known."""
        significance: float = getattr(self, kind.value)
        return significance


class NarrativePolicy(PolicySection, frozen=True, kw_only=True):
    """Episodes of a project (project memory, Layer 4). What makes them significant is the project's own."""

    significance: EpisodeSignificances = EpisodeSignificances()
    reason_gain: Ratio = 0.1
    """Added where a decision or a pivot says why."""
    emphasis_gain: Ratio = 0.05
    """Added for each emphatic word and exclamation mark, two at most."""
    importance_gain: Ratio = 0.3
    """Of the most important linked memory, by as much as it exceeds one half."""
    struggle_gain: Ratio = 0.25
    """Added to the solution of an issue that was open for `struggle_turns` or longer; of a shorter time its share."""
    struggle_turns: Annotated[int, Meta(ge=1, le=10_000)] = 40
    open_issues: Annotated[int, Meta(ge=1, le=16)] = 5
    """Of a conversation that wait for their solution, the latest."""
    near_turns: Annotated[int, Meta(ge=0, le=1_000)] = 20
    """A solution that names no topic of an open issue solves the last one, if that is not farther back."""

    most: Annotated[int, Meta(ge=1, le=1_000)] = 100
    """Of a project (`maxEpisodicMemories`); the one of the lowest significance × decay goes."""
    key_moment: Ratio = 0.7
    """Significance from which an episode is a key moment of the narrative arc."""
    min_significance: Ratio = 0.3
    """Less significant ones are none (not in the source)."""
    merge_gap_turns: Annotated[int, Meta(ge=0, le=50)] = 1
    """Two of one kind and conversation merge if at most so many turns lie between; overlapping ones always do."""
    title_chars: Annotated[int, Meta(ge=20, le=200)] = 100
    summary_chars: Annotated[int, Meta(ge=40, le=2_000)] = 500
    context_chars: Annotated[int, Meta(ge=0, le=2_000)] = 300
    participants: Annotated[int, Meta(ge=1, le=64)] = 16
    linked: Annotated[int, Meta(ge=0, le=64)] = 16
    """Memories that an episode is linked to."""
    half_life: timedelta = timedelta(days=30)
    """Of the decay, which is that of memories (project memory, Decay Function)."""
    access_boost: Ratio = 0.1
    access_boost_most: Ratio = 0.5

    def __post_init__(self) -> None:
        require(self.half_life > ZERO, "half_life must be positive")


class ConsolidationPolicy(PolicySection, frozen=True, kw_only=True):
    """Consolidation (project memory, Memory Consolidation), by the log's clock."""

    every: timedelta = timedelta(days=1)
    """Between the end of one and the begin of the next."""
    after_days: Annotated[float, Meta(ge=0, le=10_000)] = 30.0
    """Memories older than this may be archived (`consolidationThresholdDays`) …"""
    archive_below: Ratio = 0.3
    """… if importance × decay factor is below this …"""
    stays_in_force: tuple[MemoryType, ...] = (MemoryType.DECISION,)
    """… and they are of none of these types, or do not hold any longer (not in the source: it archives decisions that
    still hold)."""
    step_memories: Annotated[int, Meta(ge=10, le=10_000)] = 200
    """Looked at with one event, so that no event takes long; the next ones go on."""
    named: Annotated[int, Meta(ge=0, le=1_000)] = 200
    """Ids that its event names."""
    decay_change: Ratio = 0.1
    """A stored decay factor is brought up to date when it is off by this (not in the source), about every fifth day.
    Readers compute the present one."""

    def __post_init__(self) -> None:
        require(self.every > ZERO, "every must be positive")


class RetrievalWeights(PolicySection, frozen=True, kw_only=True):
    """Weights of the parts of the relevance (project memory, Multi-Strategy Scoring)."""

    semantic: _Weight = 0.4
    """TF-IDF similarity."""
    keyword: _Weight = 0.3
    """Share of the query's terms that it has."""
    recency: _Weight = 0.2
    importance: _Weight = 0.1
    access: _Weight = 0.0

    def __post_init__(self) -> None:
        require(self.semantic + self.keyword + self.recency + self.importance + self.access > 0, "all weights are 0")


class ProjectRetrievalPolicy(PolicySection, frozen=True, kw_only=True):
    """Retrieval of a project's memories (project memory, Retrieval System)."""

    weights: RetrievalWeights = RetrievalWeights()
    threshold: Ratio = 0.3
    """Less relevant ones are not given (`relevanceThreshold`)."""
    top_k: Annotated[int, Meta(ge=1, le=1_000)] = 10
    """`retrievalTopK`."""
    context_weight: Ratio = 0.3
    """What the similarity and share of terms of the context text add to those of the query ("for boosting")."""
    neighbour_share: Ratio = 0.5
    """What a memory pulled in over a relationship gets of the score of the hit, times the strength."""
    cached_items: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 200_000
    """Items of all projects that a reader keeps in memory; beyond it the project asked longest ago goes."""


class ContextPolicy(PolicySection, frozen=True, kw_only=True):
    """The context window (project memory, Budget Allocation)."""

    total_tokens: _Tokens = 128_000
    system_tokens: _Tokens = 2_000
    """Reserved for the system prompt."""
    working_tokens: _Tokens = 8_000
    """Reserved for the current turn."""
    recent_share: Ratio = 0.6
    """Of what is available for recent messages, the rest for retrieved memories."""
    query_messages: Annotated[int, Meta(ge=0, le=50)] = 4
    """Of the latest messages so many are the context of the query that memories are retrieved by (not in the
    source)."""

    def __post_init__(self) -> None:
        rest = self.total_tokens - self.system_tokens - self.working_tokens
        require(rest > 0, "total_tokens must exceed system_tokens and working_tokens together")


class ProjectPolicy(PolicySection, frozen=True, kw_only=True):
    """Memory of projects."""

    enabled: bool = True
    """Whether turns with a `project_id` go into a project's memory."""
    projects_of_session: Annotated[int, Meta(ge=1, le=64)] = 8
    """Projects of one session that are told of its end; more than one is rare."""
    ask: bool = False
    """Whether a slower summariser is asked for chunks and episodes; on where a language model is configured."""
    asked_tokens: Annotated[int, Meta(ge=100, le=10_000)] = 8_000
    """Of a chunk's or an episode's messages together, as the slower summariser sees them: each has the same share."""
    short_term: ShortTermPolicy = ShortTermPolicy()
    long_term: LongTermPolicy = LongTermPolicy()
    narrative: NarrativePolicy = NarrativePolicy()
    consolidation: ConsolidationPolicy = ConsolidationPolicy()
    retrieval: ProjectRetrievalPolicy = ProjectRetrievalPolicy()
    context: ContextPolicy = ContextPolicy()
