"""Script and language of a text, English or not: of another language an English model says little."""

import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import islice

from models.text.keywords import STOP_WORDS
from models.text.known_words import ENGLISH_WORDS, OTHER_WORDS
from models.text.words import fold_text, word_set, words_of

NO_SCRIPT = "none"
LATIN = "latin"
_ENGLISH = (ENGLISH_WORDS | STOP_WORDS) - OTHER_WORDS - word_set("also come over part want")
"""Without those that other languages have, too."""
_LOOKED_AT_WORDS = 64
_FEW_WORDS = 8
"""Below, a text without any common word can be a title, a list, a search."""
_ALSO_LATIN = frozenset({"fullwidth", "mathematical", "double-struck", "script", "black-letter", "modifier", "feminine",
                         "masculine", "micro", "kelvin", "angstrom"})  # fmt: skip


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str:
    first = unicodedata.name(letter, "unknown").split(" ", 1)[0].lower()
    return LATIN if first in _ALSO_LATIN else first


def script_of(text: str) -> str:
    r"""The script of most letters.

    By the first word of their Unicode names: "latin", "cyrillic", "cjk", "arabic"; "none" without letters; of scripts
    with as many letters the one that comes first.

    >>> script_of("well"), script_of("\u043d\u0435\u0442, thanks a lot"), script_of("12:30?")
    ('latin', 'latin', 'none')
    """
    if text.isascii():
        return LATIN if any(map(str.isalpha, text)) else NO_SCRIPT
    scripts: Counter[str] = Counter()
    for letter, times in Counter(text).items():
        if letter.isalpha():
            scripts[_script(letter)] += times
    return max(scripts, key=scripts.__getitem__) if scripts else NO_SCRIPT


def is_probably_english(text: str) -> bool:
    r"""Whether nothing speaks against English: its function words outweigh those of other languages.

    Looks at the first 64 words. A text without letters, or a short one without common words, can be English.

    >>> is_probably_english("how do I get there?"), is_probably_english("Wie komme ich zum Bahnhof?")
    (True, False)
    """
    script = script_of(text)
    if script != LATIN:
        return script == NO_SCRIPT
    words = list(islice(words_of(fold_text(text)), _LOOKED_AT_WORDS))
    english = sum(word in _ENGLISH for word in words)
    other = sum(word in OTHER_WORDS for word in words)
    return english > other or (english == other and len(words) < _FEW_WORDS)
