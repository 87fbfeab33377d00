"""Rate limits: token buckets, in bounded memory."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from http import HTTPStatus
from time import monotonic

from streams.http.problems import Problem
from streams.settings.http import HttpSettings

MOST_KNOWN = 10_000
"""Callers whose buckets are kept; the one that asked longest ago goes, with a full bucket soon anyway."""


class Buckets:
    """A bucket for each caller: it fills at a rate, and each request takes one out.

    Args:
        per_second: How fast a bucket fills.
        burst: How much a full one holds.
        clock: Seconds, monotonic.

    >>> now = [0.0]
    >>> buckets = Buckets(per_second=2.0, burst=1, clock=lambda: now[0])
    >>> buckets.take("a"), buckets.take("a"), buckets.take("b")
    (0.0, 0.5, 0.0)
    >>> now[0] = 0.5
    >>> buckets.take("a")
    0.0
    """

    def __init__(self, *, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, who: Hashable) -> float:
        """Seconds until the caller may ask again; 0 where they may now. Nothing is taken."""
        return max(0.0, (1.0 - self._full(who)) / self.per_second)

    def take(self, who: Hashable) -> float:
        """Take one out, if there is one; gives what `wait` does."""
        left = self._full(who)
        if left < 1.0:
            return (1.0 - left) / self.per_second
        self._left[who] = (left - 1.0, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return 0.0

    def _full(self, who: Hashable) -> float:
        left, at = self._left.get(who, (float(self.burst), 0.0))
        return min(float(self.burst), left + (self._clock() - at) * self.per_second)


class Rates:
    """How often each caller may ask, and each address be wrong.

    Args:
        settings: The limits.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._asked = Buckets(per_second=settings.requests_per_second, burst=settings.burst)
        per_minute = settings.failed_tokens_per_minute
        self._failed = Buckets(per_second=per_minute / 60, burst=math.ceil(per_minute))
        self._trusted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def asked(self, who: Hashable) -> None:
        """A request of somebody.

        Raises:
            Problem: 429, too many of them.
        """
        if seconds := self._asked.take(who):
            raise _too_many("requests", self._asked, seconds)

    def trying(self, address: str, digest: bytes) -> None:
        """A token comes from an address. One that was right there before is always looked at.

        Raises:
            Problem: 429, too many wrong ones came from there.
        """
        if (address, digest) not in self._trusted and (seconds := self._failed.wait(address)):
            raise _too_many("failed-tokens", self._failed, seconds)

    def right(self, address: str, digest: bytes) -> None:
        """It was somebody's."""
        self._trusted[address, digest] = None
        self._trusted.move_to_end((address, digest))
        if len(self._trusted) > MOST_KNOWN:
            self._trusted.popitem(last=False)

    def wrong(self, address: str) -> None:
        """It was nobody's."""
        self._failed.take(address)


def _too_many(policy: str, buckets: Buckets, seconds: float) -> Problem:
    """429 with the headers of draft-ietf-httpapi-ratelimit-headers."""
    wait_s, window_s = math.ceil(seconds), math.ceil(buckets.burst / buckets.per_second)
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate_limited" if policy == "requests" else "too_many_failed_tokens",
        f"too many {policy.replace('-', ' ')}: wait {wait_s} s",
        headers={
            "Retry-After": str(wait_s),
            "RateLimit-Policy": f'"{policy}";q={buckets.burst};w={window_s}',
            "RateLimit": f'"{policy}";r=0;t={wait_s}',
        },
    )
