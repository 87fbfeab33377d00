"""Calls in any order, repeated or cut give the same turns, each message once; no bytes do more than be refused."""

import gzip
import json
import random
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.messages.otlp import spans_in
from models.messages.spans import TracedSpan, flat, turns_in
from models.wire.codec import UNDECODABLE
from streams.gateway import otlp_protobuf
from streams.gateway.otlp import unpacked
from streams.http.problems import Problem
from tests.support.traced_apps import sent_by

texts = st.sampled_from(["yes", "no", "Where is it?", "Tell me more of that."])
Exchange = tuple[str, str]


def calls_of(exchanges: list[Exchange], window: int = 10_000) -> list[TracedSpan]:
    """Calls of a conversation; each repeats so many messages of it, behind the same instructions."""
    said: list[dict[str, str]] = []
    calls = []
    for asked, answered in exchanges:
        said.append({"role": "user", "content": asked})
        messages = [{"role": "system", "content": "Be kind."}, *said[-window:]]
        calls.append(TracedSpan(attributes={"gen_ai.input.messages": messages, "gen_ai.completion": answered}))
        said.append({"role": "assistant", "content": answered})
    return calls


def named(calls: list[TracedSpan]) -> set[tuple[str | None, str, str]]:
    """Turns of calls: id, role and text."""
    return {(turn.message_id, turn.role.value, turn.content) for turn in turns_in(calls)}


@given(st.lists(st.tuples(texts, texts), max_size=12), st.randoms(use_true_random=False), st.integers(1, 5))
def test_any_order_repeated_or_cut(exchanges: list[Exchange], chance: random.Random, cut: int) -> None:
    """Though texts are said again, each message is one turn; requests may bring calls as they like."""
    calls = calls_of(exchanges)
    mixed = [*calls, *calls[::2]]
    chance.shuffle(mixed)
    cuts = [named(mixed[begin : begin + cut]) for begin in range(0, len(mixed), cut)]

    assert set().union(*cuts) == named(calls)
    assert len(named(calls)) == 2 * len(exchanges) + bool(exchanges)


@given(st.integers(1, 9), st.integers(1, 40))
def test_a_window_over_the_history(window: int, n_exchanges: int) -> None:
    """Of an application that cuts off the head of its histories each message is one turn too."""
    exchanges = [(f"question {n}", f"answer {n}") for n in range(n_exchanges)]

    assert named(calls_of(exchanges, window)) == named(calls_of(exchanges))


def test_histories_beyond_what_a_session_remembers() -> None:
    """A repeat comes soon after what it repeats: among the last few of a thousand turns."""
    log = [turn.message_id for call in calls_of([(f"q {n}", "yes") for n in range(500)]) for turn in turns_in([call])]
    first, last = ({id_: place for place, id_ in order} for order in (reversed([*enumerate(log)]), enumerate(log)))

    assert len(first) == 1_001
    assert max(last[each] - first[each] for each in first) <= 20


words = st.sampled_from(["role", "content", "parts", "message", "messages", "tool_calls", "type", "function", "0"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner) | inner.map(json.dumps),
)
names = st.sampled_from(
    [
        "gen_ai.prompt",
        "gen_ai.input.messages",
        "gen_ai.completion",
        "gen_ai.system_instructions",
        "gen_ai.prompt.0.role",
    ]
)


@given(st.dictionaries(names, values | values.map(json.dumps)))
def test_odd_values_are_passed_over(attributes: dict[str, Any]) -> None:
    """Whatever an instrumentation writes into its attributes."""
    for each in (attributes, flat(attributes)):
        turns_in([TracedSpan(attributes=each)])


SENT = next(sent_by("genai-details"))[1]
damaged = st.builds(lambda at, by: SENT[:at] + by + SENT[at + 1 :], st.integers(0, len(SENT)), st.binary(max_size=3))
READERS: list[Callable[[bytes], Iterable[TracedSpan]]] = [
    spans_in,
    *(partial(otlp_protobuf.spans_in, signal=signal) for signal in ("traces", "logs")),
]


@given(st.binary() | damaged | st.text().map(str.encode) | damaged.map(gzip.compress))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """In JSON and in protobuf, plain and compressed."""
    for read, encoding in product(READERS, ("", "gzip", "deflate")):
        try:
            turns_in(read(unpacked(body, encoding, 10_000)))
        except (*UNDECODABLE, Problem):
            continue
