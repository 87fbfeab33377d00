"""Bad input on the real broker, with the real sessions role: each case ends as stated and stops nothing."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from models.events import DeadLetter, ProfileUpdated
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, events, send, sessions_role, until

GOOD: dict[str, Any] = {
    "session_id": "s",
    "user_id": "u",
    "app_id": "a",
    "turn": 0,
    "role": "user",
    "content": "Where is my parcel?",
    "timestamp": "2026-01-05T09:00:00Z",
}


def turn(**changes: object) -> bytes:
    """A good turn with changes; a field set to `...` is left out."""
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    return json.dumps(fields).encode()


REFUSED: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "not JSON": (b"s", b"hello", "not_json"),
    "truncated": (b"s", turn()[:-5], "not_json"),
    "not UTF-8": (b"s", b"\xff\xfe", "not_json"),
    "an array": (b"s", b"[]", "invalid_field"),
    "nested without end": (b"s", b'{"session_id":"s","x":' + b"[" * 100_000, "not_json"),
    "nested too deep": (b"s", turn()[:-1] + b', "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "not_json"),
    "turn as text": (b"s", turn(turn="1"), "invalid_field"),
    "no user": (b"s", turn(user_id=...), "invalid_field"),
    "empty session": (b"", turn(session_id=""), "invalid_field"),
    "300 KiB": (b"s", turn(content="x" * 300 * 1024), "content_too_large"),
    "lone surrogate": (b"s", turn(content="\ud800"), "not_json"),
    "NUL in an id": (b"s\x00", turn(session_id="s\x00"), "invalid_identifier"),
    "NaN risk": (b"s", turn(risk=float("nan")), "not_json"),
    "risk 7": (b"s", turn(risk=7), "invalid_field"),
    "turn -1": (b"s", turn(turn=-1), "invalid_field"),
    "1970": (b"s", turn(timestamp="1970-01-01T00:00:00Z"), "ancient_timestamp"),
    "2100": (b"s", turn(timestamp="2100-01-01T00:00:00Z"), "future_timestamp"),
    "no zone": (b"s", turn(timestamp="2026-01-05T09:00:00"), "invalid_field"),
    "null value": (b"s", None, "null_value"),
    "unknown role": (b"s", turn(role="robot"), "invalid_field"),
    "unknown event": (b"s", turn(type="session_exploded"), "invalid_field"),
    "other key": (b"t", turn(), "key_mismatch"),
    "no key": (None, turn(), "key_mismatch"),
}
ACCEPTED: list[bytes] = [
    turn(turn=0),
    turn(turn=1, content=""),
    turn(turn=2, content="a\x00b"),
    turn(turn=3, mood="good", nested={"a": [1]}),
    turn(turn=3),  # a duplicate
    turn(turn=5),
    turn(turn=4),  # out of order
    turn(turn=6, timestamp="2026-01-05T11:00:00+02:00"),
    turn(turn=7, content="😀" * 1000),
]
LAST = 8


@pytest.fixture
def configured(settings: Settings, tmp_path: Path) -> Settings:
    """A profile after each turn, and many dead letters in a row."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[intake]\ndead_letter_consecutive = 40\n[profile]\nevery_turns = 1\n")
    return settings.model_copy(update={"policy_file": policy})


async def told_of(settings: Settings, last_turn: int) -> ProfileUpdated | None:
    """The profile of session `s` after a given turn."""
    profiles = [p for p in await events(settings, PROFILES) if p.session_id == "s"]
    return profiles[-1] if profiles and profiles[-1].last_turn >= last_turn else None


@pytest.mark.fault("F7")
async def test_every_bad_record_becomes_a_dead_letter_and_the_rest_goes_on(
    settings: Settings, configured: Settings
) -> None:
    """Bad and good records mixed: reasons as stated, bytes kept, good turns counted once; all as the replay has it."""
    bad = [Record(key, value) for key, value, _ in REFUSED.values()]
    good = [Record(b"s", value) for value in ACCEPTED]
    mixed = [record for n, record in enumerate(bad) for record in (record, *good[n : n + 1])]
    with capture_logs() as logs:
        async with sessions_role(configured) as role:
            await send(settings, mixed, partition=0)
            # Letters are written before what came with them is folded.
            await send(settings, [Record(b"s", turn(turn=LAST))], partition=0)
            profile: ProfileUpdated = await until(partial(told_of, settings, LAST), "the last profile")
            letters: list[DeadLetter] = await events(settings, DEAD_LETTERS)
            settled = await assert_equal_to_replay(configured)
            ended = role.done()

    assert not ended
    assert settled.oracle.turns == len(ACCEPTED) + 1
    reasons = {name: reason for name, (_, _, reason) in REFUSED.items()}
    by_record = {(letter.key, letter.value): letter for letter in letters}
    assert {name: by_record[key, value].reason for name, (key, value, _) in REFUSED.items()} == reasons
    assert (len(letters), profile.turn_count, profile.duplicate_turns) == (len(REFUSED), 9, 1)
    assert all((letter.partition, letter.topic) == (0, TURNS.full_name(settings.topic_prefix)) for letter in letters)
    assert all(letter.detail and "parcel" not in letter.detail for letter in letters)
    assert logs
    assert "parcel" not in str(logs)


@pytest.mark.fault("F7")
async def test_a_flood_of_garbage_holds_nobody_up(settings: Settings, configured: Settings) -> None:
    """More than the limits allow, twice with a restart between: turns behind it and beside it are folded.

    Every refused record has its letter; those of the flood keep no bytes, as the replay has it too.
    """
    junk, good = [Record(b"s", b"junk")] * 60, Record(b"s", turn())
    elsewhere = Record(b"x", turn(session_id="x", turn=LAST))
    for rounds, last_turn in ((1, 0), (2, LAST)):
        async with sessions_role(configured) as role:
            await send(settings, junk, partition=0)
            await send(settings, [elsewhere], partition=1)
            await send(settings, [good if rounds == 1 else Record(b"s", turn(turn=LAST))], partition=0)
            await until(partial(told_of, settings, last_turn), "the turn behind the flood")
            assert {profile.session_id for profile in await events(settings, PROFILES)} == {"s", "x"}
            assert not role.done()
    letters: list[DeadLetter] = await events(settings, DEAD_LETTERS)
    kept = [letter.offset for letter in letters if letter.value is not None]

    async with sessions_role(configured):
        settled = await assert_equal_to_replay(configured)

    assert len(letters) == 2 * len(junk)
    assert kept == [*range(40), *range(61, 101)]
    assert all("source topic" in letter.detail for letter in letters if letter.value is None)
    assert settled.oracle.turns == 4
