"""The labelled set of `turntide eval facts`: messages, and what should be remembered of each.

Of the 599 messages that Turntide brings, 429 are `dev`: rules have been mended by looking at them. The 170 of `test`
were written without sight of the rules, and to be unlike the others: facts in passing, in rare wordings, common
sentences left out ("thats me", "cant stand them", "New number! use …"). So `test` says what rules miss at the worst (a
third is found); 171 rows of `dev` in usual wordings gave precision 0.88 at recall 0.87 before they were looked at. Once
rules have been mended by looking at rows of `test`, these belong to `dev` and new ones have to be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from jobs.lab.eval.labelled import read_labelled
from models.events.user import FactCategory, FactKey, FactValue

Split = Literal["dev", "test"]
Kind = Literal[
    "fact",
    "multi",
    "change",
    "correction",
    "retraction",
    "hypothetical",
    "quote",
    "other_person",
    "negation",
    "temporary",
    "question",
    "detail",
    "roleplay",
    "pasted",
]
"""The first five say something to remember or to forget; most of the others only look as if they did."""

_OWN_SET = "fact_messages.jsonl"


class LabelledFact(Struct, frozen=True, forbid_unknown_fields=True):
    """A fact the message states. A key of None stands for one nobody can guess: category and value count alone."""

    category: FactCategory
    key: FactKey | None
    value: FactValue


class LabelledRetraction(Struct, frozen=True, forbid_unknown_fields=True):
    """What the message takes back. None in both: everything."""

    category: FactCategory | None
    key: FactKey | None


class LabelledMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A user's message and its labels.

    Attributes:
        id: Unique in the set.
        split: Rules may be written by looking at `dev`; `test` is for measuring alone.
        kind: Why the message is in the set.
        content: As the user writes it.
        facts: What it states, in order.
        retractions: What it takes back, in order.
    """

    id: str
    split: Split
    kind: Kind
    content: str
    facts: list[LabelledFact]
    retractions: list[LabelledRetraction]

    @property
    def says_nothing(self) -> bool:
        """Nothing is to be remembered or forgotten."""
        return not self.facts and not self.retractions


def read_messages(file: Path | None = None) -> list[LabelledMessage]:
    """Read a labelled set, a JSON object on each line; blank lines are skipped.

    Args:
        file: None: the set that Turntide brings.

    Raises:
        ConfigurationError: The file cannot be read, a line is not a labelled message, or an id comes twice.
    """
    return read_labelled(LabelledMessage, file, _OWN_SET, "messages")
