"""Records of one producer's trace, and which of its headers came through."""

from collections import Counter
from collections.abc import Sequence

from models.events.topics import Topic
from models.wire.trace_context import TRACEPARENT
from streams.kafka.client import read_to_end
from streams.kafka.producer import Record
from streams.settings import Settings

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
HEADER = f"00-{TRACE_ID}-{SPAN_ID}-01".encode()


def traced(records: Sequence[Record], header: bytes = HEADER) -> list[Record]:
    """The same records with the header."""
    return [Record(record.key, record.value, [*record.headers, (TRACEPARENT, header)]) for record in records]


async def headers_on(settings: Settings, topic: Topic, kind: str) -> Counter[bytes | None]:
    """How many records of a kind of event on a topic have which `traceparent`; None: none.

    Raises:
        AssertionError: One has several.
    """
    found: Counter[bytes | None] = Counter()
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        if f'"type":"{kind}"'.encode() in (record.value or b""):
            values = [value for name, value in record.headers if name == TRACEPARENT]
            assert len(values) <= 1
            found[values[0] if values else None] += 1
    return found
