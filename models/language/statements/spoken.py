"""Filter of a message to what its speaker says: sentences without code, logs, quotes and pastes; and their clauses.

Hasty spellings are written out (`written_out`), so that each wording needs one rule: "cant" is "can't".
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from models.language.facts.statements import FENCE, plain
from models.text.summary import SENTENCE
from models.text.tables import PatternTables, by_way

_RE = PatternTables("statements_patterns").section("spoken")

_WORDINGS = PatternTables("wordings", flags=re.IGNORECASE)
_HEADING = _WORDINGS.pattern("HEADING")
"""Of a list, where it says what its items are."""
_PEOPLE = _WORDINGS.pattern("SEVERAL_PEOPLE")
"""Several in a line."""
MAX_SENTENCES = 60
"""Of one message; a longer one is a document."""
MAX_SENTENCE_CHARS = 600
"""Longer ones are no statement."""
MAX_HEADING_CHARS = 60
_BULLET = re.compile(r"\A[ \t]*(?:[-*+\u2022]|\d{1,2}[.)])[ \t]+|\A[ \t]*#{1,6}[ \t]+")
_SPEECH = re.compile(r'"[^"\n]{1,600}"?')
_TERM_WORDS = 3
"""So many words in quotes are a name; more are somebody's speech."""
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|min|max|no|Mr|Mrs|Ms|Dr)\.(?= )")
_CONTRACTED = (
    "can't won't don't doesn't didn't isn't aren't wasn't weren't haven't hasn't shouldn't couldn't wouldn't mustn't "
    "I'm I've you're they're we've that's"
)
_WRITTEN_OUT = {full.replace("'", "").lower(): full for full in _CONTRACTED.split()} | by_way(
    "want_to=wanna going_to=gonna have_to=gotta please=pls|plz because=bc you=u with=w/ without=w/o tomorrow=tmrw"
)


class Clause(Struct, frozen=True, gc=False):
    """A clause of a sentence."""

    text: str
    """As it was written, without what leads into it."""
    lower: str
    """The same, folded, of the same length; what stands in quotes is blank."""
    opener: str
    """What led into it, folded: "scrap that,"."""
    sentence: str
    """The whole sentence, folded: a doubt at its begin holds for all of it."""


def clauses_of(sentence: str) -> list[Clause]:
    """Clauses of a sentence that can each be a statement.

    >>> [clause.text for clause in clauses_of("OK, we chose Vue, but the API must stay.")]
    ['we chose Vue', 'the API must stay']
    """
    lower = _masked(sentence)
    ends = [match.span() for match in _RE.JOINT.finditer(lower)]
    if ", " in lower and _RE.LED.match(lower) is None:
        opened = _RE.OPENER.match(lower)
        spliced = _RE.SPLICE.finditer(lower, 0 if opened is None else opened.end())
        ends = _apart([*ends, *(match.span() for match in spliced)])
    begins = [0, *(end for _, end in ends)]
    clauses = []
    for begin, stop in zip(begins, [*(start for start, _ in ends), len(sentence)], strict=True):
        led = _RE.OPENER.match(lower, begin, stop)
        start = begin if led is None else led.end()
        end = start + len(sentence[start:stop].rstrip(" .,;:!"))
        if end > start:
            clauses.append(Clause(sentence[start:end], lower[start:end], lower[begin:start], lower))
    return clauses


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, without those that begin inside of another."""
    apart: list[tuple[int, int]] = []
    for span in sorted(spans):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
    return apart


def sentences_of(content: str) -> Iterator[str]:
    """Statements of a message, questions left out; of a long one its head and its tail are looked at."""
    text = written_out(plain(content))
    if "```" in text or "~~~" in text:
        text = FENCE.sub("\n", text)
    if "\n" in text or text.startswith(">"):
        text = "\n".join(_lines(text))
    if "." in text:
        text = _ABBREVIATED.sub(r"\1", text)
    for sentence in SENTENCE.findall(text.replace("`", ""))[:MAX_SENTENCES]:
        said = sentence.strip()
        if said and len(said) <= MAX_SENTENCE_CHARS and said[-1] != "?" and _RE.QUESTION.match(said) is None:
            yield from _people(said) if "), " in said or "; " in said else (said,)


def _lines(text: str) -> Iterator[str]:
    """Lines without code and bullets; an item of a list stands behind what the list is of."""
    heading = ""
    for line in text.split("\n"):
        if _RE.CODE_LINE.match(line):
            continue
        item = _BULLET.sub("", line)
        if item == line:
            led = line.strip()[:MAX_HEADING_CHARS]
            heading = led if led.endswith(":") and _HEADING.fullmatch(led[:-1]) else ""
            yield line
        else:
            yield f"{heading} {item}" if heading else item


def _people(said: str) -> Iterator[str]:
    """Each of several people named in a line: "Contacts: Ines (product), Takumi (data)"."""
    named = _PEOPLE.fullmatch(said)
    if named is None:
        yield said
    else:
        yield from (f"{named['heading']}: {each}" for each in re.split(r"(?<=\)), |; ", named["items"]))


def _masked(text: str) -> str:
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(each.lower() if len(each.lower()) == 1 else each for each in text)
    return _SPEECH.sub(_blank, lower) if '"' in lower else lower


def _blank(quoted: re.Match[str]) -> str:
    said = quoted[0]
    return said if len(said.split()) <= _TERM_WORDS else " " * len(said)


def written_out(text: str) -> str:
    """A text with hasty spellings written out; the case of a first letter is kept.

    >>> written_out("Cant use it bc id rather wait, pls")
    "Can't use it because I'd rather wait, please"
    """
    return _RE.HASTY.sub(_full, text)


def _full(match: re.Match[str]) -> str:
    if match["word"] is None:
        return "let's" if match["lets"] else "I'd"
    full = _WRITTEN_OUT[match["word"].lower()]
    return full[:1].upper() + full[1:] if match["word"][:1].isupper() and len(match["word"]) > 1 else full
