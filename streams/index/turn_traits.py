"""Fields of a turn's point that the ranker reads: made when the turn is indexed, not for every question."""

from collections.abc import Sequence

import msgspec

from models.events import Turn
from models.retrieval.event_times import DayInterval, event_interval
from models.retrieval.lexical import terms_of, words_in
from models.retrieval.ranker import CandidateTurn
from models.retrieval.traits import packed_traits, speaker_of
from models.text.language import language_of
from streams.index.between import EPOCH_DAY
from streams.index.collections import TURNS
from streams.index.event_points import REST, Payload
from streams.ports import Point, SearchHit, Vectors

_DAY_MS = 86_400_000
_LOOKS = "looks"


class _Said(msgspec.Struct):
    """What the ranker reads of a point's text, or of the payload of a point that an earlier release wrote."""

    content: str
    role: str
    event_time_ms: int | None = None
    told_from: int | None = None
    told_to: int | None = None
    traits: str | None = None


_said = msgspec.json.Decoder(_Said).decode


def turn_point(
    turn: Turn, offset: int | None, vector: Vectors, extra: Payload | None = None, language: str | None = None
) -> Point:
    """The point of a turn, whose text is cut into words once, and asked for its language where that is not given.

    See `Collection.point`.
    """
    words = words_in(turn.content)
    language = language_of(turn.content) if language is None else language
    found_by = TURNS.found_by(turn, terms_of(words, language))
    return TURNS.point(
        turn, offset, vector, extra={**_trait_fields(turn, words, language), **(extra or {})}, words=found_by
    )


def _trait_fields(turn: Turn, words: Sequence[str], language: str) -> Payload:
    """`traits`, and `told_from` and `told_to`: the days since 1970 that the turn tells of; None if it tells of none."""
    told = event_interval(turn.content, turn.timestamp.date(), words)
    return {
        "traits": packed_traits(turn.content, words, language),
        "told_from": told and told.first - EPOCH_DAY,
        "told_to": told and told.last - EPOCH_DAY,
    }


def candidate_of(place: tuple[str, int], carried: float, session_best: float, hit: SearchHit) -> CandidateTurn:
    """What the ranker looks at, of a turn that was found, its session's key and number, and its scores."""
    if (looks := hit.memo.get(_LOOKS)) is None:
        looks = hit.memo[_LOOKS] = _looks(hit.payload)
    speaker, role, said, event, traits = looks
    return CandidateTurn(place, speaker, role, said, event, traits, carried, session_best, hit.score)


def _looks(payload: Payload) -> tuple[str, str, int, DayInterval | None, str]:
    """What a candidate is whatever is asked, of a turn's payload; without traits it is made of the text."""
    rest = payload.get(REST)
    said = _said(rest) if isinstance(rest, str) else msgspec.convert(payload, _Said)
    if not said.traits:
        turn = TURNS.event_of(payload)
        said = msgspec.convert(
            {**payload, **_trait_fields(turn, words_in(turn.content), language_of(turn.content))}, _Said
        )
    first, last = said.told_from, said.told_to
    return (
        speaker_of(said.content),
        said.role,
        (said.event_time_ms or 0) // _DAY_MS + EPOCH_DAY,
        None if first is None or last is None else DayInterval(first + EPOCH_DAY, last + EPOCH_DAY),
        said.traits or "",
    )
