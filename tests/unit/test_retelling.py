"""First person becomes third, or stays as it was said with who said it."""

from __future__ import annotations

import pytest

from models.events import Role
from models.language.retelling import retold


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I prefer meetings after 2pm on weekdays", "User prefers meetings after 2pm on weekdays."),
        (
            "Actually I usually work from home and I'm based in Oslo.",
            "User usually works from home and they're based in Oslo.",
        ),
        ("I'd rather fly in the morning", "User would rather fly in the morning."),
        ("I'd better go by train", "User had better go by train."),
        ("My order number is 88213 btw", "User's order number is 88213."),
        (
            "My wife is vegetarian and I'm allergic to nuts",
            "User's wife is vegetarian and the user is allergic to nuts.",
        ),
        ("My wife and I live in Porto.", "User and their wife live in Porto."),
        ("My name is Alex and I prefer Python.", "User's name is Alex and the user prefers Python."),
        ("The app crashes when I open my camera", "The app crashes when the user opens their camera."),
        ("Ok, let's go with PostgreSQL 16 then.", "User decided to go with PostgreSQL 16."),
        ("Let's not use Mongo", "User decided not to use Mongo."),
        ("Please always answer in Spanish.", "User asked to always answer in Spanish."),
        ("Exchange please, I'll take size 43.", "User will take size 43."),
        ("Reinstalling fixed it, thank you so much!", "Reinstalling fixed it."),
        ("I moved to Rotterdam, please update my address.", "User moved to Rotterdam."),
        ("We prefer small hotels.", "User: We prefer small hotels."),
        ("The deadline is Nov 1.", "The deadline is Nov 1."),
        ("I\u2019m from Graz", "User is from Graz."),
        ("Ich bevorzuge Rechnungen per E-Mail", "Ich bevorzuge Rechnungen per E-Mail."),
        ("...", ""),
    ],
)
def test_what_a_user_says_is_told_of_the_user(said: str, told: str) -> None:
    """With a capital and a full stop, without greetings and thanks."""
    assert told == retold(said, Role.USER)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I've refunded 20 euros to your card.", "Assistant has refunded 20 euros to the user's card."),
        ("You are now on the Pro plan and you have 5 seats.", "The user is now on the Pro plan and they have 5 seats."),
        ("I recommend that you restart your router", "Assistant recommends that the user restarts their router."),
    ],
)
def test_what_an_assistant_says_is_told_of_it(said: str, told: str) -> None:
    """And "you" is the user."""
    assert told == retold(said, Role.ASSISTANT)
