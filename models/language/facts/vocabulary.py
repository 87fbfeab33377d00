"""Word lists of the fact rules, from `data/vocabulary.toml`: what kind of thing a word names. All in lower case."""

from collections.abc import Iterable, Mapping

from models.text.tables import PatternTables

_LISTS = PatternTables("vocabulary")
PROGRAMMING_LANGUAGES = _LISTS.word_set("PROGRAMMING_LANGUAGES")
NATURAL_LANGUAGES = _LISTS.word_set("NATURAL_LANGUAGES")
DEMONYMS = NATURAL_LANGUAGES - _LISTS.word_set("NO_NATIONS") | _LISTS.word_set("NATIONS")
EDITORS = _LISTS.word_set("EDITORS")
OPERATING_SYSTEMS = _LISTS.word_set("OPERATING_SYSTEMS")
UNITS = _LISTS.word_set("UNITS")
RELATIONSHIPS = _LISTS.word_set("RELATIONSHIPS")
PETS = {
    **{kind: kind for kind in sorted(_LISTS.word_set("KINDS_OF_PETS"))},
    **dict.fromkeys(sorted(_LISTS.word_set("DOGS")), "dog"),
    **dict.fromkeys(sorted(_LISTS.word_set("CATS")), "cat"),
    "bunny": "rabbit",
}
"""What people call their animals → the kind."""
TITLES = _LISTS.word_set("TITLES")
NO_TITLES = _LISTS.word_set("NO_TITLES")
TONES = _LISTS.word_set("TONES")
LENGTHS = _LISTS.word_set("LENGTHS")
FORMATS = _LISTS.word_set("FORMATS")
FEELINGS = _LISTS.word_set("FEELINGS")
CUES = _LISTS.word_set("CUES")
"""A message or a sentence without any of these says nothing of its user."""

WORDS: Mapping[str, Iterable[str]] = {
    "LANGUAGE": NATURAL_LANGUAGES,
    "ANY_LANGUAGE": PROGRAMMING_LANGUAGES | NATURAL_LANGUAGES,
    "EDITOR": EDITORS | {"vs", "vs_code"},
    "SYSTEM": OPERATING_SYSTEMS,
    "UNIT": UNITS,
    "DIET": _LISTS.word_set("DIETS"),
    "PARTNER": RELATIONSHIPS,
    "RELATIVE": RELATIONSHIPS | _LISTS.word_set("RELATIVES"),
    "PET": PETS,
    "MEDICAL": _LISTS.word_set("MEDICAL"),
    "ILLNESS": _LISTS.word_set("MEDICAL") - {"add", "pots", "ms", "eds"},
    "AGES": [str(age) for age in range(10, 100)],
}
"""Lists that tables name."""
