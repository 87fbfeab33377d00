"""Sessions as the sequence signals see them: a calm one, and one in which everything happens."""

from collections.abc import Iterable, Sequence

import msgspec

from models.risk.sequence import Observation, SequenceSignals
from models.state.vectors import TurnMark
from models.text.features import Features

FIRST_TURN = 70_000
"""Unlike any other number in a phrase, and as wide in msgpack as a turn of a long session."""


def risky(risks: Iterable[float], first: int = 0) -> list[Observation]:
    """Turns of which nothing but the risk is known."""
    return [Observation(turn, risk, Features()) for turn, risk in enumerate(risks, first)]


def calm(turns: int) -> list[Observation]:
    """Small talk: low risks that wander, a question now and then, from one matter to the next."""
    return [
        Observation(FIRST_TURN + n, 0.02 + n % 3 * 0.02, Features(question=n % 2 == 0), nearness=0.1 if n else None)
        for n in range(turns)
    ]


def escalating(turns: int) -> list[Observation]:
    """Risk rises after a role was set up, to the full; refusals are not taken, and everything else happens as well."""
    everything = TurnMark.REPHRASED | TurnMark.RETURNED | TurnMark.GATHERED
    pressing = Features(
        question=True, wh_question=True, imperative=True, hypothetical=True, meta_instruction=True, probing=True
    )
    opening = [Observation(FIRST_TURN, 0.05, Features(hypothetical=True))]
    return opening + [
        Observation(FIRST_TURN + n, min(0.95, 0.05 + 0.12 * n), pressing, everything, nearness=0.7, refused=True)
        for n in range(1, turns)
    ]


def after(seen: Sequence[Observation]) -> SequenceSignals:
    """The signals of a session after these turns."""
    signals = SequenceSignals()
    for observation in seen:
        signals.observe(observation)
    return signals


def value_after(name: str, seen: Sequence[Observation]) -> float:
    """One signal's value after these turns."""
    return after(seen).values()[name]


def state_of(signals: SequenceSignals) -> bytes:
    """As it is kept."""
    return msgspec.msgpack.encode(signals)


def restored(state: bytes) -> SequenceSignals:
    """As it is loaded."""
    return msgspec.msgpack.decode(state, type=SequenceSignals)
