"""Bytes to events: what is refused, with which reason, and never with the producer's text; deterministic ids."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import pytest
from msgspec import structs

from models.errors import InvalidRecord
from models.events import MAX_CONTENT_BYTES, Position, Role, SessionEnded, Turn
from models.events.ids import event_id, named_id
from models.events.topics import ALERTS, PROFILES
from models.policy import IntakePolicy
from models.wire.codec import decode_input, decode_output, encode
from tests.support.lake_records import profile

ARRIVED = datetime(2026, 1, 5, 9, tzinfo=UTC)
TURN = Turn(session_id="s", user_id="u", app_id="a", turn=3, role=Role.USER, content="secret words", timestamp=ARRIVED)


def decode(value: bytes | None, key: bytes | None = b"s") -> object:
    """Decode under the default rules."""
    return decode_input(value, key, ARRIVED, IntakePolicy())


def changed(**fields: object) -> bytes:
    """The turn's JSON with other fields."""
    return json.dumps(json.loads(encode(TURN)) | fields).encode()


def test_round_trip() -> None:
    """A turn survives, with or without its tag, and so does a control event; times are held in UTC.

    The limit of a content is inclusive and counts bytes.
    """
    ended = SessionEnded(session_id="s", timestamp=ARRIVED, reason="closed")
    untagged = json.loads(encode(TURN))
    del untagged["type"]

    assert decode(encode(TURN)) == TURN
    assert decode(json.dumps(untagged).encode()) == TURN
    assert decode(encode(ended)) == ended
    turn = decode(changed(timestamp="2026-01-05T10:00:00+01:00"))
    assert isinstance(turn, Turn)
    assert (turn.timestamp, turn.timestamp.tzinfo) == (ARRIVED, UTC)
    assert decode(changed(content="é" * (MAX_CONTENT_BYTES // 2)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null_value"),
        (b"", "not_json"),
        (b"secret words", "not_json"),
        (b'{"x":' + b"[" * 100_000, "not_json"),
        (encode(TURN)[:-1] + b',"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "not_json"),
        (encode(TURN)[:-1] + b',"x":\xff}', "not_json"),
        (changed(role="secret words"), "invalid_field"),
        (changed(type="secret words"), "invalid_field"),
        (changed(risk="secret words"), "invalid_field"),
        (changed(metadata={"a": ["secret words"]}), "invalid_field"),
        (changed(session_id="x" * 257), "invalid_field"),
        (changed(user_id="a\nb"), "invalid_identifier"),
        (changed(content="x" * (MAX_CONTENT_BYTES + 1)), "content_too_large"),
        (changed(content="é" * (MAX_CONTENT_BYTES // 2 + 1)), "content_too_large"),
        (changed(session_id="t"), "key_mismatch"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_refusals(value: bytes | None, reason: str) -> None:
    """Each kind of bad record has its reason, and the message holds nothing of the record."""
    with pytest.raises(InvalidRecord) as refused:
        decode(value)

    assert refused.value.reason == reason
    assert "secret" not in str(refused.value)


def test_time_limits_are_inclusive() -> None:
    """Exactly the skew and exactly the earliest time pass, a second more does not."""
    rules = IntakePolicy()
    for time, passes in (
        (ARRIVED + rules.future_skew, True),
        (ARRIVED + rules.future_skew + timedelta(seconds=1), False),
        (rules.earliest_time, True),
        (rules.earliest_time - timedelta(seconds=1), False),
    ):
        value = changed(timestamp=time.isoformat())
        if passes:
            assert decode(value)
        else:
            with pytest.raises(InvalidRecord, match="timestamp"):
                decode(value)


def test_foreign_bytes_on_an_output_topic() -> None:
    """What is no alert is refused with the topic's name."""
    with pytest.raises(InvalidRecord, match=r"alerts\.v1"):
        decode_output(ALERTS, encode(TURN))


@pytest.mark.parametrize(("count", "is_refused"), [(2**63 - 1, False), (2**63, True)])
def test_long_fractions_hide_no_long_number(count: int, *, is_refused: bool) -> None:
    """A fraction may have as many digits as it likes; a whole number behind it has 64 bits, or is refused."""
    told = structs.replace(profile("p", turns=2), mean_risk=0.0012345678901234567, repeated_topics={"a": count})

    with pytest.raises(InvalidRecord, match="64 bits") if is_refused else nullcontext():
        assert decode_output(PROFILES, encode(told)) == told


NAMESPACE = UUID("6f0d7a3c-6f0b-5a55-9a35-1d2f8f2a7c11")


@pytest.mark.parametrize("n", range(64))
def test_named_id_is_the_standard_uuid5(n: int) -> None:
    """The faster formatting sets version and variant as `uuid.uuid5` does, whatever the hash."""
    assert str(uuid5(NAMESPACE, f"alert\x1fé-{n}")) == named_id("alert", f"é-{n}")


def test_event_id_tells_causes_apart() -> None:
    """Kind, key, each part of the place and ordinal all count; the same cause has the same id."""
    here = Position("t", 0, 7)
    ids = [
        event_id("profile_updated", "s", here),
        event_id("alert_changed", "s", here),
        event_id("profile_updated", "s2", here),
        event_id("profile_updated", "s", Position("u", 0, 7)),
        event_id("profile_updated", "s", Position("t", 1, 7)),
        event_id("profile_updated", "s", Position("t", 0, 8)),
        event_id("profile_updated", "s", here, 1),
    ]

    assert (7, ids[0]) == (len(set(ids)), event_id("profile_updated", "s", Position("t", 0, 7)))
