"""Who says a turn, and what being named in the question is worth."""

from __future__ import annotations

import pytest

from models.retrieval.fusion import speaker_bonuses, speaker_of


@pytest.mark.parametrize(
    ("content", "speaker"),
    [
        ("Anna: at six?", "anna"),
        ("  Dr. Mary-Jane O'Neil: come in", "dr. mary-jane o'neil"),
        ("Anna said: at six?", "anna said"),
        ("https://example.org: it works", ""),
        ("12:30 is fine", ""),
        ("At six", ""),
        ("", ""),
        (f"{'a' * 60}: too long for a name", ""),
    ],
)
def test_a_speaker_stands_before_a_colon(content: str, speaker: str) -> None:
    """Addresses and times are nobody."""
    assert speaker_of(content) == speaker


SAID = ["Anna: I like tea.", "John: I like tea too.", "Tea for me."]


@pytest.mark.parametrize(
    ("query", "bonuses"),
    [
        ("What does John like?", [0.0, 1.5, 0.0]),
        ("What is ANNA's tea?", [1.5, 0.0, 0.0]),
        ("What do Anna and John like?", [0.0, 0.0, 0.0]),
        ("What do Johnson and Ann like?", [0.0, 0.0, 0.0]),
        ("Who likes tea?", [0.0, 0.0, 0.0]),
        ("", [0.0, 0.0, 0.0]),
    ],
)
def test_turns_of_the_one_who_is_named_are_lifted(query: str, bonuses: list[float]) -> None:
    """Of one speaker only; a question about two is about both."""
    assert speaker_bonuses(query, SAID, 1.5) == bonuses
