"""A user's message as the judgement keeps it: one turn, or several sent within seconds."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct, structs

from models.policy.stream import ZERO
from models.risk.sequence.observation import Observation
from models.text.features import Features


class Piece(Struct, array_like=True, frozen=True, gc=False):
    """A user turn, or all pieces of a message so far. Fields are only ever added at the end.

    Attributes:
        turn: Number of the latest piece; what is not named here is as in `Observation`.
        features: Bits, in the order of the fields of `Features`.
        at: Event time of the latest piece.
        counted: Counted turns of the session up to it, so that one in between is noticed.
        begun_at: Event time of the first piece; None where there is no other.
    """

    turn: int
    risk: float
    features: int
    marks: int
    nearness: float | None
    refused: bool
    at: datetime
    counted: int
    begun_at: datetime | None = None

    def continues(self, before: Piece, within: timedelta) -> bool:
        """Whether it is a further piece of the message `before`, whose first piece it is measured from.

        Measured from the latest, turns sent fast enough would be one message without end.
        """
        begun_at = before.begun_at or before.at
        return within > ZERO and self.counted == before.counted + 1 and abs(self.at - begun_at) <= within

    def joined_to(self, before: Piece) -> Piece:
        """The message with this piece: what stood before the message is what stood before its first piece."""
        return structs.replace(
            self,
            risk=max(self.risk, before.risk),
            features=self.features | before.features,
            marks=self.marks | before.marks,
            nearness=before.nearness,
            refused=before.refused,
            begun_at=before.begun_at or before.at,
        )

    def observation(self) -> Observation:
        """As the signals see it."""
        return Observation(self.turn, self.risk, _features_of(self.features), self.marks, self.nearness, self.refused)


def bits_of(features: Features) -> int:
    """Features as bits, the first field the lowest.

    >>> bits_of(Features(question=True, imperative=True))
    5
    """
    return sum([flag << place for place, flag in enumerate(structs.astuple(features))])


def _features_of(bits: int) -> Features:
    return Features(*[bits >> place & 1 == 1 for place in range(len(Features.__struct_fields__))])
