"""Wording of numbers: names without their units, values with them, changes against the earlier period."""

from math import isfinite
from typing import NamedTuple

from jobs.analyse.mining.job import Figure, Period, ShownFinding
from models.policy.archive import AnonymityPolicy

NOTHING = "–"
HIDDEN = "hidden"
_SPACE = "\N{NO-BREAK SPACE}"
"""Between a number and its unit: they stay on one line."""
_UNITS = {"ratio": "%", "percent": "%", "mb": "MB", "ms": "ms", "s": "s"}
"""By the last word of a name."""
_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1_000
_PERCENT_FROM = 30
"""Of fewer things a change in percent says more than they can: from two to three is no rise by half."""
_WHOLE_FROM = 100
"""Numbers so large are shown without a fraction."""


class FigureChange(NamedTuple):
    """A figure against the earlier period."""

    text: str
    good: bool | None
    """None where neither way is better, or nothing changed."""

    @property
    def tone(self) -> str:
        """Its colour by name."""
        return {True: "good", False: "bad", None: "faint"}[self.good]


def label(name: str) -> str:
    """A name in words; its unit goes with the value.

    >>> label("label_precision_ratio"), label("alerts_per_1000_sessions"), label("app_id")
    ('label precision', 'alerts per 1,000 sessions', 'app')
    """
    words = name.split("_")
    if len(words) > 1 and (words[-1] in _UNITS or words[-1] == "id"):
        words = words[:-1]
    return " ".join(f"{int(word):,}" if word.isdecimal() else word for word in words)


def unit(name: str) -> str:
    """What stands behind a value of this name.

    >>> unit("json_mb"), unit("sessions"), unit("at_risk_ratio")
    ('MB', '', '%')
    """
    return _UNITS.get(name.rpartition("_")[2], "")


def is_share(name: str) -> bool:
    """Whether a value of this name is a part of one, to be shown in percent."""
    return name.endswith("_ratio")


def value(name: str, number: float | None) -> str:
    r"""A value with its unit, rounded for the eye.

    >>> value("sessions", 12345.0), value("at_risk_ratio", 0.0312), value("json_mb", 0.52), value("x", None)
    ('12,345', '3.12\xa0%', '0.52\xa0MB', '–')
    """
    if number is None:
        return NOTHING
    if is_share(name):
        number *= 100
    return f"{rounded(number)}{_SPACE}{unit(name)}" if unit(name) else rounded(number)


def shown(figure: Figure) -> str:
    """A figure's value; what is about too few is told from what there is nothing to tell of."""
    return HIDDEN if figure.hidden else value(figure.name, figure.value)


def takes(k: AnonymityPolicy) -> str:
    """How many it takes to be shown.

    >>> takes(AnonymityPolicy())
    'takes 5 sessions and 5 users'
    """
    return f"takes {k.min_sessions} sessions and {k.min_users} users"


def rounded(number: float | None) -> str:
    """Three digits that matter, more only of large numbers.

    >>> rounded(1234.6), rounded(12.345), rounded(0.004567), rounded(7.0), rounded(None)
    ('1,235', '12.3', '0.00457', '7', '–')
    """
    if number is None or not isfinite(number):
        return NOTHING
    if abs(number) >= _WHOLE_FROM or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def change(figure: Figure, before: float | None) -> FigureChange:
    r"""A figure against its value before: in points where it is a share, few things in numbers, else in percent.

    >>> from msgspec.structs import replace
    >>> risen = Figure(name="alerts", value=12.0, meaning="", sessions=9, users=9, better="lower")
    >>> change(risen, 10.0).text, change(replace(risen, value=120.0), 100.0)
    ('+2', FigureChange(text='+20\xa0%', good=False))
    """
    now = figure.value
    if now is None or before is None:
        return FigureChange("", None)
    if now == before:
        return FigureChange("as before", None)
    if unit(figure.name) == "%":
        text = f"{(now - before) * (100 if is_share(figure.name) else 1):+.1f} points"
    elif before == 0:
        text = "none before"
    elif max(abs(now), abs(before)) < _PERCENT_FROM and now == int(now) and before == int(before):
        text = f"{now - before:+,.0f}"
    else:
        text = f"{(now - before) / abs(before):+,.0%}".replace("%", f"{_SPACE}%")
    better = None if figure.better is None else (now > before) == (figure.better == "higher")
    return FigureChange(text.replace("-", "−"), better)


def times(now: int, before: int) -> str:
    """A count held against one before, in words.

    >>> times(4, 2), times(9, 2), times(1, 2), times(3, 3), times(5, 4), times(2, 0), times(0, 0)
    ('twice as many as the 2', '4.5 times the 2', 'half of the 2', 'as many as', 'more than the 4', 'none', 'none')
    """
    if not before:
        return "none"
    if now == before:
        return "as many as"
    if now == 2 * before:
        return f"twice as many as the {before:,}"
    if before == 2 * now:
        return f"half of the {before:,}"
    if now > 2 * before:
        return f"{rounded(now / before)} times the {before:,}"
    return f"{'more' if now > before else 'fewer'} than the {before:,}"


def days(period: Period) -> str:
    """A period in words.

    >>> from datetime import date
    >>> days(Period(date(2026, 3, 9), date(2026, 3, 15))), days(Period(date(2026, 3, 9), date(2026, 3, 9)))
    ('9 March to 15 March 2026', '9 March 2026')
    """
    last = f"{period.until.day} {period.until:%B %Y}"
    if period.days == 1:
        return last
    year = f" {period.since:%Y}" if period.since.year != period.until.year else ""
    return f"{period.since.day} {period.since:%B}{year} to {last}"


def size(number: float) -> str:
    r"""Bytes in the unit that suits.

    >>> size(1_234_567), size(12)
    ('1.23\xa0MB', '12\xa0B')
    """
    scaled = float(number)
    for name in _SIZE_UNITS[:-1]:
        if scaled < _THOUSAND:
            return f"{rounded(scaled)}{_SPACE}{name}"
        scaled /= _THOUSAND
    return f"{rounded(scaled)}{_SPACE}{_SIZE_UNITS[-1]}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(2_000, "row"), counted(2, "day is", "days are")
    ('1 row', '2,000 rows', '2 days are')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def evidence(shown: ShownFinding) -> str:
    """What a finding rests on."""
    counts = [counted(shown.rows, "row")]
    if shown.sessions is not None:
        counts.append(counted(shown.sessions, "session"))
    return "Evidence: " + ", ".join([*counts, counted(shown.users, "user")])
