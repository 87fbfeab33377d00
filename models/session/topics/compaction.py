"""Compaction and unpacking of one topic (topic memory, §2 and §4).

A compaction packs all messages at hand but the last few, takes them into the summary, and merges them with the last
packed block if that has room. Nothing is rewritten that is full, so a long topic costs no more than a short one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from models.events import TopicCompaction
from models.language.notable import tells_something
from models.policy.topic import TopicPolicy
from models.session.topics.packing import json_bytes
from models.session.topics.state import Announcer, BlockRef, TopicChange, TopicSummary, entry_of, in_time_order
from models.session.topics.store import TopicStore
from models.state.buffer import BufferedTurn
from models.text.summary import EXTRACTIVE, Passage, summarise, topics_of
from models.text.words import estimate_tokens, fold_text, latest_that_fit, words_of

SENTENCE_CHARS = 280
"""Longest sentence of a summary; bounds the state."""


def unpack_history(store: TopicStore, slot: int, emit: Announcer) -> None:
    """Bring a topic's packed messages to hand.

    It may then grow by as much as a compaction packs before it is compacted again: that is what prevents thrashing.
    """
    policy = store.policy
    topic = store.touch(slot)
    for block in topic.packed:
        damage = store.unpack_block(slot, block)
        if damage is not None:
            emit.damage(damage)
    room = policy.max_messages - policy.keep_messages
    topic.compact_above = max(policy.max_messages, topic.active_messages + room)


def compact_if_due(store: TopicStore, slot: int, emit: Announcer) -> None:
    """Compact a topic that holds more messages than it may."""
    topic = store.topic(slot)
    if topic.active_messages <= topic.compact_above:
        return
    policy, topic = store.policy, store.touch(slot)
    for block in topic.unpacked:
        block.at_hand = False
    messages = store.latest_messages(slot)
    older = messages[: -policy.keep_messages]
    before = store.summary(slot)
    summary = take_into_summary(store, slot, [Passage(m.content, m.risk or 0.0) for m in older])
    for message in older:
        store.drop_message(slot, message.turn)
    blocks = pack_history(store, slot, older, emit)
    released = release_oldest(store, slot)
    topic.compact_above = policy.max_messages
    probed = probe([message.content for message in older], summary.text, store.risky)
    size, after = sum([block.json_bytes for block in blocks]), sum([block.packed_bytes for block in blocks])
    lineage = TopicCompaction(
        turns=[message.turn for message in older],
        tokens_before=sum([estimate_tokens(message.content) for message in older]),
        tokens_after=estimate_tokens(summary.text),
        bytes_before=size,
        bytes_after=after,
        ratio=after / size if size else 1.0,
        summarised_by=summary.summarised_by,
        probes=probed.probes,
        probes_found=probed.found,
        loss=probed.loss,
        codec=policy.codec,
        released_turns=released,
    )
    said = "" if before is None else before.text
    emit.topic(TopicChange(slot, "compacted", compaction=lineage, packed=older, before=said))


def pack_history(store: TopicStore, slot: int, older: Sequence[BufferedTurn], emit: Announcer) -> list[BlockRef]:
    """Merge messages with the last packed block if it has room, and pack them; gives the blocks that were written."""
    if not older:
        return []
    policy, topic = store.policy, store.touch(slot)
    last = topic.packed[-1] if topic.packed else None
    merged = list(older)
    if last and last.messages < policy.block_messages and last.json_bytes < policy.block_bytes:
        before, damage = store.read_block(slot, last)
        if damage is not None:
            store.release(slot, damage.turns)
            emit.damage(damage)
        merged = in_time_order([*before, *older])
        store.remove_block(slot, last)
    return [store.pack_block(slot, block, policy.codec, size) for block, size in _blocks(merged, policy)]


def release_oldest(store: TopicStore, slot: int) -> list[int]:
    """Let blocks go beyond what is kept of one topic; the archive has them. Gives their turns."""
    policy, topic = store.policy, store.touch(slot)
    released: list[int] = []
    while len(packed := topic.packed) > 1 and (
        len(packed) > policy.blocks or sum([block.json_bytes for block in packed]) > policy.history_bytes
    ):
        turns = store.block_turns(slot, packed[0])
        store.remove_block(slot, packed[0])
        store.release(slot, turns)
        released += turns
    return released


def take_into_summary(store: TopicStore, slot: int, passages: Sequence[Passage]) -> TopicSummary:
    """Take passages into a topic's summary: it is updated, not made anew (topic memory, multi-turn summarisation)."""
    before = store.summary(slot)
    if before is not None and not passages:
        return before
    earlier, also = list[Passage](), ""
    if before is not None:
        told = before.summarised_by != EXTRACTIVE  # then no matters stand behind it, whatever its words
        text, also = (before.text, "") if told else before.text.partition(_ALSO)[::2]
        earlier = [Passage(text, told=told)]
    made = summarise(
        [*earlier, *passages],
        sentences=store.policy.summary_sentences,
        sentence_chars=SENTENCE_CHARS,
        key_topics=0,
        risky=store.risky,
        tells=tells_something,
        told_chars=store.policy.summary_sentences * (SENTENCE_CHARS + 1),
    )
    summary = TopicSummary(_with_matters(made.text, also, passages, store), EXTRACTIVE)
    store.put_summary(slot, summary)
    return summary


_NAME_OR_NUMBER = re.compile(r"\d[\d.,:]*\d|\d|(?<=[a-z,] )[A-Z]\w{1,30}")
_ALSO = " Also: "
"""Between the sentences of a summary and the matters that they do not name."""


def _with_matters(text: str, also: str, passages: Sequence[Passage], store: TopicStore) -> str:
    """A summary with what else was spoken of, the latest last: names, numbers and the words that say most."""
    named = set(_matters(text, store.risky, len(text)))
    matters = dict.fromkeys(also.rstrip(".").split(", ") if also else ())
    for passage in passages:
        said = [each for each in _NAME_OR_NUMBER.findall(passage.content)[:_NAMED] if each not in text]
        for matter in [*said, *(each for each in _matters(passage.content, store.risky, _NAMED) if each not in named)]:
            matters.pop(matter, None)
            matters[matter] = None
    kept = latest_that_fit(list(matters), store.policy.summary_also_chars, lambda matter: len(matter) + 2)
    return f"{text}{_ALSO}{', '.join(kept)}." if kept else text


def _matters(text: str, risky: tuple[str, ...], most: int) -> list[str]:
    return topics_of(words_of(fold_text(text)), risky, most)


def _blocks(messages: Sequence[BufferedTurn], policy: TopicPolicy) -> Iterator[tuple[list[BufferedTurn], int]]:
    """Messages cut into blocks that are full or the last, each with the size of its JSON."""
    block: list[BufferedTurn] = []
    size = 1  # two brackets, and a comma after each message but the last
    for message in messages:
        block.append(message)
        size += len(json_bytes([entry_of(message)])) - 1
        if len(block) >= policy.block_messages or size >= policy.block_bytes:
            yield block, size
            block, size = [], 1
    if block:
        yield block, size


_NAMED = 3
"""Topics a message is searched by: its most specific ones."""


class Probed(Struct, frozen=True, gc=False):
    """How many messages could be searched for, and how many of them are found."""

    probes: int
    found: int

    @property
    def loss(self) -> float:
        """Share that is not found; 0 without probes."""
        return 1.0 - self.found / self.probes if self.probes else 0.0


def probe(messages: Sequence[str], summary: str, risky: tuple[str, ...] = ()) -> Probed:
    """Search a summary for each message by its most specific topics; found if it names at least half of them.

    A message that names nothing (thanks, yes) is no probe.

    >>> probe(["My parcel from Lisbon is late", "Thanks!"], "The parcel is late.")
    Probed(probes=1, found=1)
    """
    searches = [_matters(message, risky, _NAMED) for message in messages]
    named = set(_matters(summary, risky, len(summary)))
    asked = [topics for topics in searches if topics]
    return Probed(len(asked), sum([2 * len(named.intersection(topics)) >= len(topics) for topics in asked]))
