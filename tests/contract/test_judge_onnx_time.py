"""The time of a judgement by a classifier: its own, and given back where nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from models.errors import JudgeFailed
from models.events import JudgedTurn, Role
from streams.inference.onnx_judge import OnnxJudge
from tests.support.tiny_classifier import write_classifier

onnxruntime = pytest.importorskip("onnxruntime", reason="extra `minilm` is not installed")
WITHIN = timedelta(seconds=20)
SHORT = [JudgedTurn(1, Role.USER, "One."), JudgedTurn(2, Role.USER, "Two.")]


class Slow:
    """A session whose runs take their time, and are counted."""

    def __init__(self, real: Any) -> None:
        self.real, self.runs = real, 0
        self.get_inputs, self.begun = real.get_inputs, threading.Event()

    def run(self, outputs: object, inputs: object) -> Any:
        """As the real one, later."""
        self.runs += 1
        self.begun.set()
        time.sleep(0.02)
        return self.real.run(outputs, inputs)


@pytest.fixture
async def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[OnnxJudge, Slow]]:
    """A judge that takes a window at a time, 20 ms each, and its session."""
    real = onnxruntime.InferenceSession
    made: list[Slow] = []

    def slow_session(model: str, **options: Any) -> Slow:
        made.append(Slow(real(model, **options)))
        return made[0]

    monkeypatch.setattr(onnxruntime, "InferenceSession", slow_session)
    judge = OnnxJudge(write_classifier(tmp_path), batch=1)
    made[0].runs = 0
    made[0].begun.clear()
    yield judge, made[0]
    await judge.close()


@pytest.mark.parametrize("cancelled", [False, True], ids=["too late", "cancelled"])
async def test_what_nobody_waits_for_ends_with_the_batch_at_hand(slow: tuple[OnnxJudge, Slow], cancelled: bool) -> None:
    """The thread is free for the next judgement, instead of running sixty windows more."""
    judge, session = slow
    many = [JudgedTurn(at, Role.USER, "word") for at in range(64)]
    judging = asyncio.create_task(judge.judge(many, within=WITHIN if cancelled else timedelta(seconds=0.5)))
    if cancelled:
        assert await asyncio.to_thread(session.begun.wait, WITHIN.total_seconds())
        judging.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else JudgeFailed):
        await judging
    begun = session.runs
    await judge.judge(SHORT, within=WITHIN)

    assert 0 < begun < 64
    assert session.runs <= begun + 1 + 2


async def test_the_time_of_a_judgement_is_not_spent_by_those_before_it(slow: tuple[OnnxJudge, Slow]) -> None:
    """Sixteen of about 0.2 s, one after the other, each within 1.6 s of its own: half of what all of them take."""
    judge, _ = slow
    turns = [JudgedTurn(at, Role.USER, "word") for at in range(10)]
    found = await asyncio.gather(*(judge.judge(turns, within=timedelta(seconds=1.6)) for _ in range(16)))

    assert len(found) == 16
