"""Who says a turn, where the turn itself says so: chats of several people come as "Anna: Shall we meet at six?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from models.text.words import fold_text, words_of

_NAMED = re.compile(r"\s*([^\W\d_][\w.' -]{0,39}):\s")
"""A name at the very beginning of a turn, and a colon."""


def speaker_of(content: str) -> str:
    """Name that a turn begins with, folded; empty where there is none.

    >>> speaker_of("Anna: at six?"), speaker_of("see https://example.org: it works")
    ('anna', '')
    """
    named = _NAMED.match(content)
    return fold_text(named[1]).strip() if named else ""


def speaker_bonuses(query: str, contents: Sequence[str], bonus: float) -> list[float]:
    """What each turn gets for being said by whom the query names.

    Nothing where the query names none of the speakers, or more than one: then it is about both.

    Args:
        query: The question.
        contents: Of the turns that are ranked.
        bonus: For a turn of the speaker that is named.
    """
    speakers = [speaker_of(content) for content in contents]
    asked = f" {' '.join(words_of(fold_text(query)))} "
    # "John's dog" is John's.
    asked = asked.replace("'s ", " ")
    named = {speaker for speaker in set(speakers) if speaker and f" {' '.join(words_of(speaker))} " in asked}
    return [bonus if len(named) == 1 and speaker in named else 0.0 for speaker in speakers]
