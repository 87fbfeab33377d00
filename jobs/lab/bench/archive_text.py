"""Text as long and as wordy as people's, drawn a million words at a time.

Words follow Zipf's law; a quarter of them are those of what the session is about, so that text repeats itself about as
much as conversations do. Frequent words are short, as in any language.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 20_000
_ZIPF_EXPONENT = 1.05
_DRAWS = 1 << 20
"""Cells of the table by which a number becomes a word."""
_SUBJECT_WORDS = 24
_SUBJECT_SHARE = 0.25
_SENTENCE_WORDS = 12
_ONSETS = ("b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl", "ch", "sh")
_VOWELS, _CODAS = "aeiou", ("", "n", "r", "s", "t")

_Words = NDArray[np.int64]


def _vocabulary() -> list[str]:
    """Distinct words, the most frequent first: of one syllable, then of two, then of three."""
    syllables = [onset + vowel + coda for vowel in _VOWELS for coda in _CODAS for onset in _ONSETS]
    count = len(syllables)
    pairs = [syllables[n % count] + syllables[(n * 7 + n // count) % count] for n in range(VOCABULARY // 4)]
    triples = [pair + syllables[(n * 11 + 3) % count] for n, pair in enumerate(pairs * 4)]
    return list(dict.fromkeys((*syllables, *pairs, *triples)))[:VOCABULARY]


class Text:
    """Makes the texts of many turns at once."""

    def __init__(self) -> None:
        plain = _vocabulary()
        self.words = plain
        shares = 1.0 / np.arange(1, len(plain) + 1) ** _ZIPF_EXPONENT
        counts = np.cumsum(shares / shares.sum()) * _DRAWS
        self._drawn: _Words = np.minimum(np.searchsorted(counts, np.arange(_DRAWS)), len(plain) - 1)
        forms = [f"{word} " for word in plain], [f"{word.capitalize()} " for word in plain], [f"{w}. " for w in plain]
        self._forms = np.array([form for each in forms for form in each], dtype=object)

    def subject(self, session: int) -> list[str]:
        """Words that a session is about."""
        return [self.words[n] for n in self._subject_words(np.full(5, session), np.arange(5))]

    def texts(self, sessions: _Words, lengths: _Words, rng: np.random.Generator) -> list[str]:
        """One text for each session number, of so many words.

        Args:
            sessions: Whose turn it is, `(n_turns,)`.
            lengths: Words, at least 1, `(n_turns,)`.
            rng: The randomness.
        """
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        place = np.arange(total) - np.repeat(ends - lengths, lengths)
        words = self._drawn[rng.integers(0, _DRAWS, total)]
        about = np.flatnonzero(rng.random(total, dtype=np.float32) < _SUBJECT_SHARE)
        of = np.repeat(sessions, lengths)[about]
        words[about] = self._subject_words(of, rng.integers(0, _SUBJECT_WORDS, len(about)))
        in_sentence = place % _SENTENCE_WORDS
        words[in_sentence == 0] += len(self.words)
        words[in_sentence == _SENTENCE_WORDS - 1] += 2 * len(self.words)
        drawn = self._forms[words].tolist()
        return ["".join(drawn[first:end]).rstrip() for first, end in pairwise((0, *ends.tolist()))]

    def _subject_words(self, sessions: _Words, numbers: _Words) -> _Words:
        # Any mixing will do: what matters is that a session has the same few each time.
        mixed: _Words = (sessions * 2_654_435_761 + numbers * 40_503 + (sessions * numbers) * 97) % len(self.words)
        return mixed
