"""Questions that gather on one matter, by vectors of the turns; 0 without them."""

from msgspec import Struct

from models.risk.sequence.observation import Observation
from models.state.vectors import TurnMark

NEAR = 0.4
"""Cosine from which two user turns are about one matter: follow-up questions reach it, other matters seldom do."""

ORDINARY_RISK = 0.1
"""Risk up to which a question counts nothing: to ask on about bread, trains or a cat is what people do. Counting every
question a little told the public dialogues apart as well, and alerted on each of six such rows of questions."""
QUESTION_GAIN = 2.4
"""What a question counts for each risk of 1 beyond that …"""
OPENING = 0.25
"""… and which part of it the first of a row does: a single question is no row yet."""
QUESTION_FADE, OTHER_FADE = 0.9, 0.7
"""What a question, and another kind of turn, leaves of the row; a word of thanks does not end it, and it is bounded."""
FULL_ROW = 1.0
"""Sum of a row at which the signal is 0.5: three questions of a risk of 0.3."""
_NOTHING_LEFT = 0.05


class InformationGathering(Struct, array_like=True, gc=False):
    """How, what, where, which, who or when asked in a row about one matter, the riskier the more.

    A question counts where it is `NEAR` the turn before it or near the risky matter (`TurnMark.GATHERED`).

    Attributes:
        row: Sum of the questions' weights, fading with every turn.
        questions: In the row.
        turn: The last of them.
    """

    why = "asks for particulars of one matter, {0.asked} up to turn {0.turn}"
    row: float = 0.0
    questions: int = 0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        nearness = seen.nearness
        related = seen.marks & TurnMark.GATHERED or (nearness is not None and nearness >= NEAR)
        if seen.features.wh_question and related:
            weight = QUESTION_GAIN * max(0.0, seen.risk - ORDINARY_RISK)
            self.row = self.row * QUESTION_FADE + (weight if self.questions else weight * OPENING)
            self.questions += 1
            self.turn = seen.turn
        else:
            self.row *= OTHER_FADE
            if self.row < _NOTHING_LEFT:
                self.row, self.questions = 0.0, 0

    @property
    def asked(self) -> str:
        """How many questions, in words."""
        return "1 question" if self.questions == 1 else f"{self.questions} questions"

    @property
    def value(self) -> float:
        """0-1."""
        return self.row / (self.row + FULL_ROW)
