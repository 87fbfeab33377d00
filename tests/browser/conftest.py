"""One browser, one server and one tab for the tests of the live page; each test begins with an empty board."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.chromium import chromium
from tests.browser.live_server import LiveServer
from tests.browser.tab import Tab

_SMALL_LAPTOP: ViewportSize = {"width": 1280, "height": 800}
expect.set_options(timeout=30_000)  # a busy machine


@pytest.fixture(scope="module")
def _server() -> Iterator[LiveServer]:
    with LiveServer() as server:
        yield server


@pytest.fixture(scope="module")
def _tab() -> Iterator[Tab]:
    """Started once for a file; see `chromium` for why not once for all."""
    with chromium() as browser, browser.new_page(viewport=_SMALL_LAPTOP) as page:
        yield Tab(page)


@pytest.fixture
def server(_server: LiveServer) -> Iterator[LiveServer]:
    """What the page asks; empty."""
    yield _server

    _server.forget()


@pytest.fixture
def tab(_tab: Tab, server: LiveServer) -> Iterator[Tab]:
    """A tab that holds an operator's token; see `Tab` for what fails its test."""
    _tab.begin(server.url, "operator")
    yield _tab

    assert _tab.wrong == []


@pytest.fixture
def page(tab: Tab) -> Page:
    """What the tab shows."""
    return tab.page
