"""Findability of packed messages.

By a search of the summary that stands for them (each compaction's own probes), and in the session's vector memory,
which has every message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from jobs.lab.bench.topics_walk import LongSession, Walked
from models.policy import Policy
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.ports import Embedder

TOP_K = 5
_FIRST_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|\n|$)", re.DOTALL)
_LEAST_WORDS = 3
"""A first sentence of fewer words (thanks, yes) asks for nothing in particular."""


class Probes(Struct, frozen=True):
    """What a search finds of packed messages.

    Attributes:
        compactions: How many.
        probes: Packed messages that name something to search a summary for.
        loss: Share of them that the summary alone no longer finds.
        searched: Packed messages looked for in the vector memory by their first sentence.
        found_ratio: Share of them among the five nearest; a message of the same words counts as found.
        searched_in_part: Those of them with more than one sentence, where the query is a part only …
        found_in_part_ratio: … and the share found.
    """

    compactions: int
    probes: int
    loss: float
    searched: int
    found_ratio: float
    searched_in_part: int
    found_in_part_ratio: float


async def probe_packed(
    sessions: Sequence[LongSession], walked: Walked, embedder: Embedder, policy: Policy, *, most: int
) -> Probes:
    """Look for packed messages, at most so many, from all sessions alike.

    The vector memory is Qdrant Edge in a temporary folder, filled as the index role fills it.
    """
    packed = sorted({(number, turn) for number, lineage in walked.compactions for turn in lineage.turns})
    asked = [place for place in packed if len(first_sentence(_content(sessions, place)).split()) >= _LEAST_WORDS]
    asked = asked[:: -(-len(asked) // most) or 1]
    with TemporaryDirectory(prefix="turntide-bench-") as folder:
        found = await _search(sessions, asked, embedder, policy, Path(folder))
    in_part = [place for place in asked if _in_part(_content(sessions, place))]
    probes = sum(lineage.probes for _, lineage in walked.compactions)
    still = sum(lineage.probes_found for _, lineage in walked.compactions)
    return Probes(
        compactions=len(walked.compactions),
        probes=probes,
        loss=1 - still / probes if probes else 0.0,
        searched=len(asked),
        found_ratio=_share(asked, found),
        searched_in_part=len(in_part),
        found_in_part_ratio=_share(in_part, found),
    )


def first_sentence(content: str) -> str:
    """A message's first sentence or line.

    >>> first_sentence("My parcel is late. Where is it?")
    'My parcel is late.'
    """
    found = _FIRST_SENTENCE.match(content.strip())
    return found[0].strip() if found else ""


def _in_part(content: str) -> bool:
    return len(first_sentence(content)) < len(content.strip())


def _content(sessions: Sequence[LongSession], place: tuple[int, int]) -> str:
    number, turn = place
    return sessions[number].turns[turn].content


def _share(places: Sequence[tuple[int, int]], found: set[tuple[int, int]]) -> float:
    return sum(place in found for place in places) / len(places) if places else 1.0


async def _search(
    sessions: Sequence[LongSession],
    asked: Sequence[tuple[int, int]],
    embedder: Embedder,
    policy: Policy,
    folder: Path,
) -> set[tuple[int, int]]:
    store = EdgeStore(folder, embedder=embedder.name)
    memory = SessionVectorMemory(store, embedder, keep_turns=policy.memory.stored_vectors)
    found = set()
    try:
        for session in sessions:
            await memory.add_turns(session.turns, session.vectors)
        for place in asked:
            content = _content(sessions, place)
            session_id = sessions[place[0]].turns[0].session_id
            hits = await memory.find_similar(first_sentence(content), session_id, TOP_K)
            if any(hit.turn == place[1] or hit.content == content for hit in hits):
                found.add(place)
    finally:
        await store.close()
    return found
