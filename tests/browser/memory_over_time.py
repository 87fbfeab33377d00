"""Does the page's memory stay flat? `python -m tests.browser.memory_over_time --minutes 10` prints what it takes.

10,000 sessions, 60 changes a second in 20 frames, alerts that come and go beside as many old ones as a page keeps, and
somebody who walks through the views.
Each line is measured after a collection, so what grows is kept by the page.
"""

from __future__ import annotations

import argparse
import time
from collections import deque

from playwright.sync_api import CDPSession, Page

from models.events import AlertChanged
from tests.browser.chromium import chromium
from tests.browser.live_server import LiveServer
from tests.browser.made_up import alert, resolved, session
from tests.browser.tab import Tab

_SESSIONS, _FRAMES_PER_S, _SESSIONS_PER_FRAME = 10_000, 20, 3
_LOOK_EVERY_S = 10.0
_VIEWS = ("#/sessions", "#/session/session-00001", "#/alerts", "#/health")
_ALERTS_FIRING, _ALERTS_BEFORE = 40, 5_000


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to look")
    minutes = parser.parse_args().minutes
    with LiveServer() as server, chromium() as browser:
        rows = [session(number) for number in range(_SESSIONS)]
        server.push(rows, [resolved(alert(number, rows[number])) for number in range(_ALERTS_BEFORE)])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        Tab(page).begin(server.url, "operator")
        page.goto(server.url)
        page.get_by_text(f"{_SESSIONS:,} sessions").wait_for()
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"first paint after {paint:.0f} ms")  # noqa: T201 - it is what this prints
        _watch(server, page, page.context.new_cdp_session(page), minutes * 60)


def _watch(server: LiveServer, page: Page, tools: CDPSession, seconds: float) -> None:
    tools.send("Performance.enable")
    began, looked, frame, firing = time.monotonic(), -_LOOK_EVERY_S, 0, deque[AlertChanged]()
    while (passed := time.monotonic() - began) < seconds:
        numbers = range(frame * _SESSIONS_PER_FRAME, (frame + 1) * _SESSIONS_PER_FRAME)
        rows = [session(n % _SESSIONS, risk=(n * 7919 % 1000) / 1000, turns=n) for n in numbers]
        if frame % _FRAMES_PER_S == 0:
            firing.append(alert(_ALERTS_BEFORE + frame, rows[0]))
            server.push(alerts=[firing[-1]])
        if len(firing) > _ALERTS_FIRING:
            server.push(alerts=[resolved(firing.popleft())])
        server.push(rows)
        frame += 1
        if passed - looked >= _LOOK_EVERY_S:
            looked = passed
            page.goto(f"{server.url}{_VIEWS[int(passed / _LOOK_EVERY_S) % len(_VIEWS)]}")
            print(_figures(tools, passed, frame), flush=True)  # noqa: T201 - likewise
        page.wait_for_timeout(1000 / _FRAMES_PER_S)


def _figures(tools: CDPSession, passed: float, frames: int) -> str:
    tools.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
    return (
        f"{passed:5.0f} s  {frames * _SESSIONS_PER_FRAME:7,} changes  heap {found['JSHeapUsedSize'] / 1e6:6.2f} MB  "
        f"{found['Nodes']:5.0f} nodes  {found['JSEventListeners']:4.0f} listeners"
    )


if __name__ == "__main__":
    main()
