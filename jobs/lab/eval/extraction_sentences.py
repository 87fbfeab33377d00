"""The labelled set of `turntide eval extraction`: messages of project talk, and what each of them states.

| split | messages | how they came to be |
|---|---|---|
| `dev` | 587 | rules are mended by looking at them |
| `test` | 167 | worded differently from the first 239 of `dev`, but by the same hand and shortly before the rules |
| `rare` | 33 | written after the first rules, to be unlike all others ("I'm calling it: …") |
| `foreign` | 120 | messages of teams of all trades, terse and long, typed in haste, lists, several statements in one |

`foreign` is the figure to go by. It is the even half of 240 messages (`team-…`) that were written and labelled before
their writer had seen the rules: the rules of that time found F1 0.282 in it (0.270 in all 240). The odd half was given
to `dev`, and rules were then mended by `dev` alone; what is missed in `test`, `rare` and `foreign` has not been looked
at; figures of `foreign` by type and difficulty were, once, before clauses joined by a comma were told apart. Whoever
mended them had written both halves and remembers some, so even `foreign` is an upper bound. Two later lots, now
`team-dev-…`, were measured before rules were mended by them: 80 plainly worded messages had F1 0.769, 115 that were to
be unlike the others 0.300. Rules know wordings, not meanings: what nobody thought of is not found.

How good `held_out` looks depends on how many of each there are, so read the splits apart: when all 66 odd sentences of
`rare` (33 of them now `dev`) were held out beside `test`, it was 0.748. Once rules have been mended by rows of
another split, these belong to `dev` and new ones have to be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from jobs.lab.eval.labelled import read_labelled
from models.events.base import Role
from models.events.project_items import MemoryType

Split = Literal["dev", "test", "rare", "foreign"]
Difficulty = Literal[
    "plain",
    "change",
    "against",
    "accepted",
    "several",
    "rare",
    "terse",
    "informal",
    "long",
    "question",
    "negated",
    "hypothetical",
    "third_person",
    "reported",
    "past",
    "small_talk",
    "look_alike",
    "code",
    "proposal",
]
"""The first nine state something, or most of them do; the others only look as if they did."""

_OWN_SET = "extraction_sentences.jsonl"


class LabelledStatement(Struct, frozen=True, forbid_unknown_fields=True):
    """A statement that the message makes. A subject of None is not looked at, an empty one must be empty."""

    type: MemoryType
    subject: str | None = None


class LabelledSentence(Struct, frozen=True, forbid_unknown_fields=True):
    """A message and what it states.

    Attributes:
        id: Unique in the set.
        split: See the module.
        difficulty: Why the message is in the set.
        role: Who says it.
        text: As it is written.
        expected: What it states, in order; empty for nothing.
        context: The assistant's message before it, where it matters.
    """

    id: str
    split: Split
    difficulty: Difficulty
    role: Role
    text: str
    expected: list[LabelledStatement]
    context: str = ""


def read_sentences(file: Path | None = None) -> list[LabelledSentence]:
    """Read a labelled set, a JSON object on each line; blank lines are skipped.

    Args:
        file: None: the set that Turntide brings.

    Raises:
        ConfigurationError: The file cannot be read, a line is not a labelled sentence, or an id comes twice.
    """
    return read_labelled(LabelledSentence, file, _OWN_SET, "sentences")
