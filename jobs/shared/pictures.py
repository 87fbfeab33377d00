"""Charts of pages and files: altair makes Vega-Lite, vl-convert renders it without a browser.

In a page a chart (`Drawn`) takes its colours from the style sheet (`var(--ink)`), so it follows light, dark and paper;
in a file it has those of the light palette. Curves and bars of measurements (`draw_curves`, `draw_bars`,
`draw_grouped_bars`) have a value at each point and no legend, on a transparent ground; their colours are of middle
brightness, so that they can be read on a light and on a dark page. The same figures give the same bytes. Needs the
extra `report`.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError
from streams.http.pages import palettes, source

try:
    import altair as alt
    import vl_convert
except ModuleNotFoundError as error:
    raise ConfigurationError(f"pictures need the Python package `{error.name}`: install `turntide[report]`") from error

_VEGA_LITE = "6.4"
"""The version whose schema altair writes."""
_FILE_WIDTH_PX, _FILE_SCALE = 520, 2
_EMBED = "window.vegaEmbed = vegaEmbed;"
_SEVERAL = {"hconcat", "vconcat", "concat", "facet", "repeat"}
_IN_ROWS = {"facet", "row", "column"}
_MARK = re.compile(r'<(path)( aria-label="([^"]*)"[^>]*)/>')
"""Of a mark, what it is shows where somebody points at it."""
_NAMESPACE = re.compile(r'\sxmlns(?::\w+)?="[^"]*"')
COLOURS = ("#3b82c4", "#d9822b", "#3a9a5b", "#9a6dc7")
_QUIET_COLOUR = "#8f97a1"
_WIDTH_PX, _HEIGHT_PX, _BAR_PX = 460, 200, 24
_ROOM_FOR_LABELS, _ROOM_ABOVE, _ROOM_ON_LOG = 1.3, 1.35, 4.0
_MEASUREMENTS = "jobs/shared/measurements.yaml"


class Drawn(NamedTuple):
    """A chart as Vega-Lite, without theme and width."""

    title: str
    caption: str
    spec: dict[str, Any]

    @property
    def description(self) -> str:
        """Text alternative for those who do not see the chart."""
        return f"{self.title}. {self.caption}".strip()

    @property
    def is_several(self) -> bool:
        """True if the chart is made of several views, whose width cannot follow the page's."""
        return bool(_SEVERAL & self.spec.keys() or _IN_ROWS & self.spec.get("encoding", {}).keys())

    def inline(self, width: int) -> str:
        """SVG that stands in a page.

        Args:
            width: In pixels, where the page scales it neither up nor down.
        """
        spec = self.for_page(width)
        # Fonts are measured here, and other ones may be wider there.
        spec["config"]["padding"] = {"left": 14, "top": 4, "right": 8, "bottom": 4}
        svg = _NAMESPACE.sub("", svg_of(spec)).replace("<svg ", '<svg role="img" ', 1)
        return _MARK.sub(r"<\1\2><title>\3</title></\1>", svg)

    def for_page(self, width: int | str = "container") -> dict[str, Any]:
        """Vega-Lite that a page draws itself with `script`; as wide as its place, unless it is several views."""
        return self._themed(lambda name: f"var(--{name})", width) | {"description": self.description}

    def svg(self) -> str:
        """SVG as a file, in light colours on a transparent ground."""
        return svg_of(self._for_file())

    def png(self) -> bytes:
        """PNG on a white ground, twice as fine as it is large."""
        spec = self._for_file()
        spec["config"]["background"] = light("card")
        png: bytes = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE, scale=_FILE_SCALE, allowed_base_urls=[])
        return png

    def _for_file(self) -> dict[str, Any]:
        spec = self._themed(light, _FILE_WIDTH_PX)
        spec["config"]["font"] = "sans-serif"
        return spec

    def _themed(self, colour: Callable[[str], str], width: int | str) -> dict[str, Any]:
        spec = self.spec | {"config": _coloured(_theme(), colour)}
        if not self.is_several:
            spec |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        return spec


def drawn(title: str, caption: str, chart: alt.TopLevelMixin) -> Drawn:
    """A chart with its title and caption.

    Raises:
        Exception: altair's, of a chart that is none, or has too many rows.
    """
    spec: dict[str, Any] = chart.to_dict()
    return Drawn(title, caption, {name: part for name, part in spec.items() if name not in {"$schema", "config"}})


def described(file: str, name: str, words: Mapping[str, str], **values: Any) -> Drawn:
    """A chart of a file of descriptions, see `charts_of`, with its title and caption.

    Args:
        file: Its path.
        name: Of the chart in it.
        words: What title and caption name in braces.
        values: What the chart names as `$name`, its rows among them.
    """
    about = dict(charts_of(file)[name])
    title, caption = (about.pop(each).format(**words) for each in ("title", "caption"))
    return Drawn(title, caption, written_out(about, values))


@cache
def charts_of(file: str) -> dict[str, Any]:
    """Charts by name as Vega-Lite whose channels are shorthands of altair's, alone or as `of` beside what they have."""
    return msgspec.yaml.decode(source(file), type=dict[str, Any])


def written_out(part: Any, values: Mapping[str, Any]) -> Any:
    """A part of such a chart as Vega-Lite, with a value for each `$name`."""
    if isinstance(part, list):
        return [written_out(each, values) for each in part]
    if isinstance(part, str) and part.startswith("$"):
        return values[part[1:]]
    if not isinstance(part, dict):
        return part
    written = {name: written_out(each, values) for name, each in part.items() if name not in {"encoding", "facet"}}
    if "facet" in part:
        written["facet"] = _channel(part["facet"], values)
    if "encoding" in part:
        written["encoding"] = {name: _channel(each, values) for name, each in part["encoding"].items()}
    return written


def _channel(channel: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(channel, list):
        return [_channel(each, values) for each in channel]
    given = {"of": channel} if isinstance(channel, str) else channel
    looks = {name: written_out(look, values) for name, look in given.items() if name != "of"}
    return alt.utils.parse_shorthand(given["of"]) | looks if "of" in given else looks


def svg_of(spec: dict[str, Any]) -> str:
    """Vega-Lite as SVG; text stays text, and the same gives the same bytes."""
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE, allowed_base_urls=[])
    return svg


def data_of(values: Iterable[Mapping[str, Any]]) -> alt.Data:
    """Data of a chart, its columns typed by the channels that name them."""
    return alt.Data(values=list(values))  # type: ignore[no-untyped-call]


def light(name: str) -> str:
    """A colour of the light palette, for files."""
    return palettes()["light"][name]


@cache
def script() -> str:
    """Vega, Vega-Lite and vega-embed, to stand in a page once; they ask for nothing from anywhere."""
    bundle: str = vl_convert.javascript_bundle(_EMBED, vl_version=_VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def write_whole(place: Path, content: bytes) -> None:
    """Write a file so that nobody finds half of it.

    Raises:
        OSError: The place cannot be written to.
    """
    made = place.with_name(f".{place.name}.new")
    made.write_bytes(content)
    made.replace(place)


@cache
def _theme() -> dict[str, Any]:
    return tomllib.loads(source("jobs/shared/chart_theme.toml"))


def _coloured(part: Any, colour: Callable[[str], str]) -> Any:
    """A part of the theme with its colours instead of their names."""
    if isinstance(part, dict):
        return {name: _coloured(value, colour) for name, value in part.items()}
    if isinstance(part, list):
        return [_coloured(value, colour) for value in part]
    return colour(part) if part in palettes()["light"] else part


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
    points: list[dict[str, Any]] = [
        {
            "curve": curve.label,
            "x": x,
            "y": y,
            "value": short(y) if label_points or (x, y) == max(curve.points, key=lambda point: point[1]) else "",
            "name": curve.label if len(curves) > 1 and (x, y) == curve.points[-1] else "",
            # Where scales are logarithmic, lower curves have their values below: they run side by side.
            "below": bool(number) and log_y,
        }
        for number, curve in enumerate(curves)
        for x, y in curve.points
    ]
    ticks = sorted({x for curve in curves for x, _ in curve.points})
    values = [*(point["y"] for point in points), *([limit.value] if limit else [])]
    lowest = min(values) / _ROOM_ON_LOG if log_y else 0.0
    highest = max(values) * (_ROOM_ON_LOG if log_y else _ROOM_ABOVE)
    _save(
        file,
        "curves",
        title,
        _HEIGHT_PX,
        points=points,
        limits=[{"x": ticks[0], "y": limit.value, "limit": limit.label}] if limit else [],
        x_label=x_label,
        x_scale={"type": "log", "nice": False, "padding": 20} if log_x else {"domainMin": 0},
        ticks=ticks,
        y_label=y_label,
        y_scale={"type": "log" if log_y else "linear", "domain": [lowest, highest or 1.0], "nice": False},
        y_ticks=not log_y,
        names=[curve.label for curve in curves],
        colours=COLOURS[: len(curves)],
    )


def draw_bars(file: Path, *, title: str, x_label: str, bars: Sequence[Bar]) -> None:
    """At least one horizontal bar, from the top down, each with its value at its end."""
    ends = [max(bar.value, bar.limit.value if bar.limit else 0.0) for bar in bars]
    longest = max(ends)
    rows = [
        {
            "row": bar.label,
            "length": bar.value,
            "text": short(bar.value),
            "colour": COLOURS[0] if bar.ours else _QUIET_COLOUR,
            "limit": bar.limit.value if bar.limit else None,
            "held": bar.limit.label if bar.limit else "",
            "end": end,
            # After the bar's own value, where that is near.
            "gap": 44 if end < bar.value + longest / 10 else 5,
        }
        for bar, end in zip(bars, ends, strict=True)
    ]
    length = longest * _ROOM_FOR_LABELS or 1
    _save(file, "bars", title, {"step": _BAR_PX}, rows=rows, x_label=x_label, longest=length, tick=_BAR_PX * 0.8)


def draw_grouped_bars(file: Path, *, title: str, x_label: str, rows: Sequence[str], series: Sequence[Series]) -> None:
    """Rows of bars, one bar of each series side by side in a row.

    Args:
        file: Written, an older one replaced.
        title: What is seen.
        x_label: With unit.
        rows: Their labels, from the top down.
        series: Each with as many values as there are rows; named at its first bar.
    """
    colours = (_QUIET_COLOUR, *COLOURS) if len(series) > 1 else COLOURS
    bars: list[dict[str, Any]] = []
    for one, colour in zip(series, colours, strict=False):
        named = len(series) == 1
        for row, value in zip(rows, one.values, strict=True):
            if value is not None:
                text = short(value) if named else f"{short(value)}  {one.label}"
                bars.append({"row": row, "series": one.label, "length": value, "text": text, "colour": colour})
                named = True
    longest = max((bar["length"] for bar in bars), default=0.0) * _ROOM_FOR_LABELS or 1
    height = {"step": _BAR_PX * 0.8, "for": "position"} if len(series) == 1 else {"step": _BAR_PX * 0.7}
    names = [one.label for one in series]
    _save(file, "grouped_bars", title, height, bars=bars, x_label=x_label, longest=longest, rows=rows, series=names)


def _save(file: Path, name: str, title: str, height: Any, **values: Any) -> None:
    charts = charts_of(_MEASUREMENTS)
    spec = {"title": title, "width": _WIDTH_PX, "height": height, "config": charts["config"]}
    spec |= written_out(charts[name], values)
    spec["layer"] = [layer for layer in spec["layer"] if layer.get("data", spec.get("data"))["values"]]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(svg_of(spec), "utf-8")
