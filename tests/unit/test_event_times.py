"""Days that a turn tells of."""

from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.retrieval.event_times import TELLING, event_interval, intervals
from models.retrieval.lexical import words_in
from tests.support.data_files import data_file

MONDAY = date(2023, 5, 8)
WORDS = st.sampled_from(
    ["last", "next", "this", "ago", "999 years", "may", "May", "31", "0", "February", "week", "fall", "2099"]
)


@pytest.mark.parametrize(("text", "first", "last"), data_file("event_times")["told"])
def test_days_told_are_seen_from_the_day_of_saying(text: str, first: str, last: str) -> None:
    """Relative ones and dates; of several the shortest."""
    found = event_interval(text, MONDAY)

    assert found is not None
    assert pl.Series([text]).str.contains(TELLING).all()
    assert (first, last) == tuple(date.fromordinal(day).isoformat() for day in found)


@pytest.mark.parametrize("text", data_file("event_times")["nothing"])
def test_other_words_name_no_day(text: str) -> None:
    """Verbs, numbers and days that do not exist."""
    assert event_interval(text, MONDAY) is None


@given(st.lists(WORDS, max_size=8).map(" ".join), st.datetimes(timezones=st.just(UTC)))
def test_every_text_of_every_day_has_intervals_in_order(text: str, said: datetime) -> None:
    """Also at the ends of time; and the same with the words known, whatever stands between them."""
    for each in (text, text.replace(" ", "' "), text.replace(" ", " \u2014")):
        found = intervals(each, said.date())
        assert found == intervals(each, said.date(), words_in(each))
        assert not found or not each.isascii() or pl.Series([each]).str.contains(TELLING).all()
        assert all(0 < day.first <= day.last for day in found)
