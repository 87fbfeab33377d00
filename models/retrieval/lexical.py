"""Texts as sparse vectors for BM25, which the vector store ranks by (user memory's hybrid search has no words for it).

A term's weight in a document is made here, once, when it is written; what depends on the other documents, the inverse
document frequency, is the store's matter at query time (Qdrant's `idf` modifier, over the points within the scope):

    score(query, document) = Σ_term  count(term in query) · idf(term) · weight(term, document)
    weight = tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / AVERAGE_TERMS))
    idf    = ln((N − n + 0.5) / (n + 0.5) + 1)          Robertson and Zaragoza 2009, with Lucene's + 1

The average length is a constant: weights that were written once cannot follow a moving one. Measured on LoCoMo, 12 to
30 and k1 0.6 to 1.2, b 0.2 to 0.4 rank alike (recall@10 within 0.5 points); b 0.75 loses 1 point.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import Stemmer
from msgspec import Struct
from numpy.typing import NDArray

from models.text.language import ENGLISH
from models.text.tables import PatternTables, read_table
from models.text.words import Remembered, fold_text, word_set, words_of

_Item = TypeVar("_Item")
K1: Final = 0.9
B: Final = 0.4
AVERAGE_TERMS: Final = 16
"""Terms of a usual turn, with its date and without stop words."""
_LONGEST_TERM = 64
"""Longer words are keys or hashes: their head tells them apart well enough."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

STOP_WORDS = PatternTables("words", room="text").word_set("SEARCH_STOP_WORDS")
"""English words that are in every second turn: they cost time in every search and tell nothing."""


class SparseVector(Struct, frozen=True, eq=False):
    """Terms that a text has; all others weigh nothing.

    Attributes:
        indices: Ids of the terms, ascending, shape `(n_terms,)`.
        values: Their weights, same shape.
    """

    indices: NDArray[np.uint32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indices)


def terms(text: str, language: str = ENGLISH) -> list[int]:
    """Ids of the text's terms in order, with repetitions: folded, stemmed, without stop words.

    Words are stemmed by the rules of the language (Snowball), of one without rules as English ones; text without spaces
    is cut into pairs of characters. Only the head and tail of a very long text count (`models.text.words`).

    >>> terms("She was painting Anna's sunrises!") == terms("paint ANNA, sunrise")
    True
    """
    return terms_of(words_in(text), language)


def words_in(text: str) -> list[str]:
    """The text's words as `terms` takes them: folded, in order."""
    folded = fold_text(text)
    if folded.isascii():  # A third of what the pattern takes; it differs at apostrophes that join nothing.
        words = words_of(folded)
        if "'" not in folded:
            return words
        line = f" {' '.join(words)} "
        if " '" not in line and "' " not in line and "''" not in line:
            return words
    return _WORD.findall(folded)


def terms_of(words: Iterable[str], language: str = ENGLISH) -> list[int]:
    """Ids of the terms of words, as `terms` gives them."""
    return [term for ids in map(_ids_in(language).__getitem__, words) for term in ids]


def asked_terms(text: str, language: str = ENGLISH) -> list[tuple[int, ...]]:
    """Terms of a question in order, each with its other forms.

    What is too short to have a language, or was indexed before texts had one, has English terms: a question in another
    language asks for those, too.
    """
    words = words_in(text)
    if language not in _RULES:
        return [(term,) for term in terms_of(words)]
    own, english = _ids_in(language), _ids_in(ENGLISH)
    pairs = [zip(own[word], english[word] or own[word], strict=False) for word in words]
    return [tuple(dict.fromkeys(forms)) for forms in chain.from_iterable(pairs)]


def weights_of(terms: Iterable[int]) -> SparseVector:
    """What is stored of a text, of its terms with repetitions: BM25's weight of each, without the idf."""
    counts = Counter(terms)
    length = K1 * (1 - B + B * counts.total() / AVERAGE_TERMS)
    return _sparse([(term, tf * (K1 + 1) / (tf + length)) for term, tf in counts.items()])


def query_vector(text: str, language: str = ENGLISH) -> SparseVector:
    """What is asked in a language: how often each term is named. Empty for a text of stop words."""
    return _sparse(Counter(chain.from_iterable(asked_terms(text, language))).items())


def by_question(query: str, items: Iterable[_Item], text: Callable[[_Item], str]) -> list[_Item]:
    """Items of whose text more of the question's terms are, first; of equal ones the first given.

    >>> by_question("Which teas do I like?", ["lives in Oslo", "likes green tea", "tea"], str)
    ['likes green tea', 'tea', 'lives in Oslo']
    """
    asked = frozenset(terms(query))
    return sorted(items, key=lambda each: -len(asked.intersection(terms(text(each)))))


def date_words(moment: datetime) -> str:
    """A date as people name it, so that "in May 2023" finds what was said then.

    >>> date_words(datetime(2023, 5, 8, tzinfo=UTC))
    '8 May 2023'
    """
    day = moment.astimezone(UTC)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _sparse(weights: Iterable[tuple[int, float]]) -> SparseVector:
    pairs = sorted(weights)
    return SparseVector(
        np.array([term for term, _ in pairs], np.uint32),
        np.array([weight for _, weight in pairs], np.float32),
    )


class _Rules(NamedTuple):
    """How words of a language become terms."""

    stemmer: str
    stop: frozenset[str]
    elides: bool


_RULES = {
    language: _Rules(rules["stemmer"], word_set(rules.get("stop", "")), rules.get("elides", False))
    for language, rules in read_table("stems", "retrieval").items()
}


def _english_terms(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    if _WITHOUT_SPACES.search(word):
        return _pairs(word)
    bare = word.removesuffix("'s").replace("'", "")[:_LONGEST_TERM]
    return [_stem(ENGLISH)(bare) if bare.isascii() else bare] if bare else []


def _terms_in(language: str, word: str) -> list[str]:
    rules = _RULES[language]
    bare = word.rpartition("'")[2] if rules.elides else word.replace("'", "")
    if bare in rules.stop:
        return []
    if _WITHOUT_SPACES.search(bare):
        return _pairs(bare)
    # People leave accents out, and stems of one word differ in them.
    parted = unicodedata.normalize("NFD", _stem(language)(bare[:_LONGEST_TERM]))
    return [unicodedata.normalize("NFC", parted.translate(_ACCENTS))]


def _pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


@cache
def _stem(language: str) -> Callable[[str], str]:
    stem: Callable[[str], str] = Stemmer.Stemmer(
        _RULES[language].stemmer if language in _RULES else "english", 0
    ).stemWord
    return stem


_ACCENTS = dict.fromkeys(range(0x300, 0x370))


@cache
def _ids_in(language: str) -> Remembered[tuple[int, ...]]:
    """Ids of the terms of words, English ones where the language has no rules: stemming costs ten times a look-up."""
    if language not in _RULES:
        return _ids_of_words
    return Remembered(lambda word: tuple(map(_id, _terms_in(language, word))))


def _id(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))


_ids_of_words = Remembered(lambda word: tuple(map(_id, _english_terms(word))))
