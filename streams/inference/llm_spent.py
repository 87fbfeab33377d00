"""Counting what calls to a language model come to: their results, time, tokens and money."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from streams.observe.telemetry import metrics

_Tokens = Annotated[int, Meta(ge=0, le=2**31)]
_MILLION = 1e6


class _Usage(Struct, frozen=True):
    prompt_tokens: _Tokens = 0
    completion_tokens: _Tokens = 0


def count_call(service: str, result: str, seconds: float) -> None:
    """A call ended, with all its tries.

    Args:
        service: What it was for: `llm` or `judge`.
        result: `answered`, `timeout` or `unavailable`.
        seconds: How long it took.
    """
    metrics.counter("llm_calls_total", service=service, result=result).inc()
    metrics.histogram("llm_call_seconds", service=service).observe(seconds)


def count_usage(service: str, usage: msgspec.Raw) -> None:
    """Tokens of one answer as its server counted them, and their price; nothing where it did not count."""
    try:
        used = msgspec.json.decode(usage, type=_Usage | None) or _Usage()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    prices = metrics.settings
    by_direction = {
        "in": (used.prompt_tokens, prices.price_in_per_million),
        "out": (used.completion_tokens, prices.price_out_per_million),
    }
    for direction, (tokens, price) in by_direction.items():
        metrics.counter("llm_tokens_total", service=service, direction=direction).inc(tokens)
        metrics.counter("llm_cost_total", service=service).inc(tokens * price / _MILLION)
