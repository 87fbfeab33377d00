"""Decay of topics: half-life by accesses, priority by age (topic memory, §3). Event time only."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Literal

from models.policy.topic import TopicPolicy

MemoryType = Literal["short-term", "transitioning", "long-term"]


def half_life(access_count: int, policy: TopicPolicy) -> timedelta:
    """`min(base * 2^(accesses // threshold), longest)`.

    >>> [half_life(n, TopicPolicy()).days for n in (0, 4, 5, 10, 15, 20, 25, 10**9)]
    [1, 1, 2, 4, 8, 16, 30, 30]
    """
    return _doubled(policy.base_half_life, policy.max_half_life, access_count // policy.access_threshold)


@lru_cache(maxsize=256)
def _doubled(base: timedelta, longest: timedelta, times: int) -> timedelta:
    return min(base * (1 << min(times, (longest // base).bit_length())), longest)


def priority(importance: float, age: timedelta, access_count: int, policy: TopicPolicy) -> float:
    """`importance * 0.5^(age / half-life)`, 0-1; a negative age (a clock that went back) counts as none.

    >>> round(priority(1.0, timedelta(days=2), 0, TopicPolicy()), 3)
    0.25
    """
    return float(importance * 0.5 ** (max(age, timedelta(0)) / half_life(access_count, policy)))


def memory_type(access_count: int, policy: TopicPolicy) -> MemoryType:
    """Short-term at the first half-life, transitioning at the second, long-term beyond (topic memory, timeline).

    >>> [memory_type(n, TopicPolicy()) for n in (4, 5, 9, 10)]
    ['short-term', 'transitioning', 'transitioning', 'long-term']
    """
    doublings = access_count // policy.access_threshold
    return "short-term" if doublings == 0 else "transitioning" if doublings == 1 else "long-term"
