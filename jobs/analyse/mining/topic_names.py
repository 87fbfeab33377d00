"""Names of groups of texts: the words that set each apart, of which none comes from too few people.

A word is kept as a mark, a number, wherever a job keeps something: what a group is called is looked up again in the
archive, and only for words that may be shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, enough
from models.policy.archive import AnonymityPolicy
from models.text.summary import STOP_WORDS

Words = Mapping[int, Sequence[str]]
"""Of each group that has a name, the most telling first."""
_UNNAMED = "(no word is common to enough people)"
_WORD = r"\p{L}{4,32}"
"""Letters only: neither numbers nor addresses name a group. Longer runs are keys or noise."""


def words_of(texts: pl.Series) -> pl.Series:
    """The distinct words of each text that carry meaning, in lower case: a list for each."""
    found = texts.fill_null("").str.to_lowercase().str.extract_all(_WORD)
    return found.list.set_difference(pl.Series([sorted(STOP_WORDS)])).list.sort()


def marks_of(texts: pl.Series) -> pl.Series:
    """The marks of each text's words, `List(UInt32)`; the same in every run."""
    words = words_of(texts)
    vocabulary = words.explode(empty_as_null=False).unique().drop_nulls()
    marks = pl.Series([crc32(word.encode()) for word in vocabulary], dtype=pl.UInt32)
    return words.list.eval(pl.element().replace_strict(vocabulary, marks, return_dtype=pl.UInt32))


def naming_marks(said: pl.DataFrame, k: AnonymityPolicy, *, most: int) -> pl.DataFrame:
    """The words of each group by class-based TF-IDF (Grootendorst 2022, BERTopic), the most telling first.

    A word's weight in a group is its share of the group's words times log(1 + A / f): A is the mean count of words
    per group, f the word's count over all. Each text counts a word once. Weights are taken over all words; a word may
    name a group only if enough sessions and users of the group said it.

    Of texts with `group`, `session_id`, `user_id` and `marks`; gives `group` and `mark`, at most so many a group.
    """
    counts = (
        said.select("group", "session_id", "user_id", mark="marks")
        .explode("mark", empty_as_null=False)
        .group_by("group", "mark")
        .agg(*COUNTED, count=pl.len())
    )
    of_group = pl.col("count").sum().over("group")
    mean_per_group = pl.col("count").sum() / pl.col("group").n_unique()
    return (
        counts.with_columns(
            weight=pl.col("count") / of_group * (1 + mean_per_group / pl.col("count").sum().over("mark")).log()
        )
        .filter(enough(k))
        .sort(["group", "weight", "mark"], descending=[False, True, False])
        .group_by("group", maintain_order=True)
        .head(most)
        .select("group", "mark")
    )


def examples_of(named: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """For each mark of `naming_marks` the first of these texts that holds it."""
    return (
        said.rename({"marks": "mark"})
        .explode("mark", empty_as_null=False)
        .filter(pl.col("mark").is_in(named["mark"].unique().implode()))
        .unique("mark", keep="first", maintain_order=True)
    )


def named_by(named: pl.DataFrame, texts: pl.Series) -> dict[int, list[str]]:
    """The words of each group of `naming_marks`, without those that no longer stand in the texts."""
    words = sorted(words_of(texts).explode(empty_as_null=False).unique().drop_nulls())
    spelled = {crc32(word.encode()): word for word in words}
    found: dict[int, list[str]] = {}
    for group, mark in named.iter_rows():
        if mark in spelled:
            found.setdefault(group, []).append(spelled[mark])
    return found


def names_of(groups: Iterable[int], words: Words, most: int) -> dict[int, str]:
    """A name of its own for each group: of two with the same words, the second has a number.

    >>> names_of([0, 1, 2], {0: ["refund"], 1: ["refund"]}, 4)
    {0: 'refund', 1: 'refund (2)', 2: '(no word is common to enough people)'}
    """
    found: dict[int, str] = {}
    for group in sorted(groups):
        name, number = ", ".join(words.get(group, [])[:most]) or _UNNAMED, 1
        while (unique := name if number == 1 else f"{name} ({number})") in found.values():
            number += 1
        found[group] = unique
    return found


class Lookup(NamedTuple):
    """How well a group's texts are found by its words.

    Attributes:
        words: Of the group.
        needed: How many of them a text must hold.
        found: Share of the group's texts that do, 0-1.
        right: Share of the texts that do which are the group's, 0-1.
    """

    words: Sequence[str]
    needed: int
    found: float
    right: float

    def sql(self, text: str) -> str:
        """The condition on a column of texts, in DuckDB's SQL."""
        listed = ", ".join(f"'{word}'" for word in self.words)
        return f"len(list_intersect(regexp_extract_all(lower({text}), '\\p{{L}}+'), [{listed}])) >= {self.needed}"

    def holds(self, said: pl.Series) -> pl.Series:
        """Which texts the condition finds, by the marks of their words."""
        return _held(said, self.words) >= self.needed

    def about_text(self, sessions: int) -> str:
        """For the reader of a finding: what its evidence query finds, in so many sessions."""
        return (
            f"By their words the evidence query finds {self.found:.0%} of its texts, {self.right:.0%} of what it finds "
            f"belongs to it: {sessions:,} sessions."
        )


def lookup(said: pl.Series, of_group: pl.Series, words: Sequence[str]) -> Lookup:
    """The count of words by which the group is found best (F1), by the marks of every text and whether it is of it."""
    held = _held(said, words).to_numpy()
    member = of_group.to_numpy()
    right, wrong = (
        np.bincount(held[chosen], minlength=len(words) + 1)[::-1].cumsum()[::-1] for chosen in (member, ~member)
    )
    fitting = right[1:] / (member.sum() + right[1:] + wrong[1:])
    # Of counts that are as good the strictest: the query may be asked of other days, too.
    needed = len(words) - int(np.argmax(fitting[::-1]))
    hits = right[needed]
    return Lookup(words, needed, float(hits / max(1, member.sum())), float(hits / max(1, hits + wrong[needed])))


def _held(said: pl.Series, words: Sequence[str]) -> pl.Series:
    """How many of the words each text holds."""
    marks = pl.Series([[crc32(word.encode()) for word in words]], dtype=pl.List(pl.UInt32))
    return said.list.set_intersection(marks).list.len()
