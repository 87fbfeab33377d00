"""Pictures as Vega-Lite: with the page's colours for the page, as PNG for chat and for the PDF, without a browser."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import vl_convert

from jobs.analyse.mining.job import Picture
from jobs.analyse.report.theme import by_value, by_variable, config

_WIDTH_PX = 520
_SCALE = 2
_VEGA_LITE = "6.4"
"""The one whose schema altair writes."""
_EMBED = "window.vegaEmbed = vegaEmbed;"
_SEVERAL = {"hconcat", "vconcat", "concat", "facet", "repeat"}
_IN_ROWS = {"facet", "row", "column"}


class Drawn(NamedTuple):
    """A picture as Vega-Lite, without colours and size."""

    title: str
    caption: str
    spec: dict[str, Any]

    @property
    def description(self) -> str:
        """What it shows, for those who do not see it."""
        return f"{self.title}. {self.caption}".strip()

    @property
    def is_several(self) -> bool:
        """Whether it is made of several views, whose width cannot follow the page's."""
        return bool(_SEVERAL & self.spec.keys() or _IN_ROWS & self.spec.get("encoding", {}).keys())


def drawn(picture: Picture) -> Drawn:
    """A chart as Vega-Lite.

    Raises:
        Exception: altair's, of a chart that is none, or has too many rows.
    """
    spec: dict[str, Any] = picture.chart.to_dict()
    for own in ("$schema", "config"):
        spec.pop(own, None)
    return Drawn(picture.title, picture.caption, spec)


def for_page(picture: Drawn) -> dict[str, Any]:
    """Vega-Lite for the page: as wide as its place, unless it is made of several views."""
    spec = picture.spec | {"description": picture.description, "config": config(by_variable)}
    if not picture.is_several:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def png_of(picture: Drawn) -> bytes:
    """The picture on a white ground, twice as fine as it is large."""
    spec = picture.spec | {"config": config(by_value, font="sans-serif") | {"background": by_value("card")}}
    if not picture.is_several:
        spec |= {"width": _WIDTH_PX, "autosize": {"type": "fit-x", "contains": "padding"}}
    png: bytes = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE, scale=_SCALE, allowed_base_urls=[])
    return png


def file_name(job: str, number: int, title: str) -> str:
    """Name of a picture's file.

    >>> file_name("overview", 1, "How far sessions went")
    'overview-1-how-far-sessions-went.png'
    """
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return f"{job}-{number}-{words}.png"


@cache
def script() -> str:
    """Vega, Vega-Lite and vega-embed, to stand in the page once; they ask for nothing from anywhere."""
    bundle: str = vl_convert.javascript_bundle(_EMBED, vl_version=_VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
