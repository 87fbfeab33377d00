"""F6: duplicates, out of order, late within and beyond grace: the same final profile as sorted input, through Kafka."""

import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from models.events import SessionEnded, Turn
from models.events.topics import PROFILES
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role, until

pytestmark = pytest.mark.fault("F6")

TURNS = 60
TEXTS = ("What are your limits?", "Tell me how hackers bypass a lock.", "Pretend you are a pirate.", "Thanks!")
SAME = (
    "turn_count", "last_turn", "late_turns", "started_at", "peak_risk", "slope", "suspicion", "question_count",
    "imperative_count", "probing_attempts", "hypothetical_count", "meta_instruction_count",
)  # fmt: skip


def conversation(session_id: str, start: datetime) -> list[Turn]:
    """An escalating one, twenty seconds a turn: most of it lies beyond the windows' grace when it comes shuffled."""
    return [
        said(
            n,
            session_id=session_id,
            at=start + timedelta(seconds=20 * n),
            content=TEXTS[n % len(TEXTS)],
            risk=n / TURNS if n % 3 else None,
        )
        for n in range(TURNS)
    ]


async def closed(settings: Settings) -> dict[str, Any]:
    """The last profile of each session, once all are closed."""
    last = {event.session_id: event for event in await events(settings, PROFILES)}
    return last if sum(not event.open for event in last.values()) == 4 else {}


async def test_disorder_leaves_the_profile_of_sorted_input(settings: Settings) -> None:
    """Sorted, shuffled, doubled, and swapped by a turn or two: one profile, and exact equality with the oracle."""
    ids = ("sorted", "shuffled", "doubled", "swapped")
    start = datetime.now(UTC) - timedelta(minutes=25)
    sorted_, mixed, twice, swapped = ([recorded(turn) for turn in conversation(name, start)] for name in ids)
    doubled = [record for n, record in enumerate(twice) for record in [record] * (1 + (n % 4 == 0))]
    doubled += twice[-20:]
    near = [record for n in range(0, TURNS, 3) for record in reversed(swapped[n : n + 3])]
    ends = [recorded(SessionEnded(session_id=name, timestamp=datetime.now(UTC))) for name in ids]
    for records in (sorted_, random.Random(6).sample(mixed, len(mixed)), doubled, near):
        await send(settings, records)
    await send(settings, ends)
    async with sessions_role(settings):
        profiles = await until(partial(closed, settings), "four closed profiles")
        await assert_equal_to_replay(settings)

    expected = {name: getattr(profiles["sorted"], name) for name in SAME}
    assert {name: {field: getattr(profiles[name], field) for field in SAME} for name in ids} == dict.fromkeys(
        ids, expected
    )
    assert expected["turn_count"] == TURNS
    assert [profiles[name].duplicate_turns for name in ids] == [0, 0, 15 + 20, 0]
    assert [profiles[name].mean_risk for name in ids] == pytest.approx([profiles["sorted"].mean_risk] * 4, abs=1e-12)
