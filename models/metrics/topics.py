"""Metrics of topic memory. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter

TOPIC_METRICS = (
    counter(
        "topic_changes_total",
        "changes",
        "cause",
        means="Changes of conversation topics: started, returned, compacted, unpacked, merged, evicted and others.",
        do="Hardly any returned beside started: the similarity threshold is too high for this embedder, see "
        "`turntide eval topics`. Evicted as often as started: topics do not last, look at the half-lives.",
    ),
    counter(
        "topic_history_bytes_total",
        "bytes",
        means="JSON of the messages that compactions of topics packed.",
        do="Compare with topic_packed_bytes_total: that by this is the ratio of packing.",
    ),
    counter(
        "topic_packed_bytes_total",
        "bytes",
        means="The same messages, packed.",
        do="More than half of topic_history_bytes_total: messages are short or all unlike; the codec deflate packs "
        "such ones better.",
    ),
)
