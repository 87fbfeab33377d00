"""Rules of topic memory, with the source's defaults. Part of `models.policy`, which has the whole."""

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta

from models.events import Ratio
from models.policy.stream import ZERO, PolicySection, require

SEED_SIMILARITY = 0.7
"""The source's threshold. It belongs to sentence-transformer embeddings: each embedder has its own, measured."""


class TopicPolicy(PolicySection, frozen=True, kw_only=True):
    """Topics of one session (topic memory, Configuration). A turn is one message, as in the source."""

    enabled: bool = True
    """Whether topics are kept at all."""
    max_topics: Annotated[int, Meta(ge=1, le=40)] = 20
    """Topics before they decay (topic memory)."""
    most_topics: Annotated[int, Meta(ge=2, le=60)] = 40
    """Topics at the most: decay evicts only what has faded, and of fresh topics nothing has. Beyond this the one with
    the lowest priority goes, faded or not."""
    similarity_threshold: Ratio | None = None
    """Cosine above which a message joins a topic. None: the embedder's own (see `turntide lab eval topics`); the
    source's is 0.7, for sentence-transformer embeddings."""
    active_bonus: Ratio = 0.1
    """Added to the active topic's cosine, since people stay with a matter more often than they leave it; 0 is the
    source's rule. Measured by `turntide lab eval topics`."""
    base_half_life: timedelta = timedelta(days=1)
    """Half-life of a topic that was accessed less than `access_threshold` times (topic memory)."""
    max_half_life: timedelta = timedelta(days=30)
    """Longest half-life (topic memory)."""
    access_threshold: Annotated[int, Meta(ge=1, le=1_000)] = 5
    """Accesses that double the half-life (topic memory, `access_threshold_for_lt`)."""
    min_priority: Ratio = 0.05
    """Above `max_topics`, topics with a lower priority are evicted (topic memory)."""
    recalled: Annotated[int, Meta(ge=0, le=40)] = 20
    """Topics of a user that a session gets when the user comes back, those of the highest priority; 0: none is kept
    when a session ends. A user's memory keeps `most_topics`, each until its priority is below `min_priority`."""
    importance: Ratio = 1.0
    """Of a topic that nobody rated: the source's tables begin with a priority of 1 (topic memory, Topic Decay)."""
    feedback_rate: Ratio = 0.2
    """How far one full feedback moves the importance towards 1 or 0."""
    max_messages: Annotated[int, Meta(ge=2, le=50)] = 12
    """Messages of a topic before it is compacted (topic memory, `max_messages_per_topic`)."""
    keep_messages: Annotated[int, Meta(ge=1, le=49)] = 4
    """Latest messages that stay when it is (topic memory, `recent_message_keep`)."""
    title_chars: Annotated[int, Meta(ge=1, le=400)] = 80
    """Length of a title (topic memory)."""
    message_chars: Annotated[int, Meta(ge=100, le=16_000)] = 16_000
    """Longest message kept in a topic; the archive has all of it. Bounds the state."""
    summary_sentences: Annotated[int, Meta(ge=1, le=10)] = 3
    """Sentences of a topic's summary that say most. Behind them come others that tell a name, a number, a decision or a
    preference, as many as have room in so many sentences of full length (280 characters)."""
    summary_also_chars: Annotated[int, Meta(ge=0, le=1_000)] = 400
    """Behind the sentences, words of this length together for what was spoken of besides, the latest last."""
    codec: Literal["zstd", "gzip", "deflate"] = "zstd"
    """How older messages are packed: `zstd` with a trained dictionary; `gzip` is the source's, JSON → gzip → base64,
    readable anywhere; `deflate` came before zstd. What was packed by any of them is read whatever this says."""
    block_messages: Annotated[int, Meta(ge=1, le=64)] = 32
    """Messages of one packed block: the last block is merged with what is packed next, full ones are left alone, so
    that a long topic costs no more than a short one."""
    block_bytes: Annotated[int, Meta(ge=1_024, le=16_384)] = 8_192
    """JSON after which a block is full."""
    history_bytes: Annotated[int, Meta(ge=1_024, le=65_536)] = 12_288
    """JSON of the packed history kept per topic, since that is what it takes when it is unpacked. The oldest block
    beyond it is released: it is in the archive alone then."""
    blocks: Annotated[int, Meta(ge=1, le=8)] = 8
    """Packed blocks kept per topic."""
    ask: bool = False
    """Whether a slower summariser is asked at each compaction; on where a language model is configured."""
    asked_chars: Annotated[int, Meta(ge=100, le=2_000)] = 1_000
    """Length of a message as the slower summariser sees it."""
    tags: Annotated[int, Meta(ge=0, le=32)] = 16
    """Tags of a topic …"""
    tag_chars: Annotated[int, Meta(ge=1, le=64)] = 64
    """… and their length."""

    @property
    def threshold(self) -> float:
        """`similarity_threshold`, or the source's where neither policy nor embedder says."""
        return SEED_SIMILARITY if self.similarity_threshold is None else self.similarity_threshold

    def __post_init__(self) -> None:
        positive = ZERO < self.base_half_life <= self.max_half_life
        require(positive, "base_half_life must be positive and at most max_half_life")
        require(self.keep_messages < self.max_messages, "keep_messages must be less than max_messages")
        require(self.max_topics <= self.most_topics, "max_topics must not exceed most_topics")
