"""Tries, pauses and refusals, decided without a network."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from turntide import ApiError, Unreachable
from turntide.calls import NO_ANSWER, Answer, Calls, Pause, Request, Steps

_TAKEN = Answer(202, json.dumps({"accepted": []}).encode())
_GONE = Answer(NO_ANSWER, b"no connection")


def _driven(steps: Steps[Any], answers: Iterable[Answer]) -> list[Request | Pause]:
    """What is done while these answers come."""
    step, done, left = next(steps), list[Request | Pause](), iter(answers)
    while True:
        done.append(step)
        try:
            step = steps.send(_TAKEN if isinstance(step, Pause) else next(left))
        except StopIteration:
            return done


@pytest.mark.parametrize(
    ("refused", "shortest_s", "longest_s"),
    [
        (Answer(429, b"{}", "2"), 2.0, 2.0),
        (Answer(503, b"{}", "0.5"), 0.5, 0.5),
        (Answer(503, b"{}", "Wed, 21 Oct 2026 07:28:00 GMT"), 0.1, 0.2),
        (_GONE, 0.1, 0.2),
    ],
)
def test_a_request_is_tried_again_as_it_was(refused: Answer, shortest_s: float, longest_s: float) -> None:
    """Under the same ids, after what the server says, or a moment."""
    first, pause, second = _driven(Calls("shop", 1).add("Hi", user_id="u-1"), [refused, _TAKEN])

    assert isinstance(pause, Pause)
    assert shortest_s <= pause.seconds <= longest_s
    assert first is second


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([_GONE] * 3, Unreachable),
        ([Answer(429, b"{}", "3600")], ApiError),
        ([Answer(403, b'{"code": "forbidden_app", "detail": "another app"}')], ApiError),
        ([Answer(500, b"<html>")], ApiError),
    ],
    ids=["tries are used up", "too long a wait", "no right", "no problem document"],
)
def test_what_no_try_mends_is_raised(answers: list[Answer], error: type[Exception]) -> None:
    """After all tries, or at once."""
    with pytest.raises(error):
        _driven(Calls("shop", 2).add("Hi", user_id="u-1"), answers)
