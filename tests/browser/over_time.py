"""Does the page's memory stay flat, and does it keep up? `python -m tests.browser.over_time --minutes 10` prints both.

10,000 sessions with as many points as are kept, 60 changes a second in 20 frames, alerts that come and go beside as
many old ones as a page keeps, and somebody who walks through the views.

Memory is measured after a collection, so what grows is kept by the page. Frames are what lay between two drawings since
the last line, the collection itself and the change of view not counted.
"""

from __future__ import annotations

import argparse
import time
from collections import deque

import numpy as np
from playwright.sync_api import CDPSession, Page

from models.events import AlertChanged
from streams.api.live.known import SPARK_POINTS
from tests.browser.chromium import chromium
from tests.browser.live_server import LiveServer
from tests.browser.made_up import alert, resolved, session
from tests.browser.tab import Tab

_SESSIONS, _FRAMES_PER_S, _SESSIONS_PER_FRAME = 10_000, 20, 3
_LOOK_EVERY_S = 10.0
_VIEWS = ("#/sessions", "#/session/session-00001", "#/alerts", "#/health")
_ALERTS_FIRING, _ALERTS_BEFORE = 40, 5_000
_DRAWN = """
() => {
  const drawn = window.drawn = {
    last: 0, gaps: [],
    take() { const { gaps } = drawn; drawn.gaps = []; drawn.last = 0; return gaps; },
  };
  const frame = (now) => {
    if (drawn.last) drawn.gaps.push(now - drawn.last);
    drawn.last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
"""


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to look")
    minutes = parser.parse_args().minutes
    with LiveServer() as server, chromium() as browser:
        rows = [session(number, points=SPARK_POINTS) for number in range(_SESSIONS)]
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
    page.evaluate(_DRAWN)
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
            looked, gaps = passed, page.evaluate("window.drawn.take()")
            page.goto(f"{server.url}{_VIEWS[int(passed / _LOOK_EVERY_S) % len(_VIEWS)]}")
            print(f"{_figures(tools, passed, frame)}  {_frames(gaps)}", flush=True)  # noqa: T201 - likewise
            page.evaluate("window.drawn.take()")
        page.wait_for_timeout(1000 / _FRAMES_PER_S)


def _figures(tools: CDPSession, passed: float, frames: int) -> str:
    tools.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
    return (
        f"{passed:5.0f} s  {frames * _SESSIONS_PER_FRAME:7,} changes  heap {found['JSHeapUsedSize'] / 1e6:6.2f} MB  "
        f"{found['Nodes']:5.0f} nodes  {found['JSEventListeners']:4.0f} listeners"
    )


def _frames(gaps_ms: list[float]) -> str:
    if not gaps_ms:
        return ""
    median, p99 = np.quantile(gaps_ms, [0.5, 0.99])
    return f"frames: {median:.1f} ms, 99 % {p99:.1f}, longest {max(gaps_ms):.0f}"


if __name__ == "__main__":
    main()
