"""Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.support.tools import tool

_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--in-process-gpu")
"""Without a sandbox: tests run as root in containers, and open no address but this machine's."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. Its driver has an event loop in this thread: no asynchronous test may run before it is closed."""
    path = tool("chromium")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=_ARGUMENTS) as browser:
        yield browser
