"""Attribution filter: code, quotes, pastes, fiction, tasks, hypotheticals, voices that do not speak for the user."""

import re
import unicodedata

from models.text.tables import PatternTables
from models.text.words import HEAD_CHARS, TAIL_CHARS

_RE = PatternTables("facts_patterns").section("attribution")

MAX_LINES = 30
"""A message of more lines that are not blank is taken for a pasted document."""
MAX_LIST_ITEMS = 5
"""A list of more items is taken for a pasted one."""
MAX_QUOTED_WORDS = 3
"""Up to so many words in quotes are a name or a term, more are somebody's speech."""

_QUOTES = str.maketrans("\u2019\u2018\u02bc\u00b4\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u00a0", '\'\'\'\'"""""-- ')
_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|you)\b", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:[-*\u2022+]|\d{1,3}[.)])[ \t]+\S")
_TASK_WORDS = PatternTables("words").word_set("TASK_WORDS")
_TO_THE_USER = ("to ", "stop ", "avoid ", "quit ", "never ", "always ", "don't ")
_OWN_SPEECH = ("i ", "i've ", "i just ", "i already ", "i only ", *_TO_THE_USER)
"""Behind these the user speaks, or is spoken to."""


def plain(content: str) -> str:
    """The text that is looked at, case kept: head and tail of a long one, plain quotes, no invisible characters."""
    if len(content) > HEAD_CHARS + TAIL_CHARS:
        content = f"{content[:HEAD_CHARS]}\n{content[-TAIL_CHARS:]}"
    if not content.isascii():
        content = unicodedata.normalize("NFKC", content).translate(_QUOTES)
        if not content.isprintable():
            content = "".join([c for c in content if c == "\n" or c.isprintable()])
    return content


def own_words(text: str, words: set[str]) -> str:
    """Without code, quotes, transcripts and pasted lines, and without what follows a task or a play that is begun.

    `words` are the text's own, folded.
    """
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    if "\n" in text:
        text = _own_lines(text)
    if '"' in text or "'" in text or "`" in text:
        text = _RE.SPEECH.sub(_term, text)
    text = _before(_RE.FICTION, text)
    return text if _TASK_WORDS.isdisjoint(words) else _before(_RE.TASK, text)


def supposed_from(lower: str) -> int:
    """Where a sentence, folded, begins to suppose something or to report what others say; its length if it does not."""
    if _RE.SUPPOSED.search(lower):
        return 0
    reported = (found.start() for found in _RE.REPORTED.finditer(lower))
    return next((start for start in reported if not lower.endswith(_OWN_SPEECH, 0, start)), len(lower))


def _term(quoted: re.Match[str]) -> str:
    inside: str = quoted[quoted.lastindex or 0]
    if len(inside.split()) > MAX_QUOTED_WORDS or inside[-1] == "," or _FIRST_PERSON.search(inside):
        return '"'
    return inside


def _before(marker: re.Pattern[str], text: str) -> str:
    """What was said before the marker's sentence, of a task before its clause, still counts."""
    found = marker.search(text.lower())
    if found is None:
        return text
    ends = (
        (". ", "! ", "? ", "\n", "; ")
        if marker is _RE.FICTION
        else (". ", "! ", "? ", "\n", "; ", ", ", " - ", " and ", " but ")
    )
    return text[: max(text.rfind(mark, 0, found.start()) for mark in ends) + 1]


def _own_lines(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MAX_LINES:
        return ""
    spoken = [bool(_RE.SPEAKER.match(line)) for line in lines]
    if sum(spoken) > 1:
        lines = lines[: spoken.index(True)]
    lines = [line for line in lines if not line.lstrip().startswith(">")]
    coded = [bool(_RE.CODE.match(line)) for line in lines]
    if sum(coded) > 1:
        lines = [line for line, code in zip(lines, coded, strict=True) if not code]
    cited = next((n for n, line in enumerate(lines) if _RE.CITED.search(line)), None)
    if cited is not None:
        lines = [line for n, line in enumerate(lines) if n <= cited or not _ITEM.match(line)]
    if sum([bool(_ITEM.match(line)) for line in lines]) > MAX_LIST_ITEMS:
        lines = [line for line in lines if not _ITEM.match(line)]
    letter = next((n for n, line in enumerate(lines) if _is_salutation(line)), None)
    return "\n".join(lines[:letter])


def _is_salutation(line: str) -> bool:
    """A letter's first line: "Dear Ms Berg,"."""
    return line.startswith(("Dear ", "To whom", "Subject:", "From:"))
