"""Charts of pages and files: altair makes Vega-Lite, vl-convert renders it without a browser.

In a page a chart takes its colours from the style sheet (`var(--ink)`), so it follows light, dark and paper; in a file
it has those of the light palette. Needs the extra `report`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
