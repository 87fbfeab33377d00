"""Days that a sentence names, by the table `days`: "Nov 1", "12 May 2027", "by 2026-06-30", "in September". English."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, date, timedelta
from functools import lru_cache
from re import Match

from models.text.tables import PatternTables

_PATTERNS = [row.pattern for row in PatternTables("days").rows("days")]
_JUST_BEFORE = timedelta(days=60)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@lru_cache(maxsize=1_024)
def names_a_day(sentence: str, said: date) -> date | None:
    """The last of the days that a sentence names; None if it names none.

    Without a year it is the next such day, unless one was in the 60 days before it was said. A month alone means its
    last day.

    >>> names_a_day("The deadline is Nov 1.", date(2026, 9, 10)), names_a_day("It may be 3.", date(2026, 9, 10))
    (datetime.date(2026, 11, 1), None)
    """
    found = (day for pattern in _PATTERNS for each in pattern.finditer(sentence) if (day := _day(each, said)))
    return max(found, default=None)


def month_of(named: Mapping[str, str | None]) -> int:
    """Number of the month that a match's groups `number` or `month` name, 1-12; 0 for none."""
    name = named.get("month")
    return int(named.get("number") or 0) or (1 + _MONTHS.index(name[:3].lower()) if name else 0)


def _day(found: Match[str], said: date) -> date | None:
    named = found.groupdict()
    month = month_of(named)
    years = range(max(said.year - 1, MINYEAR), min(said.year + 2, MAXYEAR))
    for year in [int(named["year"])] if named["year"] else years:
        last = monthrange(year, month)[1]
        number = int(named.get("day") or last)
        if 1 <= number <= last and (named["year"] or said - date(year, month, number) <= _JUST_BEFORE):
            return date(year, month, number)
    return None
