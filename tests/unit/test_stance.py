"""What denies, and what stands against what."""

from __future__ import annotations

import pytest

from models.language.contradiction import contradicting, denies


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("We won't use MongoDB.", True),
        ("We decided not to use Kubernetes.", True),
        ("No MongoDB in production.", True),
        ("The API must not expose ids.", True),
        ("Use no ORM.", True),
        ("Use PostgreSQL, not MongoDB.", False),
        ("Use Redis because Memcached does not persist.", False),
        ("Use tabs instead of what never worked.", False),
        ("We will not only use Redis.", False),
        ("", False),
    ],
)
def test_a_denial_is_in_the_main_clause(content: str, expected: bool) -> None:
    """What is denied aside is no denial of what is decided."""
    assert expected == denies(content)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Use MongoDB for the catalogue.", "The team must not use MongoDB.", True),
        ("Deploy on Fridays.", "Never deploy on Fridays.", True),
        ("The API must answer within 100 ms.", "The API must answer within 200 ms.", True),
        ("Use MongoDB for sessions.", "Must not use MongoDB in production.", False),
        ("Use PostgreSQL.", "We won't use MongoDB.", False),
        ("I live in Oslo.", "I live in Bergen.", False),
    ],
)
def test_opposites_contradict_both_ways_round(one: str, other: str, expected: bool) -> None:
    """By what is denied and by other values, not by what people say of themselves."""
    assert (expected, expected) == (contradicting(one, other), contradicting(other, one))
