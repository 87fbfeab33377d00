"""Pictures of a back-test as SVG that stands in its page: the page's own colours, so light and dark both work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import sqrt

from msgspec import Struct

_WIDTH, _HEIGHT = 360.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 10.0, 10.0, 32.0
_BAR, _BETWEEN_ROWS, _NAMES_WIDTH, _VALUE_WIDTH = 12.0, 10.0, 112.0, 40.0
_NAME_CHARS = 20
_MARK = 4.5
_SERIES = "ab"
_TICKS = 4
_Axis = Callable[[float], float]


class Operating(Struct, frozen=True):
    """A contender in the picture of recall against false alarms.

    Attributes:
        name: Its.
        curve: False-alarm rate and recall by threshold.
        control: The same of what its scorer says of the first user turn alone; drawn thin.
        point: Where it stands itself.
    """

    name: str
    curve: Sequence[tuple[float, float]]
    control: Sequence[tuple[float, float]]
    point: tuple[float, float] | None


class RatioRow(Struct, frozen=True):
    """A name with a value of 0-1 for each contender, and the interval that it is within; None: nothing to tell."""

    name: str
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]
    title: str = ""


def draw_operating(policies: Sequence[Operating]) -> str:
    """Recall over false-alarm rate by threshold, as far to the right as the policies stand, and at least to 20 %."""
    reached = [policy.point[0] for policy in policies if policy.point]
    limit = min(1.0, max([0.2, *(1.5 * rate for rate in reached)]))

    def x(value: float) -> float:
        return _LEFT + value / limit * (_WIDTH - _LEFT - _RIGHT)

    y = _upwards(1.0)
    drawn = _grid(x, y, limit, "false-alarm rate", "recall")
    for series, policy in zip(_SERIES, policies, strict=False):
        for kind, curve in (("control", policy.control), ("curve", policy.curve)):
            points = " ".join(f"{x(rate):.1f},{y(recall):.1f}" for rate, recall in _within(curve, limit))
            drawn.append(f'<polyline class="{kind} stroke-{series}" points="{points}"/>')
    for series, policy in zip(_SERIES, policies, strict=False):
        if policy.point is None:
            continue
        rate, recall = policy.point
        said = escape(f"{policy.name}: recall {recall:.1%} at {rate:.1%} false alarms")
        drawn.append(_mark(series, x(rate), y(recall), said))
        # The first is named above to the left of its mark, the second below to the right: they may lie together.
        end, dx, dy = ("end", -7, -6) if series == "a" and x(rate) > _WIDTH / 3 else ("start", 8, 14)
        drawn.append(
            f'<text class="named-{series}" text-anchor="{end}" x="{x(rate) + dx:.1f}" y="{y(recall) + dy:.1f}">'
            f"{recall:.0%} at {rate:.1%}</text>"
        )
    return _svg(drawn, _HEIGHT, "Recall against false-alarm rate, by threshold")


def draw_histogram(counts: Sequence[Sequence[int]], *, x_label: str, y_label: str) -> str:
    """Bars over 0-100 % in as many equal classes as there are counts, those of several policies side by side."""
    highest = max(1, *(count for each in counts for count in each))
    classes = len(counts[0])
    y, step = _upwards(float(highest)), (_WIDTH - _LEFT - _RIGHT) / classes

    def x(value: float) -> float:
        return _LEFT + value * (_WIDTH - _LEFT - _RIGHT)

    drawn = _grid(x, y, 1.0, x_label, y_label, highest=highest)
    width = (step - 3) / len(counts)
    for number, (series, each) in enumerate(zip(_SERIES, counts, strict=False)):
        for place, count in enumerate(each):
            if not count:
                continue
            left = _LEFT + place * step + 1.5 + number * width
            said = f"{place / classes:.0%}-{(place + 1) / classes:.0%}: {count}"
            drawn.append(
                f'<rect class="fill-{series}" x="{left:.1f}" y="{y(count):.1f}" width="{width:.1f}" '
                f'height="{y(0) - y(count):.1f}"><title>{said}</title></rect>'
            )
    return _svg(drawn, _HEIGHT, f"{y_label} by {x_label}")


def draw_reliability(contenders: Sequence[tuple[str, Sequence[tuple[float, float, int]]]]) -> str:
    """Predicted against observed; on the diagonal, probabilities are right. The more sessions, the larger the mark.

    Args:
        contenders: Series (`a` or `b`), and of each tenth: predicted, observed, sessions.
    """

    def x(value: float) -> float:
        return _LEFT + value * (_WIDTH - _LEFT - _RIGHT)

    y = _upwards(1.0)
    drawn = _grid(x, y, 1.0, "probability", "share that escalates")
    drawn.append(f'<line class="diagonal" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    for series, tenths in contenders:
        most = max(sessions for *_, sessions in tenths)
        points = " ".join(f"{x(predicted):.1f},{y(observed):.1f}" for predicted, observed, _ in tenths)
        drawn.append(f'<polyline class="curve stroke-{series}" points="{points}"/>')
        for predicted, observed, sessions in tenths:
            radius = 2.5 + 4 * sqrt(sessions / most)
            said = f"predicted {predicted:.0%}, observed {observed:.0%}: {sessions} sessions"
            drawn.append(
                f'<circle class="fill-{series}" cx="{x(predicted):.1f}" cy="{y(observed):.1f}" r="{radius:.1f}">'
                f"<title>{said}</title></circle>"
            )
    return _svg(drawn, _HEIGHT, "Share that escalates by probability")


def draw_rows(rows: Sequence[RatioRow], *, label: str) -> str:
    """Horizontal bars of shares with intervals, the contenders of a row below one another, each with its value."""
    several = max(len(row.values) for row in rows)
    height = several * _BAR + _BETWEEN_ROWS
    known = [value for row in rows for value in row.values if value is not None]
    known += [interval[1] for row in rows for interval in row.intervals if interval is not None]
    scale = (_WIDTH - _NAMES_WIDTH - _VALUE_WIDTH) / max([0.05, *known])
    drawn = []
    for place, row in enumerate(rows):
        top = place * height + _BETWEEN_ROWS / 2
        name = row.name if len(row.name) <= _NAME_CHARS else row.name[: _NAME_CHARS - 1] + "…"
        middle = top + several * _BAR / 2 + 3.5
        drawn.append(f'<text text-anchor="end" x="{_NAMES_WIDTH - 6}" y="{middle:.1f}">{escape(name)}</text>')
        for number, (series, value, interval) in enumerate(zip(_SERIES, row.values, row.intervals, strict=False)):
            if value is not None:
                said = escape(row.title or row.name)
                drawn.append(_bar(series, top + number * _BAR, value * scale, said))
                end = value * scale
                if interval is not None:
                    low, end = interval[0] * scale, interval[1] * scale
                    drawn.append(_whisker(top + number * _BAR, low, end))
                foot = top + (number + 1) * _BAR - 2.5
                drawn.append(f'<text x="{_NAMES_WIDTH + end + 4:.1f}" y="{foot:.1f}">{value:.1%}</text>')
    return _svg(drawn, max(height * len(rows), 2 * height), label)


def _bar(series: str, y: float, width: float, said: str) -> str:
    return (
        f'<rect class="fill-{series}" x="{_NAMES_WIDTH}" y="{y:.1f}" width="{max(1.0, width):.1f}" '
        f'height="{_BAR - 1.5}"><title>{said}</title></rect>'
    )


def _whisker(y: float, low: float, high: float) -> str:
    middle = y + (_BAR - 1.5) / 2
    return (
        f'<line class="whisker" x1="{_NAMES_WIDTH + low:.1f}" x2="{_NAMES_WIDTH + high:.1f}" '
        f'y1="{middle:.1f}" y2="{middle:.1f}"/>'
    )


def _upwards(highest: float) -> _Axis:
    return lambda value: _TOP + (1 - value / highest) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(x: _Axis, y: _Axis, limit: float, x_label: str, y_label: str, *, highest: int | None = None) -> list[str]:
    drawn = []
    for n in range(_TICKS + 1):
        value, share = limit * n / _TICKS, n / _TICKS
        anchor = "start" if n == 0 else "end" if n == _TICKS else "middle"
        drawn.append(f'<text text-anchor="{anchor}" x="{x(value):.1f}" y="{_HEIGHT - 18}">{value:.0%}</text>')
        if highest is None:
            drawn += _level(y(share), f"{share:.0%}")
    if highest is not None:
        for level in sorted({0, highest // 2, highest}):
            drawn += _level(y(level), f"{level:,}")
    drawn.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(0)}" y2="{y(0)}"/>')
    drawn.append(
        f'<text text-anchor="middle" x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 4}">{escape(x_label)} → '
        f"&#160; ↑ {escape(y_label)}</text>"
    )
    return drawn


def _level(y: float, label: str) -> list[str]:
    return [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text text-anchor="end" x="{_LEFT - 4}" y="{y + 3.5:.1f}">{label}</text>',
    ]


def _within(curve: Sequence[tuple[float, float]], limit: float) -> list[tuple[float, float]]:
    """The part of a curve to the left of a limit, from nothing detected on, up to the edge."""
    kept = [(0.0, 0.0)]
    for rate, recall in curve:
        if rate > limit:
            before_rate, before = kept[-1]
            kept.append((limit, before + (recall - before) * (limit - before_rate) / (rate - before_rate)))
            break
        kept.append((rate, recall))
    return kept


def _mark(series: str, x: float, y: float, said: str) -> str:
    """A disc for the first policy, a diamond for the second: told apart without colour."""
    if series == "a":
        return f'<circle class="fill-a" cx="{x:.1f}" cy="{y:.1f}" r="{_MARK}"><title>{said}</title></circle>'
    return f'<path class="fill-b" d="M{x:.1f} {y - 6:.1f} l6 6 l-6 6 l-6 -6 z"><title>{said}</title></path>'


def _svg(drawn: Sequence[str], height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{escape(label, quote=True)}">'
        f"{''.join(drawn)}</svg>"
    )
