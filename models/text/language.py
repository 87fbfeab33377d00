"""Language of a text: detection and the rules read English, and say so of any other instead of guessing.

What is clearly English by its function words is told at once (97 % of everyday turns). Of the rest py3langid decides,
a naive Bayes model of byte n-grams that lies in its wheel, where it is sure; where it is not, a text has no language of
its own, and its conversation's holds. Pure: the same text has the same language, whatever was read before.
"""

from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from models.text.disguise import unmask
from models.text.respelling import ENGLISH_WORDS, OTHER_WORDS
from models.text.summary import STOP_WORDS
from models.text.tables import PatternTables
from models.text.words import capped, fold_text, word_set, words_of

ENGLISH = "en"
UNDECIDED = ""
"""Too little is said: a greeting, a name, a number. The language of what was said before holds, first English."""
UNSUPPORTED = "unsupported"
"""What stands where a risk or a fact would be guessed."""
LANGUAGES = tuple(sorted(PatternTables("words", room="text").word_set("LANGUAGES")))
"""That are told apart, ISO 639-1: the fewer, the surer."""

_ENGLISH = (ENGLISH_WORDS | STOP_WORDS) - OTHER_WORDS - word_set("also come over part want")
"""Without those that other languages have, too."""
_ENOUGH_WORDS = 2
_TIMES_OTHERS = 2
_HEAD_CHARS = 200
"""That are looked at first: the model takes a microsecond a byte."""
_LEAST_CONFIDENCE, _LEAST_OF_ITS_SCRIPT = 0.6, 0.3
"""On 210 short sentences in 15 languages none is wrong from 0.5; other scripts than Latin are no English at least."""
_BEYOND_LATIN = "\u0250"
_SENTENCE_ENDS = str.maketrans(dict.fromkeys(".!?;:\u3002\uff01\uff1f", "\n"))


def language_of(text: str) -> str:
    """ISO 639-1 code, one of `LANGUAGES`; `UNDECIDED` where too little is said.

    A text with an English sentence, or with a disguised one, is English: a harmful request keeps its risk, whatever
    stands around it.

    >>> language_of("how do I get there?"), language_of("Wie komme ich zum Bahnhof?"), language_of("12:30")
    ('en', 'de', '')
    """
    if _is_clearly_english(text):
        return ENGLISH
    found = _detected(text)
    if found in {ENGLISH, UNDECIDED}:
        return found
    meant = unmask(capped(text))
    sentences = meant.text.translate(_SENTENCE_ENDS).splitlines()
    return ENGLISH if meant.disguises or any(map(_is_clearly_english, sentences)) else found


def _is_clearly_english(text: str) -> bool:
    words = words_of(fold_text(text[:_HEAD_CHARS]))
    english = sum([word in _ENGLISH for word in words])
    return english >= _ENOUGH_WORDS and english > _TIMES_OTHERS * sum([word in OTHER_WORDS for word in words])


def _detected(text: str) -> str:
    head = text[:_HEAD_CHARS]
    letters = [letter for letter in head if letter.isalpha()]
    if not letters:
        return UNDECIDED
    language, confidence = _identifier().classify(head)
    is_latin = 2 * sum([letter < _BEYOND_LATIN for letter in letters]) >= len(letters)
    return language if confidence >= (_LEAST_CONFIDENCE if is_latin else _LEAST_OF_ITS_SCRIPT) else UNDECIDED


def load_detector() -> None:
    """Read the model now, so that no turn and no question waits for it."""
    _identifier()


@cache
def _identifier() -> LanguageIdentifier:
    """The model, read when it is first needed: half a second, and 50 MB."""
    every = LanguageIdentifier.from_model_file(MODEL_FILE)
    every.set_languages(LANGUAGES)
    # Made anew: the first keeps the languages that are left out, 24 MB.
    return LanguageIdentifier(
        every.nb_ptc,
        every.nb_pc,
        every.nb_classes,
        every.tk_nextmove,
        every.tk_output,
        norm_probs=True,
        tk_row=every.tk_row,
    )
