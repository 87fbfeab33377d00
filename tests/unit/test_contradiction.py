"""Which memories say something else of the same, and which only look like it."""

from __future__ import annotations

import pytest

from models.language.contradiction import conflicts, sentences_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers meetings after 2pm.", "User prefers meetings after 4pm."),
        ("User prefers meetings after 2pm.", "User prefers meetings before 2pm."),
        ("User eats meat.", "User does not eat meat."),
        ("User likes coffee.", "User dislikes coffee."),
        ("User lives in Oslo.", "User lives in Bergen."),
        ("The user lives in Oslo. They have a dog.", "User is a nurse. User lives in Bergen."),
        ("User prefers tabs.", "User prefers spaces."),
        ("User's favourite colour is blue.", "User's favourite colour is green."),
        ("The deadline is Nov 1.", "The deadline is Nov 8."),
        ("The ticket costs 20.", "The ticket costs 30."),
    ],
)
def test_other_values_of_the_same_conflict(one: str, other: str) -> None:
    """Whichever of the two is the newer."""
    assert (True, True) == (conflicts(one, other), conflicts(other, one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers tea.", "User prefers tea."),
        ("User prefers meetings after 2pm.", "User prefers meetings after 2pm on weekdays."),
        ("User eats meat.", "User does not eat raw meat."),
        ("User likes coffee.", "User likes tea."),
        ("User likes coffee.", "User's wife dislikes coffee."),
        ("User lives in Oslo.", "User lives in Oslo, Norway."),
        ("User's order 123 was refunded.", "User's order 456 was refunded."),
        ("User's order number is 123.", "User's order number is 456."),
        ("Ticket #12 is open.", "Ticket #13 is open."),
        ("Assistant refunded 20 euros.", "Assistant refunded 30 euros."),
        ("The budget is 500 euros.", "The budget is 500 euros per person."),
        ("User's plan is Pro.", "User's plan is the Pro plan."),
        ("User decided to use Redis.", "User decided to use dark mode."),
        ("User likes thing 0.", "User likes thing 1."),
        ("Conversation about Monday and parcel.", "Conversation about Friday and parcel."),
        ("", "User prefers tea."),
    ],
)
def test_near_misses_do_not_conflict(one: str, other: str) -> None:
    """More of the same, another thing, another time, or nothing at all."""
    assert (False, False) == (conflicts(one, other), conflicts(other, one))


def test_sentences_are_cut_at_stops_only() -> None:
    """Numbers and addresses stay whole; what holds no word is none."""
    text = "It costs 2.5 euros at shop.example. Good! ... Really?"

    assert ("It costs 2.5 euros at shop.example.", "Good!", "Really?") == sentences_of(text)
