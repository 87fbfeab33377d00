"""Technologies that a clause names, and which of them were chosen."""

from __future__ import annotations

import re
from typing import NamedTuple

from models.language.statements.lexicon import TECHNOLOGIES

Word = tuple[str, int]
"""A word, folded, and where it begins."""

_WORD = re.compile(r"[a-z0-9](?:[\w+#/'-]|\.(?=\w))*")
_CHOSEN = re.compile(
    r"(?:\b(?:use|uses|using|used|with|chose|choose|chosen|picked|pick|selected|select|adopted|adopting|adopt"
    r"|take|taking"
    r"|keep|keeping|preferred|prefers?|like|under|in favou?r of|opted for|settled for|go for|going for|then,?"
    r"|in|at|on|to|by|is|are)|^|:)"
    r"(?: (?:the|a|an|our))? ?$"
)
_REFUSED = re.compile(
    r"\b(?:from|instead of|rather than|against|over|than|not|drop|dropping|forget|replace|replacing|retire|without"
    r"|away from|no longer|of)(?: using)?(?: (?:the|a|an|our))? ?$"
)
_BARE = re.compile(r"\b(?:in|at|on|to|by|is|are|with) (?:the |a |an |our )?$")
_LED = re.compile(
    r"\b(?:migrat\w+|mov\w+|port|switch\w*|replac\w+|host\w*|deploy\w*|runs?|running|store|keep|writ\w+|rewrit\w+"
    r"|buil[dt]\w*|implement\w*|stick\w*|stay\w*|go|going|went|gone|licen[sc]\w+|publish\w*)\b"
    r"|\b(?:decided|settled|agreed) on (?:the |an? )?$"
)
"""What must stand before "in", "on", "to" … for what follows to be chosen: "built with", not "an index in"."""
_JOINED = (" and ", " or ", ", ")


class Named(NamedTuple):
    """A technology that a clause names: its fixed form, its slot, where it stands, whether it was chosen."""

    name: str
    slot: str
    start: int
    end: int
    chosen: bool


def positions_of(lower: str) -> list[Word]:
    """Words of a clause with their places; "node.js", "c++" and "ci/cd" are one each."""
    return [(match[0].rstrip("/'-"), match.start()) for match in _WORD.finditer(lower)]


def technologies_in(lower: str, words: list[Word]) -> list[Named]:
    """Technologies that a folded clause of these words names, in order.

    >>> clause = "we replace mysql with postgres"
    >>> [(each.name, each.chosen) for each in technologies_in(clause, positions_of(clause))]
    [('mysql', False), ('postgresql', True)]
    """
    found: list[Named] = []
    end = 0
    for (word, start), (following, _) in zip(words, [*words[1:], ("", 0)], strict=True):
        pair = f"{word} {following}"
        name = pair if pair in TECHNOLOGIES else word
        if name not in TECHNOLOGIES or start < end:
            continue
        slot, fixed = TECHNOLOGIES[name]
        before, end = lower[:start], start + len(name)
        joined = bool(found) and found[-1].chosen and before.endswith(_JOINED) and found[-1].end > start - len(" and  ")
        found.append(Named(fixed, slot, start, end, joined or _is_choice(before)))
    return found


def _is_choice(before: str) -> bool:
    """Whether what stands before says that what follows was chosen."""
    if _REFUSED.search(before) or not _CHOSEN.search(before):
        return False
    return _BARE.search(before) is None or _LED.search(before) is not None
