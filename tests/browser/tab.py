"""One tab of the browser, used by one test after the other."""

from playwright.sync_api import ConsoleMessage, Page

from tests.support.live_served import live_token


class Tab:
    """A tab.

    Attributes:
        page: What it shows.
        asked: Addresses of all requests since it began.
        wrong: Errors of the page's scripts, violations of its policy and dialogs since then.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.wrong: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        page.on("console", self._said)

    def begin(self, url: str, token: str | None) -> None:
        """Leave the page, forget what it kept, and hold the token of that name."""
        self.page.goto(f"{url}icon.svg")
        self.page.evaluate("[localStorage, sessionStorage].forEach((kept) => kept.clear())")
        if token is not None:
            self.page.evaluate("(token) => sessionStorage.setItem('turntide.token', token)", live_token(token))
        self.asked.clear()
        self.wrong.clear()

    def _said(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            self.wrong.append(message.text)
