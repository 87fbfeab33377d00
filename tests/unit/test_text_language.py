"""Which script a text is in, and whether it can be English."""

from __future__ import annotations

import pytest

from models.text.language import is_probably_english, script_of
from tests.support.data_files import data_file

TEXTS = data_file("languages")


@pytest.mark.parametrize("text", TEXTS["english"])
def test_english_is_taken_for_english(text: str) -> None:
    """Terse, misspelt, with foreign names or quotations, or without a word at all."""
    assert is_probably_english(text)


@pytest.mark.parametrize("text", TEXTS["others"])
def test_another_language_is_not(text: str) -> None:
    """In Latin letters or others, with and without accents and care."""
    assert not is_probably_english(text)


@pytest.mark.parametrize(("text", "script"), [*TEXTS["scripts"], ("\ud800 lone", "latin")])
def test_the_script_is_that_of_most_letters(text: str, script: str) -> None:
    """Signs, digits and emoji have none; styled letters are Latin."""
    assert script_of(text) == script
