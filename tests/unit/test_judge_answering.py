"""Role judge: what is judged, what is passed over, and that no answer waits for another."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from aiokafka.errors import MessageSizeTooLargeError
from structlog.testing import capture_logs

from models.errors import DeliveryFailed, Fenced, JudgeFailed
from models.events import JudgedTurn, JudgementRequested, Position, Role, TurnsJudged
from models.policy import IntakePolicy
from models.wire.codec import decode_input, encode
from streams.observe.telemetry import metrics
from streams.roles import answering
from streams.roles.judge import JudgeRole, judged
from streams.settings import load_settings
from tests.support.answering_log import ASKED_MS, AnsweringLog, poll
from tests.support.blank_events import blank

NOW = datetime(2025, 10, 11, 9, tzinfo=UTC)
NOW_S = ASKED_MS / 1000
AT_ONCE = 2


def requested(
    session: str = "s", alert: str = "a-1", text: str = "the secret words", app: str = "a"
) -> JudgementRequested:
    """An alert's last turns."""
    turns, source = [JudgedTurn(3, Role.USER, text)], Position("turns.v1", 4, 7)
    names = {"session_id": session, "app_id": app, "alert_id": alert}
    return blank(JudgementRequested, **names, timestamp=NOW, source=source, turn=3, turns=turns)


class Scripted:
    """A judge that waits where it is told to, and counts how many ask at once."""

    name = "scripted:1"

    def __init__(self, probability: float = 0.8, failure: str = "") -> None:
        self.probability = probability
        self.failure = failure
        self.holds: dict[str, asyncio.Event] = {}
        self.judged: list[str] = []
        self.asking = self.most_asking = 0
        self.within: set[timedelta] = set()

    async def judge(self, turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        """By the text of the last turn."""
        self.within.add(within)
        self.asking += 1
        self.most_asking = max(self.most_asking, self.asking)
        try:
            await asyncio.sleep(0)
            if hold := self.holds.get(turns[-1].content):
                await hold.wait()
        finally:
            self.asking -= 1
        self.judged.append(turns[-1].content)
        if self.failure:
            raise JudgeFailed(self.failure, "as told")
        return self.probability

    async def close(self) -> None:
        """Nothing to release."""


Making = Callable[[Scripted], JudgeRole]


@pytest.fixture
def log() -> AnsweringLog:
    """What the role writes."""
    return AnsweringLog()


@pytest.fixture
def role(log: AnsweringLog, monkeypatch: pytest.MonkeyPatch) -> Making:
    """Makes a role without a broker."""
    log.stand_in(JudgeRole, monkeypatch)
    monkeypatch.setattr(answering, "WRITE_EVERY_S", 60.0)  # an answer is written because it is there
    settings = load_settings(judge={"at_once": AT_ONCE, "max_age": "PT10M", "timeout": "PT7S"})
    return lambda judge: JudgeRole(settings, judge, now=lambda: NOW_S)


def counted(result: str) -> float:
    """So far, in this process."""
    return float(metrics.counter("judgements_total", result=result)._value.get())


async def test_an_answer_goes_to_the_session_that_asked(log: AnsweringLog, role: Making) -> None:
    """As a record of `turns.v1` that the sessions role takes, of the same app, at the time of the request.

    On the partition of the session's turns, wherever their producer put them.
    """
    judge = Scripted()
    await role(judge).on_records(poll(encode(requested())))
    (record,) = log.records
    event = decode_input(record.value, record.key, NOW, IntakePolicy())

    assert isinstance(event, TurnsJudged)
    names = {"session_id": "s", "app_id": "a", "alert_id": "a-1", "judge": "scripted:1"}
    assert event == TurnsJudged(**names, timestamp=NOW, probability=0.8, elapsed_ms=event.elapsed_ms)
    assert (log.topics, log.partitions, judge.within) == ({"turntide.turns.v1"}, {4}, {timedelta(seconds=7)})
    assert dict(record.headers)["schema"] == b"turns_judged.v1"


@pytest.mark.parametrize("failure", ["timeout", "rubbish", "unavailable", "no_text"])
async def test_a_failure_is_an_answer_too(failure: str) -> None:
    """It says why, is counted, and nothing of a turn stands in the log."""
    before = counted(failure)
    with capture_logs() as lines:
        said = await judged(Scripted(failure=failure), requested(), within=timedelta(seconds=1))

    assert (said.probability, said.failure) == (None, failure)
    assert counted(failure) == before + 1
    assert [line["event"] for line in lines] == ["turns_not_judged"]
    assert "secret" not in str(lines)


async def test_the_last_request_of_a_session_is_judged(log: AnsweringLog, role: Making) -> None:
    """It has the newest turns; an earlier one would be overruled at once."""
    judge, before = Scripted(), counted("superseded")
    asked = [requested(text="old"), requested("other", text="else"), requested(alert="a-2", text="new")]
    asked += [requested(alert="a-3", text="of another app", app="b")]
    await role(judge).on_records(poll(*map(encode, asked)))
    answered = {msgspec.json.decode(record.value or b"")["alert_id"] for record in log.records}

    assert (sorted(judge.judged), answered) == (["else", "new", "of another app"], {"a-1", "a-2", "a-3"})
    assert counted("superseded") == before + 1


@pytest.mark.parametrize(("age_s", "answers"), [(599.0, 1), (601.0, 0)])
async def test_what_nobody_waits_for_is_passed_over(
    log: AnsweringLog, role: Making, age_s: float, answers: int
) -> None:
    """After ten minutes whoever was alerted has looked."""
    judge, before = Scripted(), counted("expired")
    await role(judge).on_records(poll(encode(requested()), asked_ms=int((NOW_S - age_s) * 1000)))

    assert (len(judge.judged), len(log.records)) == (answers, answers)
    assert counted("expired") == before + 1 - answers


async def test_a_slow_judgement_holds_up_no_other(log: AnsweringLog, role: Making) -> None:
    """What is answered is written, and never more are under way than the settings allow."""
    judge = Scripted()
    judge.holds["slow"] = asyncio.Event()
    asked = [requested("slow", text="slow"), *(requested(f"s{n}") for n in range(6))]
    judging = asyncio.ensure_future(role(judge).on_records(poll(*map(encode, asked))))
    async with asyncio.timeout(10):
        while len(log.records) < 6:  # noqa: ASYNC110 - a list says nothing when it grows
            await asyncio.sleep(0)
    before = set(log.keys)
    judge.holds["slow"].set()
    await judging

    assert before == {f"s{n}" for n in range(6)}
    assert (log.keys[-1], judge.most_asking) == ("slow", AT_ONCE)


async def test_a_defect_leaves_nothing_running(log: AnsweringLog, role: Making) -> None:
    """The poll comes again; what was under way is not written behind it."""
    judge = Scripted()
    judge.holds["slow"] = asyncio.Event()

    async def broken(turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        if turns[-1].content == "bug":
            raise RuntimeError("a bug")
        return await Scripted.judge(judge, turns, within=within)

    judge.judge = broken  # type: ignore[method-assign]
    asked = [requested("slow", text="slow"), requested("other", text="bug")]
    with pytest.raises(RuntimeError, match="a bug"):
        await role(judge).on_records(poll(*map(encode, asked)))
    judge.holds["slow"].set()
    for _ in range(5):
        await asyncio.sleep(0)

    assert (judge.judged, log.records, judge.asking) == ([], [], 0)


async def test_a_replaced_worker_writes_no_answer(log: AnsweringLog, role: Making) -> None:
    """Whoever has the partition now has the same alerts judged."""
    log.fenced = True
    with pytest.raises(Fenced):
        await role(Scripted()).on_records(poll(encode(requested())))

    assert log.records == []


async def test_an_answer_that_the_log_refuses_is_none(log: AnsweringLog, role: Making) -> None:
    """On return the request's offset is committed: the judgement would be lost."""
    log.refusal = MessageSizeTooLargeError()
    with pytest.raises(DeliveryFailed):
        await role(Scripted()).on_records(poll(encode(requested())))
