"""Rules of the stream rather than of a session: event-time windows, what a partition keeps, what is refused.

Part of `models.policy`, which has the whole.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from models.events import MAX_CONTENT_BYTES, Ratio

Count = Annotated[int, Meta(ge=1, le=10_000)]
ZERO = timedelta(0)
_MOST_SLIDES = 60


def require(holds: bool, message: str) -> None:
    """Check a rule between fields.

    Raises:
        ValueError: It does not hold; msgspec names the field.
    """
    if not holds:
        raise ValueError(message)


class PolicySection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the sections: immutable, and a misspelt field is an error."""


class WindowShape(PolicySection, frozen=True, kw_only=True):
    """Event-time windows `[start, start + length)`, one every `slide`; tumbling when both are equal."""

    length: timedelta = timedelta(minutes=5)
    slide: timedelta = timedelta(minutes=1)
    grace: timedelta = timedelta(seconds=30)
    """A window closes when the watermark reaches its end plus this."""

    def __post_init__(self) -> None:
        require(self.slide > ZERO and self.grace >= ZERO, "slide must be positive, grace not negative")
        whole = self.length >= self.slide and self.length % self.slide == ZERO
        require(whole, "length must be a whole multiple of slide")
        few = self.length // self.slide <= _MOST_SLIDES
        require(few, f"at most {_MOST_SLIDES} slides per length: each is kept in the state")

    @property
    def panes(self) -> int:
        """Slides that can be open at once, without lateness."""
        return -(-(self.length + self.grace) // self.slide) + 1


class PartitionPolicy(PolicySection, frozen=True, kw_only=True):
    """What is kept per partition, over its sessions."""

    watermark_lateness: timedelta = ZERO
    """How far the watermark stays behind the newest event time."""
    app_window: WindowShape = WindowShape(length=timedelta(minutes=1))
    """Windows per app on one partition; not in the source: a minute, tumbling."""
    open_apps: Annotated[int, Meta(ge=1, le=100_000)] = 10_000
    """Apps with open windows at once, per partition; turns of further ones count for the app `(other)`."""
    open_sessions: Annotated[int, Meta(ge=1, le=10_000_000)] = 1_000_000
    """Open sessions per partition; beyond it the one that is silent longest is closed. A net below what memory bears:
    `turntide lab bench memory` shows what a session takes."""
    closed_sessions: Annotated[int, Meta(ge=0, le=10_000_000)] = 20_000
    """Closed sessions per partition that are remembered within `session.closed_retention`; beyond it the one that
    closed first is forgotten, and a late turn of it opens it anew."""

    def __post_init__(self) -> None:
        require(self.watermark_lateness >= ZERO, "watermark_lateness must not be negative")


class IntakePolicy(PolicySection, frozen=True, kw_only=True):
    """What is refused at the door, and when dead letters are too many to keep their bytes (design §5.7)."""

    max_content_bytes: Annotated[int, Meta(ge=1, le=MAX_CONTENT_BYTES)] = MAX_CONTENT_BYTES
    """Longest content of a turn, UTF-8 (design §6)."""
    max_record_bytes: Annotated[int, Meta(ge=1_024, le=16_777_216)] = 1_048_576
    """Largest key and value together; the topic's own limit is one of compressed batches."""
    earliest_time: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    """Event times before it are a broken clock."""
    future_skew: timedelta = timedelta(minutes=5)
    """How far event time may be ahead of the broker's append time."""
    dead_letter_consecutive: Annotated[int, Meta(ge=1)] = 1_000
    """After this many refused offsets in a row letters of that partition leave out the bytes, but for a sample."""
    dead_letter_ratio: Ratio = 0.9
    """So they do after this share of the last `dead_letter_window` offsets was refused."""
    dead_letter_window: Annotated[int, Meta(ge=1)] = 1_000
    """Offsets the ratio is taken over; in a flood one letter in so many keeps its bytes."""

    def __post_init__(self) -> None:
        require(self.earliest_time.tzinfo is not None, "earliest_time needs an offset, for instance Z")
        require(self.future_skew >= ZERO, "future_skew must not be negative")
