"""One browser for the tests of the live page, and a server and a page of its own for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.browser.chromium import chromium
from tests.browser.live_server import LiveServer

_SMALL_LAPTOP: ViewportSize = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Started once for a file; see `chromium` for why not once for all."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def server() -> Iterator[LiveServer]:
    """What the page asks; empty."""
    with LiveServer() as server:
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of its own."""
    with browser.new_context(viewport=_SMALL_LAPTOP) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; errors of the page's scripts, violations of its policy and dialogs fail its test."""
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("console", lambda said: wrong.append(said.text) if _refused(said.text) else None)
    yield page

    assert wrong == []


def _refused(said: str) -> bool:
    return "Content Security Policy" in said or "Trusted" in said
