"""The time within which searches look, as conditions of the store."""

from datetime import UTC, date, datetime
from typing import NamedTuple

from streams.index.event_points import milliseconds
from streams.ports import Either, Where

EPOCH_DAY = date(1970, 1, 1).toordinal()


class Between(NamedTuple):
    """From a time to another, aware, both in it; turns are told apart to the millisecond.

    A turn is within it if it was said then, or tells of a day of it ("yesterday", "in May": `told_from` and `told_to`,
    of which a turn of an earlier release has none); an episode or a topic if it had begun and was not over.
    """

    first: datetime = datetime.min.replace(tzinfo=UTC)
    last: datetime = datetime.max.replace(tzinfo=UTC)

    def turns(self) -> Where:
        """What a turn's point must meet."""
        if self == ALWAYS:
            return {}
        low, high = (each.astimezone(UTC).date().toordinal() - EPOCH_DAY for each in self)
        said: Where = {"event_time_ms": (milliseconds(self.first), milliseconds(self.last))}
        return {"between": Either((said, {"told_from": (-EPOCH_DAY, high), "told_to": (low, date.max.toordinal())}))}

    def spans(self) -> Where:
        """What the point of an episode must meet."""
        if self == ALWAYS:
            return {}
        return {"started_at": (ALWAYS.first, self.last), "ended_at": (self.first, ALWAYS.last)}

    def of(self, field: str) -> Where:
        """What a time in the payload must meet."""
        return {} if self == ALWAYS else {field: (self.first, self.last)}

    def meets(self, first: datetime, last: datetime) -> bool:
        """Whether a span has a moment in it."""
        return first <= self.last and self.first <= last


ALWAYS = Between()
