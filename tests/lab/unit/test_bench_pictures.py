"""Pictures of measurements: values and names are in them as text, they read on any ground, and repeat byte by byte."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from jobs.shared.pictures import (
    COLOURS,
    Bar,
    Curve,
    Limit,
    Series,
    charts_of,
    draw_bars,
    draw_curves,
    draw_grouped_bars,
)

LENGTHS = Curve("fold", [(10, 161.0), (100, 173.0), (1_000, 179.0)])
DRAW_LENGTHS = partial(
    draw_curves, title="Cost", x_label="turns", y_label="µs per turn", curves=[LENGTHS], limit=Limit(209.0, "held")
)
DRAW_MEMORY = partial(
    draw_curves,
    title="Memory",
    x_label="sessions",
    y_label="MiB",
    curves=[Curve("process", [(1_000, 2.0), (10_000, 21.0)]), Curve("state", [(1_000, 1.0), (10_000, 9.0)])],
    log_y=True,
)
DRAW_SEEN = partial(
    draw_curves, title="Seen", x_label="seen", y_label="MB", curves=[Curve("p", [(5, 3.0)])], log_x=False
)
DRAW_LATENCY = partial(
    draw_bars, title="Latency", x_label="ms", bars=[Bar("p50", 9.0, Limit(15.0, "≤ 15")), Bar("p99", 80.0, ours=False)]
)
DRAW_STAGES = partial(
    draw_grouped_bars,
    title="Stages",
    x_label="µs per turn",
    rows=["decode", "embed"],
    series=[Series("before", [11.0, 52.0]), Series("now", [None, 23.0])],
)
PICTURES: list[tuple[Callable[[Path], None], set[str]]] = [
    (DRAW_LENGTHS, {"Cost", "turns", "µs per turn", "161", "173", "179", "10", "1,000", "held"}),
    (DRAW_MEMORY, {"Memory", "process", "state", "21", "9", "10,000", "MiB"}),
    (DRAW_SEEN, {"Seen", "seen", "MB", "3", "5"}),
    (DRAW_LATENCY, {"Latency", "ms", "p50", "p99", "9", "80", "≤ 15"}),
    (DRAW_STAGES, {"Stages", "decode", "embed", "11  before", "52", "23  now"}),
]


def texts(file: Path) -> set[str]:
    """Every text of an SVG."""
    root = ET.parse(file).getroot()  # noqa: S314 - our own file
    return {(element.text or "").strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2)."""
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("draw", "wanted"), PICTURES)
def test_values_and_names_are_text_without_a_ground_and_repeat(
    draw: Callable[[Path], None], wanted: set[str], tmp_path: Path
) -> None:
    """Nothing has to be looked up elsewhere, a page made anew changes nothing, and it can be read on any ground."""
    one, two = tmp_path / "new" / "one.svg", tmp_path / "new" / "two.svg"
    draw(one)
    draw(two)

    assert wanted - texts(one) == set()
    assert one.read_text() == two.read_text()
    assert re.findall(r"fill[:=] ?\"?(#ffffff|#000000|#000|white|black)\"", one.read_text()) == []


@pytest.mark.parametrize("background", ["#ffffff", "#0d1117"])
def test_colours_are_seen_on_light_and_dark_grounds(background: str) -> None:
    """Text has the contrast of large text and more (WCAG 2: 3), lines and bars that of graphics (3)."""
    ink = charts_of("jobs/shared/measurements.yaml")["config"]["text"]["color"]

    assert contrast(ink, background) > 4
    assert {colour for colour in COLOURS if contrast(colour, background) < 2.9} == set()
