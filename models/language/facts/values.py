"""The parts rules are made of: what a rule is, and how a value is cut out of the words that follow its cue."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from models.events.user import ExtractedFact, FactCategory, Retraction
from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.text.tables import PatternTables

_RE = PatternTables("facts_patterns").section("values")

MAX_KEY_CHARS = 64
MAX_VALUE_CHARS = 400
MAX_PLACE_WORDS = 7
MAX_NAME_WORDS = 4
_MAX_LOWER_NAME_WORDS = 2
_MAX_REGION_WORDS = 3

Finding = ExtractedFact | Retraction
Build = Callable[[re.Match[str], Statement], Iterable[Finding]]


_PLACE_LIST = re.compile(r",(?!\s*[A-Z\u00c0-\u00de])")
_LOWER_NAME = re.compile(r"[^\W\d_][\w'\u2019-]*(?: [^\W\d_][\w'\u2019-]*)?")
_NO_NAME = PatternTables("words").word_set("NO_NAME")
_BEHIND_NAME = PatternTables("facts_patterns").section("preferences").BEHIND_NAME
_ONE_OF = re.compile(r"an? ", re.IGNORECASE)
_LISTED = re.compile(r"\b(?:and|or|nor|plus)\b|&", re.IGNORECASE)


def fact(  # noqa: PLR0917 - the order of a fact's fields, written some hundred times
    category: FactCategory,
    key: str,
    value: str,
    statement: Statement,
    confidence: float,
    importance: float = 0.8,
    *,
    corrects: bool | None = None,
) -> list[ExtractedFact]:
    """The fact as it counts in its statement; none without a key or a value."""
    key, value = slug(key), value.strip(" .,;:!?\"'-")[:MAX_VALUE_CHARS].rstrip()
    if not key or not value:
        return []
    return [
        ExtractedFact(
            category=category,
            key=key,
            value=value,
            confidence=round(confidence * statement.weight, 3),
            importance=importance,
            corrects=statement.corrects if corrects is None else corrects,
        )
    ]


def slug(text: str) -> str:
    """Snake case of plain letters, at most 64 characters.

    >>> slug("Crème brûlée!")
    'creme_brulee'
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain.replace("'", "")).strip("_")[:MAX_KEY_CHARS].rstrip("_")


def phrase(text: str, max_words: int = 8) -> str:
    """The words up to where another thought begins.

    >>> phrase("Python because it is short")
    'Python'
    """
    return " ".join(_RE.STOP.sub("", text).strip(" \"'").split()[:max_words])


def bare(text: str) -> str:
    """Without articles and the like in front.

    >>> bare("the red wine")
    'red wine'
    """
    before = ""
    while before != text:
        before, text = text, _RE.ARTICLE.sub("", text, count=1) if _RE.ARTICLE.match(text) else text
    return text


def things(text: str, max_words: int = 4) -> list[str]:
    """The things of an enumeration, without articles; of more than so many words is none.

    >>> things("peanuts, the red wine and shellfish")
    ['peanuts', 'red wine', 'shellfish']
    """
    text = text.strip(" .!\"'")
    if not _LISTED.search(text):
        text = text.partition(",")[0]
    found: list[str] = []
    for part in re.split(r"\s*,\s*(?:and |or |nor )?|\s+(?:and|or|nor|plus|&)\s+", text):
        thing = bare(phrase(part, 9))
        if not 0 < len(thing.split()) <= max_words:
            break
        found.append(thing)
    return found[:6]


def name_of(text: str, statement: Statement) -> str:
    """A person's or an animal's name at the start of the text, in its casing; empty if there is none.

    >>> name_of("Anna van Dam and I paint", Statement(""))
    'Anna van Dam'
    """
    text = text.lstrip(" :\"'")
    if found := _RE.NAME.match(text):
        words = found[0].strip(".'-").split()
        return "" if words[0].lower() in _NO_NAME else " ".join(words[:MAX_NAME_WORDS])
    words = phrase(text, 3).split()
    if not words or words[0].lower() in _NO_NAME or not _LOWER_NAME.match(words[0]):
        return ""
    for n, word in enumerate(words):
        if word.lower() in _NO_NAME or word in {"and", "not"} or not word.replace("'", "").replace("-", "").isalpha():
            words = words[:n]
            break
    return " ".join(words[:2] if statement.lower and len(words) <= _MAX_LOWER_NAME_WORDS else words[:1]).strip("'")


def place_of(text: str, statement: Statement) -> str:
    """A place at the start of the text; empty if there is none.

    >>> place_of("Oslo, Norway with my cat", Statement(""))
    'Oslo, Norway'
    """
    text = text.strip(" \"'")
    if re.match(r"the ", text, re.IGNORECASE) and text[4:5].isupper():
        text = text[4:]
    elif re.match(r"(?:an?|our) ", text) and (
        found := re.search(r"\b(?:near|outside|close to|in|called|north of|south of|west of|east of) ([A-Z].*)", text)
    ):
        text = found[1] if found[0].startswith(("in ", "called ")) else found[0]
    elif _RE.NO_PLACE.match(text) and not text[:1].isupper():
        return ""
    head, *rest = (
        _PLACE_LIST.split(text)[0].split(", ") if not statement.lower else _RE.PLACE_STOP.sub("", text).split(", ")[:3]
    )
    parts = [_place_part(part) for part in (head, *rest[:2])]
    place = ", ".join(
        [part for n, part in enumerate(parts) if part and (n == 0 or len(part.split()) <= _MAX_REGION_WORDS)]
    )
    if not parts[0] or not (statement.lower or any(word[:1].isupper() for word in place.split())):
        # Without a capital only a single word can be trusted to be a place's name.
        return place if parts[0] and len(place.split()) == 1 and place.isalpha() else ""
    return place


def _place_part(part: str) -> str:
    return " ".join(_RE.PLACE_STOP.sub("", phrase(part)).split()[:MAX_PLACE_WORDS])


def languages_in(text: str, *, alone: bool = False) -> list[str]:
    """Names of languages, programming or natural, at the start of a phrase and behind "and".

    Many are ordinary words too: `alone` takes none that tells more of another thing ("go karts").
    """
    found: list[str] = []
    for part in re.split(r"\s*(?:,|/|\band\b|&)\s*", text)[:5]:
        word, _, rest = bare(part.strip(" \"'")).partition(" ")
        word = word.strip(".!\"'")
        if alone and (_ONE_OF.match(part) or (rest and _BEHIND_NAME.match(f" {rest}") is None)):
            break
        if word.lower() in vocabulary.PROGRAMMING_LANGUAGES or word.lower() in vocabulary.NATURAL_LANGUAGES:
            found.append(word)
        else:
            break
    return found


IDENTITY = FactCategory.IDENTITY
PREFERENCE = FactCategory.PREFERENCE
CONSTRAINT = FactCategory.CONSTRAINT
INSTRUCTION = FactCategory.INSTRUCTION


def _called(text: str, statement: Statement) -> str:
    return "" if text.lower().startswith("not ") else name_of(_RE.SPELT.sub("", text), statement)


def _if_among(names: frozenset[str]) -> Callable[[str, Statement], str]:
    return lambda text, _statement: text if text.lower() in names else ""


_CUTS: Mapping[str, Callable[[str, Statement], str]] = {
    "whole": lambda text, _statement: text,
    "said": lambda text, _statement: phrase(text, 12),
    "folded": lambda text, _statement: text.lower(),
    "called": _called,
    "place": place_of,
    "nation": _if_among(vocabulary.DEMONYMS),
    "spoken": _if_among(vocabulary.NATURAL_LANGUAGES),
}


def named(*readers: Build) -> dict[str, Build]:
    """Readers by the names that rows give."""
    return {reader.__name__.removeprefix("_"): reader for reader in readers}


def reading(says: str, readers: Mapping[str, Build]) -> Build:
    """What makes findings of a row's matches.

    Args:
        says: The name of a reader; `-category.key …` for what is taken back, `-everything`; or a fact:
            `category.key confidence`, importance, how the value is cut out of group `v`, and `corrects`.
        readers: By name.
    """
    if says in readers:
        return readers[says]
    if says.startswith("-"):
        return _taking_back(says)
    of, confidence, importance, cut, *corrects = [*says.split(), *_USUAL[len(says.split()) :]]
    category, _, key = of.partition(".")

    def build(match: re.Match[str], statement: Statement) -> list[ExtractedFact]:
        said = match["v"] or match.groupdict().get("w") or ""
        value = _CUTS[cut](said, statement)
        put_right = True if corrects else None
        return fact(
            FactCategory(category), key, value, statement, float(confidence), float(importance), corrects=put_right
        )

    return build


_USUAL = ("", "", "0.8", "whole")


def _taking_back(says: str) -> Build:
    of = [each.removeprefix("-").partition(".") for each in says.split() if each != "-everything"]
    gone: list[Finding] = [Retraction(category=FactCategory(category), key=key) for category, _, key in of]
    return lambda _match, _statement: gone or [Retraction()]
