"""Pictures of measurements as SVG: curves and bars, each value labelled where it stands, no legend to look up.

The ground is transparent and every colour is of middle brightness, so that a picture can be read on a light and on a
dark page. The same figures give the same bytes. Needs the extra `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from msgspec import Struct

INK = "#767d86"
"""Text and lines: as readable on white as on GitHub's dark ground (contrast 4.2 and more)."""
COLOURS = ("#3b82c4", "#d9822b", "#3a9a5b", "#9a6dc7")
_LIMIT_COLOUR = "#d1495b"
_QUIET_COLOUR = "#8f97a1"
_WIDTH_IN = 7.2
_CURVE_HEIGHT_IN = 3.6
_BAR_IN = 0.34
_AROUND_BARS_IN = 1.15
_BAR_SHARE = 0.72
_ROOM_FOR_LABELS = 1.3
_ROOM_ABOVE = 1.35
_ROOM_ON_LOG = 4.0


class Curve(Struct, frozen=True):
    """Points in the order of x, and how the last of them is labelled."""

    label: str
    points: Sequence[tuple[float, float]]


class Limit(Struct, frozen=True):
    """A value that is held to, in the unit of the axis."""

    value: float
    label: str


class Bar(Struct, frozen=True):
    """One bar.

    Attributes:
        label: Beside its foot.
        value: Its length.
        limit: What it is held to, drawn across it.
        ours: Whether it stands out among others.
    """

    label: str
    value: float
    limit: Limit | None = None
    ours: bool = True


class Series(Struct, frozen=True):
    """Values of one kind, one for each row of a picture of grouped bars; None leaves a gap."""

    label: str
    values: Sequence[float | None]


def short(value: float) -> str:
    """A number in three figures, or with thousands separated where it is large.

    >>> short(12345.6), short(87.34), short(3.14159), short(0.0421), short(5.0), short(0)
    ('12,346', '87.3', '3.14', '0.042', '5', '0')
    """
    if abs(value) >= 100:  # noqa: PLR2004 - three figures
        return f"{value:,.0f}"
    decimals = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1  # noqa: PLR2004 - three figures
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".") or "0"


def draw_curves(
    file: Path,
    *,
    title: str,
    x_label: str,
    y_label: str,
    curves: Sequence[Curve],
    limit: Limit | None = None,
    log_x: bool = True,
    log_y: bool = False,
    label_points: bool = True,
) -> None:
    """Curves; every point has its value beside it and its place on the x axis.

    Args:
        file: Written, an older one replaced.
        title: What is seen.
        x_label: With unit.
        y_label: With unit.
        curves: One colour each, at least one, each with at least one point.
        limit: Drawn across.
        log_x: A logarithmic x axis; else a linear one that begins at nought.
        log_y: A logarithmic y axis too, for what grows in proportion; else it begins at nought.
        label_points: Whether every point has its value beside it; else only the highest of each curve.
    """
    with style():
        figure, axes = _figure(title, _CURVE_HEIGHT_IN)
        for number, (curve, colour) in enumerate(zip(curves, COLOURS, strict=False)):
            highest = [max(curve.points, key=lambda point: point[1])]
            labelled = curve.points if label_points else highest
            above = number == 0 or not log_y
            _draw_curve(axes, curve, colour, labelled=labelled, labels_above=above, named=len(curves) > 1)
        ticks = sorted({x for curve in curves for x, _ in curve.points})
        if log_x:
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
        axes.set_xticks(ticks, [short(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        values = [y for curve in curves for _, y in curve.points]
        if limit is not None:
            values.append(limit.value)
            axes.axhline(limit.value, color=_LIMIT_COLOUR, linestyle="--", linewidth=1)
            axes.annotate(limit.label, (ticks[0], limit.value), (0, 4), textcoords="offset points", color=_LIMIT_COLOUR)
        if log_y:
            axes.set_yscale("log")
            axes.set_ylim(min(values) / _ROOM_ON_LOG, max(values) * _ROOM_ON_LOG)
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            axes.set_ylim(0, max(values) * _ROOM_ABOVE)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.set(xlabel=x_label, ylabel=y_label)
        _save(figure, file)


def draw_bars(file: Path, *, title: str, x_label: str, bars: Sequence[Bar]) -> None:
    """Horizontal bars from the top down, each with its value at its end.

    Args:
        file: Written, an older one replaced.
        title: What is seen.
        x_label: What the length is, with unit.
        bars: At least one.
    """
    with style():
        figure, axes = _figure(title, _AROUND_BARS_IN + _BAR_IN * len(bars))
        for place, bar in enumerate(bars):
            axes.barh(place, bar.value, _BAR_SHARE, color=COLOURS[0] if bar.ours else _QUIET_COLOUR)
            _beside(axes, (bar.value, place), short(bar.value), INK)
            if bar.limit is not None:
                half = _BAR_SHARE / 2
                axes.plot([bar.limit.value] * 2, [place - half, place + half], color=_LIMIT_COLOUR, linewidth=2)
                # Beside the longer of the two, after the bar's own value.
                farthest = max(bar.value, bar.limit.value)
                gap = 44 if farthest == bar.value else 4
                _beside(axes, (farthest, place), bar.limit.label, _LIMIT_COLOUR, gap)
        longest = max(max(bar.value, bar.limit.value if bar.limit else 0.0) for bar in bars)
        _rows(axes, [bar.label for bar in bars], longest)
        axes.set(xlabel=x_label)
        _save(figure, file)


def draw_grouped_bars(file: Path, *, title: str, x_label: str, rows: Sequence[str], series: Sequence[Series]) -> None:
    """Rows of bars, one bar of each series side by side in a row.

    Args:
        file: Written, an older one replaced.
        title: What is seen.
        x_label: What the length is, with unit.
        rows: Their labels, from the top down.
        series: Each with as many values as there are rows; named at its first bar.
    """
    with style():
        figure, axes = _figure(title, _AROUND_BARS_IN + _BAR_IN * len(rows) * len(series))
        height = _BAR_SHARE / len(series)
        colours = (_QUIET_COLOUR, *COLOURS) if len(series) > 1 else COLOURS
        for number, (one, colour) in enumerate(zip(series, colours, strict=False)):
            shift = (number - (len(series) - 1) / 2) * height
            named = len(series) == 1
            for place, value in enumerate(one.values):
                if value is None:
                    continue
                axes.barh(place + shift, value, height * 0.92, color=colour)
                text = short(value) if named else f"{short(value)}  {one.label}"
                _beside(axes, (value, place + shift), text, INK)
                named = True
        longest = max((value for one in series for value in one.values if value is not None), default=0.0)
        _rows(axes, rows, longest)
        axes.set(xlabel=x_label)
        _save(figure, file)


def style() -> AbstractContextManager[None]:
    """How every picture looks: within it, text stays text and takes the ink, and nothing frames the axes."""
    return mpl.rc_context(
        {
            "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
            "svg.hashsalt": "turntide",
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )


def _draw_curve(
    axes: Axes,
    curve: Curve,
    colour: str,
    *,
    labelled: Sequence[tuple[float, float]],
    labels_above: bool,
    named: bool,
) -> None:
    xs, ys = zip(*curve.points, strict=True)
    axes.plot(xs, ys, marker="o", color=colour, linewidth=2)
    up = 7 if labels_above else -16
    for x, y in labelled:
        axes.annotate(short(y), (x, y), (0, up), textcoords="offset points", ha="center", color=colour)
    if named:
        _beside(axes, (xs[-1], ys[-1]), curve.label, colour, 8)


def _figure(title: str, height_in: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
    FigureCanvasSVG(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure, figure.add_subplot()


def _beside(axes: Axes, place: tuple[float, float], text: str, colour: str, gap: float = 4) -> None:
    axes.annotate(text, place, (gap, 0), textcoords="offset points", va="center", color=colour)


def _rows(axes: Axes, labels: Sequence[str], longest: float) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, longest * _ROOM_FOR_LABELS or 1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
