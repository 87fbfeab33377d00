"""Fields of a turn's point that the ranker reads: made when the turn is indexed, not for every question."""

from models.events import Turn
from models.retrieval.event_times import DayInterval, event_interval
from models.retrieval.fusion import Place
from models.retrieval.ranker import CandidateTurn
from models.retrieval.traits import TurnTraits, speaker_of, traits_of
from streams.index.between import EPOCH_DAY
from streams.index.collections import TURNS
from streams.index.event_points import Payload

_DAY_MS = 86_400_000


def trait_fields(turn: Turn) -> Payload:
    """`traits`, and `told_from` and `told_to`: the days since 1970 that the turn tells of; None if it tells of none."""
    told = event_interval(turn.content, turn.timestamp.date())
    return {
        "traits": traits_of(turn.content).packed(),
        "told_from": told and told.first - EPOCH_DAY,
        "told_to": told and told.last - EPOCH_DAY,
    }


def candidate_of(place: Place, payload: Payload) -> CandidateTurn:
    """What the ranker looks at, of a point of a turn; of one without these fields it is made of the text."""
    if not payload.get("traits"):
        payload = {**payload, **trait_fields(TURNS.event_of(payload))}
    first, last = payload.get("told_from"), payload.get("told_to")
    return CandidateTurn(
        place,
        speaker_of(str(payload["content"])),
        int(payload.get("event_time_ms") or 0) // _DAY_MS + EPOCH_DAY,
        DayInterval(first + EPOCH_DAY, last + EPOCH_DAY) if isinstance(first, int) and isinstance(last, int) else None,
        TurnTraits.unpacked(str(payload["traits"])),
    )
