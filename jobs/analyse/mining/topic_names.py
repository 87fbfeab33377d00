"""Names of groups of texts: the words that set each apart, of which none comes from too few people.

A word is kept as a mark, a number, wherever a job keeps something: what a group is called is looked up again in the
archive, and only for words that may be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from models.policy.archive import AnonymityPolicy
from models.text.keywords import STOP_WORDS

UNNAMED = "(no word is common to enough people)"
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

    Args:
        said: One row per text: `group`, `session_id`, `user_id`, `marks`.
        k: Sessions and users that a word needs within its group.
        most: Words per group.

    Returns:
        `group`, `mark`, in order of weight.
    """
    counts = (
        said.select("group", "session_id", "user_id", mark="marks")
        .explode("mark", empty_as_null=False)
        .group_by("group", "mark")
        .agg(
            count=pl.len(),
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
        )
    )
    of_group = pl.col("count").sum().over("group")
    mean_per_group = pl.col("count").sum() / pl.col("group").n_unique()
    return (
        counts.with_columns(
            weight=pl.col("count") / of_group * (1 + mean_per_group / pl.col("count").sum().over("mark")).log()
        )
        .filter(pl.col("sessions") >= k.min_sessions, pl.col("users") >= k.min_users)
        .sort(["group", "weight", "mark"], descending=[False, True, False])
        .group_by("group", maintain_order=True)
        .head(most)
        .select("group", "mark")
    )


def spelled(marks: Iterable[int], texts: pl.Series) -> dict[int, str]:
    """The words behind these marks, as far as they stand in the texts."""
    wanted = set(marks)
    words = sorted(words_of(texts).explode(empty_as_null=False).unique().drop_nulls())
    return {mark: word for word in words if (mark := crc32(word.encode())) in wanted}


def words_by_group(named: pl.DataFrame, spelling: Mapping[int, str]) -> dict[int, list[str]]:
    """The words of each group of `naming_marks`, without those whose texts are gone."""
    found: dict[int, list[str]] = {}
    for group, mark in named.iter_rows():
        if mark in spelling:
            found.setdefault(group, []).append(spelling[mark])
    return found


def name_of(words: Sequence[str], most: int) -> str:
    """A group's name.

    >>> name_of(["refund", "parcel", "late"], 2)
    'refund, parcel'
    """
    return ", ".join(words[:most]) or UNNAMED


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
    """The count of words by which the group is found best (F1).

    Args:
        said: Marks of every text, those of other groups among them.
        of_group: Whether the text is the group's.
        words: Of the group, at least one.
    """
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
