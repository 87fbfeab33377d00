"""Emotional valence of a text, −1 (bad) to 1 (good): a lexicon with negation, intensifiers (project memory, Layer 4).

After VADER (Hutto and Gilbert 2014): the strengths of words are added, an intensifier up to three words before
raises or lowers one, a negation there turns it round and weakens it, an exclamation mark adds a little, and the sum is
brought into range by `x / sqrt(x² + 15)`. English; in another language all is neutral.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from models.text.words import fold_text, word_set, words_of

_NORMALISED = 15.0
_TURNED_ROUND = -0.74
_EXCLAIMED, _MOST_EXCLAIMED = 0.29, 4
_REACH = 3
"""VADER's numbers, and so many words an intensifier or a negation reaches."""
_STRENGTHS = {
    3.0: "amazing awesome brilliant breakthrough excellent fantastic love loved magnificent perfect thrilled triumph "
    "wonderful ecstatic overjoyed",
    2.4: "congratulations delighted great happy hero hooray huge hurray launched lovely proud solved success "
    "successful successfully won yay relieved relief",
    1.8: "celebrate cheers clever excited fixed fun gladly glad good hugged impressive improved lucky nice resolved "
    "shipped splendid thanks works win",
    1.0: "agreed better calm clean cleaner complete completed done easy enough fast faster finally finished fine green "
    "help helps live kind ready restored safe secure simple smooth stable like likes",
    -1.0: "clumsy confusing delay delayed difficult hard late lost missing odd slow slower sorry strange stuck tedious "
    "tight tired unclear unstable wait waste weird wrong",
    -1.8: "afraid bad broken bug bugs crash crashed crashes crashing defect error errors expensive fail failed failing "
    "fails failure fear issue issues leak leaks pain painful problem problems risk sad spam ugly unhappy worried "
    "worries worry worse",
    -2.4: "angry annoyed annoying awful corrupt corrupted cry damage danger dangerous desperate frustrated frustrating "
    "hate hates mess nightmare nightmares outage panic shame stolen unusable upset worst breach",
    -3.0: "catastrophe catastrophic disaster disastrous furious horrible terrible miserable",
}
_LEXICON = {word: strength for strength, words in _STRENGTHS.items() for word in words.split()}
_INTENSIFIERS = {
    word: factor
    for factor, words in {
        1.3: "very really so extremely incredibly absolutely totally completely super hugely deeply most serious "
        "seriously major critical huge big",
        0.7: "slightly somewhat fairly rather quite little bit mostly almost barely minor small",
    }.items()
    for word in words.split()
}
_NEGATIONS = word_set("not no never nobody nothing none without hardly neither nor cannot")
_OVER = word_set("solved fixed resolved gone")
"""What they stand beside is bad no longer: "the problem is solved" is good."""


def valence(content: str) -> float:
    """Emotional valence of a text, −1 to 1, three decimals.

    >>> valence("This is great!"), valence("This is not great."), valence("The table has two columns.")
    (0.57, -0.417, 0.0)
    >>> valence("The problem is finally solved.") > 0 > valence("It is a very serious problem.")
    True
    """
    folded = fold_text(content)
    words = words_of(folded)
    over = not _OVER.isdisjoint(words)
    sum_ = sum(_strength(words, place, over=over) for place in range(len(words)))
    if sum_:
        sum_ += _EXCLAIMED * min(folded.count("!"), _MOST_EXCLAIMED) * (1 if sum_ > 0 else -1)
    return round(sum_ / sqrt(sum_ * sum_ + _NORMALISED), 3)


def _strength(words: list[str], place: int, *, over: bool) -> float:
    strength = _LEXICON.get(words[place], 0.0)
    if not strength:
        return 0.0
    before = words[max(0, place - _REACH) : place]
    denied = any(word in _NEGATIONS or word.endswith("n't") for word in before)
    if strength < 0 and over and not denied:
        return 0.0
    return strength * _product(_INTENSIFIERS.get(word, 1.0) for word in before) * (_TURNED_ROUND if denied else 1.0)


def _product(factors: Iterable[float]) -> float:
    product = 1.0
    for factor in factors:
        product *= factor
    return product
