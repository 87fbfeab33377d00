"""Whether everybody can use a page, as far as a program can tell: axe-core, in both colour schemes."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def see_no_violation(page: Page, where: str) -> None:
    """Assert that axe finds nothing: by all rules in the light, by that of contrast in the dark."""
    assert _violations(page) == [], where
    page.emulate_media(color_scheme="dark")
    assert _violations(page, runOnly=["color-contrast"]) == [], f"{where}, dark"
    page.emulate_media(color_scheme="light")


def _violations(page: Page, **options: Any) -> list[str]:
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}" for each in found]
