"""First person becomes third, or stays as it was said with who said it."""

from __future__ import annotations

import pytest

from models.events import Role
from models.language.retelling import retold
from tests.support.data_files import data_file


@pytest.mark.parametrize(
    ("role", "said", "told"), [(role, *pair) for role, pairs in data_file("retelling").items() for pair in pairs]
)
def test_what_is_said_is_told_of_who_said_it(role: str, said: str, told: str) -> None:
    """With a capital and a full stop, without greetings and thanks; an assistant's "you" is the user."""
    assert told == retold(said, Role(role))
