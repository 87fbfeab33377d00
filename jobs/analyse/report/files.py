"""Files of a report: written beside their place and renamed, so that nobody opens half a page."""

from __future__ import annotations

from pathlib import Path

from jobs.analyse.report.card import card_png
from jobs.analyse.report.gathering import Report
from jobs.analyse.report.page import render
from jobs.analyse.report.pictures import file_name, png_of


def write_page(report: Report, place: Path) -> None:
    """Write the page.

    Raises:
        OSError: The place cannot be written to.
    """
    _put(place, render(report).encode())


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write the card for chat and each chart into a folder, which is made if there is none.

    Raises:
        OSError: The folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"summary.png": card_png(report)}
    for part in report.parts:
        for number, picture in enumerate(part.pictures, 1):
            drawn[file_name(part.name, number, picture.title)] = png_of(picture)
    for name, content in drawn.items():
        _put(folder / name, content)
    return [folder / name for name in drawn]


def _put(place: Path, content: bytes) -> None:
    made = place.with_name(f".{place.name}.new")
    made.write_bytes(content)
    made.replace(place)
