"""Colours and type of the report: one family with the pages of the demo and of back-tests.

Pictures on the page take their colours from the page's style sheet (`var(--ink)`), so they follow light, dark and
paper without being drawn again; pictures in files have those of the light one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

Background = Literal["light", "dark"]

_PALETTES: Mapping[Background, Mapping[str, str]] = {
    "light": {
        "page": "#fbfbf9",
        "card": "#ffffff",
        "ink": "#1f2328",
        "faint": "#5d666e",
        "line": "#d9dcdf",
        "grid": "#e7e9eb",
        "good": "#2e7d32",
        "bad": "#c62828",
        "a": "#1f6feb",
        "b": "#b35900",
        "c": "#2e7d32",
        "d": "#c62828",
        "e": "#7b3fb3",
        "f": "#00788a",
        "g": "#8a6d00",
        "h": "#a83b78",
    },
    "dark": {
        "page": "#14171a",
        "card": "#1c2024",
        "ink": "#e6e8ea",
        "faint": "#98a1a9",
        "line": "#333a40",
        "grid": "#2a3035",
        "good": "#6fc276",
        "bad": "#ff7b72",
        "a": "#6ea8fe",
        "b": "#f0a04b",
        "c": "#6fc276",
        "d": "#ff7b72",
        "e": "#b891f0",
        "f": "#4cc3d4",
        "g": "#d9b84a",
        "h": "#e887bb",
    },
}
_SERIES = tuple("abcdefgh")
_RAMP = ("#7d94ab", "#5b83c4", "#7a5bc7", "#b8478f", "#d9534f", "#f0883e")
"""From little to much; each of these stands out from a light and from a dark ground. Scales cannot mix variables."""
_DIVERGING = ("#1f6feb", "#7d94ab", "#d9534f")
_FONT = "system-ui, sans-serif"
_LABEL_PX, _LONGEST_LABEL_PX, _LONGEST_NAME_PX = 11, 150, 240
_HEIGHT_PX, _STEP_PX, _INNER_WIDTH_PX = 220, 22, 200

Colour = Callable[[str], str]


def variables(background: Background) -> str:
    """The palette as declarations of a style sheet."""
    return " ".join(f"--{name}: {colour};" for name, colour in _PALETTES[background].items())


def by_variable(name: str) -> str:
    """The colour as the page's style sheet has it."""
    return f"var(--{name})"


def by_value(name: str) -> str:
    """The colour on a light ground, for files."""
    return _PALETTES["light"][name]


def config(colour: Colour, *, font: str = _FONT) -> dict[str, Any]:
    """What all pictures have in common, as the configuration of Vega-Lite."""
    ink, faint, line = colour("ink"), colour("faint"), colour("line")
    return {
        "background": "transparent",
        "font": font,
        "padding": 4,
        "view": {
            "stroke": None,
            "continuousHeight": _HEIGHT_PX,
            "continuousWidth": _INNER_WIDTH_PX,
            "discreteHeight": {"step": _STEP_PX},
        },
        "axis": {
            "labelColor": faint,
            "titleColor": faint,
            "gridColor": colour("grid"),
            "domainColor": line,
            "tickColor": line,
            "titleFontWeight": "normal",
            "labelFontSize": _LABEL_PX,
            "titleFontSize": _LABEL_PX,
            "labelLimit": _LONGEST_LABEL_PX,
            "labelOverlap": "greedy",
        },
        # Categories are never left out, but for those of time.
        "axisYDiscrete": {"labelOverlap": False, "grid": False, "labelColor": ink, "labelLimit": _LONGEST_NAME_PX},
        "axisXDiscrete": {"labelOverlap": "greedy", "grid": False},
        "axisXTemporal": {"grid": False, "tickCount": 6},
        "axisQuantitative": {"tickCount": 5},
        "legend": {
            "orient": "top",
            "labelColor": ink,
            "titleColor": faint,
            "titleFontWeight": "normal",
            "labelFontSize": _LABEL_PX,
            "titleFontSize": _LABEL_PX,
            "symbolStrokeWidth": 2,
            "columns": 4,
            "labelLimit": _LONGEST_LABEL_PX,
            "layout": {"top": {"anchor": "start", "bounds": "full", "direction": "horizontal"}},
        },
        "header": {
            "labelColor": ink,
            "titleColor": faint,
            "labelFontSize": _LABEL_PX,
            "titleFontSize": _LABEL_PX,
            "titleFontWeight": "normal",
        },
        "title": {"color": ink, "fontSize": 12, "fontWeight": "normal"},
        **{mark: {"color": colour("a")} for mark in ("mark", "bar", "line", "area", "point", "circle", "tick", "rect")},
        "line": {"color": colour("a"), "strokeWidth": 2},
        "text": {"color": ink, "fontSize": _LABEL_PX},
        "rule": {"color": faint},
        "errorbar": {"color": faint},
        "range": {
            "category": [colour(series) for series in _SERIES],
            "ramp": list(_RAMP),
            "heatmap": list(_RAMP),
            "ordinal": list(_RAMP),
            "diverging": list(_DIVERGING),
        },
    }
