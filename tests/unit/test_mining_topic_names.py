"""What groups of texts are called, and how their texts are found again."""

from __future__ import annotations

import duckdb
import polars as pl

from jobs.analyse.mining.topic_names import lookup, marks_of, named_by, naming_marks, words_of
from models.policy.archive import AnonymityPolicy

K = AnonymityPolicy()


def said(texts: dict[int, list[str]], *, users: int = 5) -> pl.DataFrame:
    """Each group's texts come round among so many users; every text is a session."""
    rows = [
        {"group": group, "session_id": f"s-{group}-{n}", "user_id": f"u-{n % users}", "text": text}
        for group, of_group in texts.items()
        for n, text in enumerate(of_group)
    ]
    frame = pl.DataFrame(rows)
    return frame.with_columns(marks=marks_of(frame["text"]))


def named(frame: pl.DataFrame, most: int = 3) -> dict[int, list[str]]:
    """The words of each group."""
    found = naming_marks(frame, K, most=most)
    return named_by(found, frame["text"])


def test_words_of_the_group_alone_name_it() -> None:
    """Everybody says parcel, one group refund; words of four users, numbers, addresses and small words name nothing."""
    words = words_of(pl.Series(["Send 555-1234 the PARCEL, the parcel is at 10.0.0.1", None]))

    assert words.to_list() == [["parcel", "send"], []]

    texts = {0: ["refund parcel"] * 6, 1: ["weather parcel"] * 6}

    assert named(said(texts)) == {0: ["refund", "parcel"], 1: ["weather", "parcel"]}

    few, many = said({0: ["refund"] * 12}, users=4), said({1: ["parcel"] * 12}, users=6)

    assert named(pl.concat([few, many])) == {1: ["parcel"]}

    frame = pl.concat([said({0: ["refund parcel"] * 4}), said({1: ["refund"] * 9})])

    assert named(frame) == {1: ["refund"]}


def test_of_equally_good_counts_the_strictest_is_taken_and_what_is_missed_is_told() -> None:
    """All of the group's texts hold both words, no other text does; or one lacks the word and one of others has it."""
    both = pl.Series(["refund parcel", "refund parcel soon", "parcel weather", "weather"])
    one = pl.Series(["refund", "refund", "weather", "refund"])

    strict = lookup(marks_of(both), pl.Series([True, True, False, False]), ["refund", "parcel"])
    lacking = lookup(marks_of(one), pl.Series([True, True, True, False]), ["refund"])

    assert (strict.needed, strict.found, strict.right) == (2, 1.0, 1.0)
    assert (lacking.needed, round(lacking.found, 2), round(lacking.right, 2)) == (1, 0.67, 0.67)


def test_the_condition_finds_what_the_marks_found() -> None:
    """DuckDB splits words as the marks do, in any case and alphabet."""
    texts = pl.Series("text", ["REFUND for the Überweisung.", "refunds überweisung", "überweisung-refund", "refund"])
    by = lookup(marks_of(texts), pl.Series([True, False, True, False]), ["refund", "überweisung"])

    found = duckdb.from_arrow(texts.to_frame().to_arrow()).filter(by.sql("text")).fetchall()

    assert found == [(texts[0],), (texts[2],)]
