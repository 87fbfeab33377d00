"""Words of several texts in one pass are those of each text by itself."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from models.text.words import fold_text, words_of, words_of_each

LINE = st.one_of(
    st.text(st.characters(exclude_characters="\n"), max_size=60),
    st.text(st.sampled_from("aB'`\u2019 .!?\u03a3\u0301\u200b\x0b\x1c\x85\u2028\ufb01"), max_size=20),
)


@given(st.lists(LINE, max_size=8))
@example(["`code`", "\u2019tis"])  # plain quotes are made of others only in a text that is not ASCII
@example(["x" * 3_000, "word " * 500, "end"])  # together longer than what is looked at of one text
@example(["a" * 6_000 + " tail"])
def test_words_of_each_text_are_its_own(texts: list[str]) -> None:
    """Neither quotes, composed characters, case nor length of one text change another's words."""
    assert [words_of(fold_text(text)) for text in texts] == words_of_each(texts)
