"""Whether everybody can use a page, as far as a program can tell: axe-core, in both colour schemes."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

_FURTHER_ROWS = ".rows > .row:nth-child(n + 6)"
"""Of a list, made as the first ones are."""


def see_no_violation(page: Page, where: str) -> None:
    """Assert that axe finds nothing: by all rules in the light, by that of contrast in the dark."""
    if not page.evaluate("'axe' in window"):  # half a megabyte: once for a document
        page.evaluate(AXE_SCRIPT)
    assert _violations(page) == [], where
    page.emulate_media(color_scheme="dark")
    assert _violations(page, runOnly=["color-contrast"]) == [], f"{where}, dark"
    page.emulate_media(color_scheme="light")


def _violations(page: Page, **options: Any) -> list[str]:
    found = page.evaluate(
        """async ([where, options]) => (await axe.run(where, options)).violations.map(
            ({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 200))}`)""",
        [{"exclude": [_FURTHER_ROWS]}, {"resultTypes": ["violations"], **options}],
    )
    return list(found)
