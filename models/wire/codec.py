"""Bytes to events and back. JSON on the wire; every refusal is an `InvalidRecord` with a constant reason.

Stated rules for bad input (design §5.7):

* not UTF-8 JSON, lone surrogates, NaN: `not_json`; wrong types, missing fields, ranges: `invalid_field`.
* unknown fields are accepted and kept by the archive; folds do not see them.
* content above the limit: `content_too_large`; empty content is a turn.
* event time more than the allowed skew after the broker's append time: `future_timestamp`; before the earliest time
  (an unset clock): `ancient_timestamp`. A clock tick may come from a worker whose clock is ahead: what counts of it is
  the broker's time.
* control characters in an id: `invalid_identifier`; key missing or other than session_id: `key_mismatch`, since
  the order within a session could not be trusted.
* null value: `null_value`.
* of all but turns, which have narrower bounds: a whole number that does not fit into 64 bits with a sign, or a time
  that has no year in UTC: `invalid_field`, `undecodable_output`. Neither could be folded, archived or indexed.
* key and value together above the limit: `record_too_large`, before anything is decoded.

Many records of `turns.v1` at once (`plain_turns`): whatever is plainly a good turn by the same rules, checked over all
of them together. What is not is left to `decode_input`, which says why: a control event, a turn with fields of its own,
a refusal. So the two cannot differ but in speed.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Any, Final, TypeVar, Union

import msgspec
from msgspec import Struct

from models import events
from models.entities import carried_by, entity_key
from models.errors import ConfigurationError, InvalidRecord
from models.events import Turn
from models.events.topics import COMMANDS, Topic
from models.policy import IntakePolicy


class _Tag(Struct):
    type: str = "turn"
    turn: msgspec.Raw = msgspec.Raw(b"null")


_encoder = msgspec.json.Encoder()
_turn = msgspec.json.Decoder(events.Turn)
_unnumbered = msgspec.json.Decoder(events.UnnumberedTurn)
_control: msgspec.json.Decoder[events.ControlEvent] = msgspec.json.Decoder(events.ControlEvent)
_tag = msgspec.json.Decoder(_Tag)
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes can do to a decoder; the last one by nesting thousands of levels deep."""
NULL_VALUE: Final = "null_value"
"""Reason of a refused record that had no bytes at all."""


_POINT = ord(".")
_NUMBERS = bytes(ord("0") if chr(c).isdigit() else c if c == _POINT else ord(" ") for c in range(128)) + b" " * 128
_LONG_NUMBER = b"0" * 19
_FIRST_DAY, _LAST_DAY = b"0001-01-01", b"9999-12-31"
_NO_UTC = "a time that has no year in UTC"
_INT64 = range(-(2**63), 2**63)


def encode(event: Struct) -> bytes:
    """Any event as JSON."""
    return _encoder.encode(event)


def _reader_of(value: bytes) -> Callable[[bytes], events.InputEvent] | None:
    """What reads something that is no turn with a number; None: nothing does."""
    try:
        tag = _tag.decode(value)
    except UNDECODABLE:
        return None
    if tag.type != "turn":
        return _control.decode
    return _unnumbered.decode if bytes(tag.turn) == b"null" else None


def _decode(value: bytes) -> events.InputEvent:
    """A turn is the common case: one decode. Only what is no turn is looked at again.

    Raises:
        InvalidRecord: `not_json` or `invalid_field`.
    """
    try:
        return _turn.decode(value)
    except UNDECODABLE as error:
        if (read := _reader_of(value)) is None:
            raise _refusal(error) from None
    try:
        return read(value)
    except UNDECODABLE as error:
        raise _refusal(error) from None


def _refusal(error: Exception) -> InvalidRecord:
    if isinstance(error, msgspec.ValidationError):
        return InvalidRecord("invalid_field", _without_values(str(error)))
    return InvalidRecord("not_json", "the value is no valid UTF-8 JSON object")


def _without_values(message: str) -> str:
    """Keep the field and the rule, drop what the producer wrote (msgspec quotes invalid enum and tag values)."""
    if message.startswith(("Invalid enum value", "Invalid value")):
        field = message.rpartition(" - at ")[2] or "`$`"
        return f"value outside the allowed ones - at {field}"
    return message


def decode_input(
    value: bytes | None, key: bytes | None, appended_at: datetime, intake: IntakePolicy
) -> events.InputEvent:
    """Decode and check one record of `turns.v1`.

    Args:
        value: Raw record value.
        key: Raw record key.
        appended_at: The broker's time of the record, the yardstick for future-dated events.
        intake: Limits.

    Raises:
        InvalidRecord: The record goes to the dead letters; its message holds no text of the record.
    """
    event = _decode(_checked_value(value, key, intake.max_record_bytes))
    if not event.session_id.isprintable():
        raise InvalidRecord("invalid_identifier", "session_id holds control characters")
    if key is None or key != event.session_id.encode():
        raise InvalidRecord("key_mismatch", "the record key must be the session_id, else order is lost")
    _check_time(event.timestamp, None if isinstance(event, events.ClockTicked) else appended_at, intake)
    if isinstance(event, events.AnyTurn | events.TurnCorrected):
        _check_turn(event, intake)
    elif (broken := _out_of_bounds(event, value or b"")) is not None:
        raise InvalidRecord("invalid_field", broken)
    return event if event.timestamp.tzinfo is UTC else _in_utc(event)


def decode_command(
    value: bytes | None, key: bytes | None, appended_at: datetime, intake: IntakePolicy
) -> events.CommandEvent:
    """Decode and check one record of `commands.v1`, by the rules of `decode_input`.

    Raises:
        InvalidRecord: The record goes to the dead letters; its message holds no text of the record.
    """
    # A forwarded turn carries ids and its place besides what came in.
    value = _checked_value(value, key, 2 * intake.max_record_bytes)
    try:
        event: events.CommandEvent = _decoder_of(COMMANDS)(value)
    except UNDECODABLE as error:
        raise _refusal(error) from None
    if (broken := _out_of_bounds(event, value)) is not None:
        raise InvalidRecord("invalid_field", broken)
    if not "".join([getattr(event, name, "") for name in ("app_id", "user_id", "project_id")]).isprintable():
        raise InvalidRecord("invalid_identifier", "app_id, user_id or project_id holds control characters")
    if key is None or key != entity_key(event).encode():
        raise InvalidRecord("key_mismatch", "the record key must be that of whose memory it is, else order is lost")
    # What the sessions role forwards was checked when it came in, against the clock of that time.
    _check_time(event.timestamp, None if isinstance(event, events.Forwarded) else appended_at, intake)
    return event if event.timestamp.tzinfo is UTC else _in_utc(event)


def _checked_value(value: bytes | None, key: bytes | None, most_bytes: int) -> bytes:
    if value is None:
        raise InvalidRecord(NULL_VALUE, "the topic is not compacted, a record needs a value")
    size = len(value) + len(key or b"")
    if size > most_bytes:
        raise InvalidRecord("record_too_large", f"{size} bytes, allowed {most_bytes}")
    return value


def _check_time(time: datetime, appended_at: datetime | None, intake: IntakePolicy) -> None:
    if appended_at is not None and time > appended_at + intake.future_skew:
        ahead = time - appended_at
        raise InvalidRecord("future_timestamp", f"event time lies {ahead.total_seconds():.0f} s after arrival")
    if time < intake.earliest_time:
        raise InvalidRecord("ancient_timestamp", f"event time before {intake.earliest_time.isoformat()}")


_Timed = TypeVar("_Timed", bound=Struct)


def _in_utc(event: _Timed) -> _Timed:
    if not _has_utc(event.timestamp):  # type: ignore[attr-defined]
        raise InvalidRecord("invalid_field", _NO_UTC)
    return msgspec.structs.replace(event, timestamp=event.timestamp.astimezone(UTC))  # type: ignore[attr-defined]


def _has_utc(time: datetime) -> bool:
    try:
        time.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _out_of_bounds(event: Struct, value: bytes) -> str | None:
    """Names the bound that a field breaks, if any; walks only through an event whose bytes may hold such a field."""
    if not (_FIRST_DAY in value or _LAST_DAY in value or _holds_long_number(value.translate(_NUMBERS))):
        return None
    for each in _scalars(msgspec.to_builtins(event, builtin_types=(datetime, bytes))):
        if isinstance(each, int) and each not in _INT64:
            return "a whole number of more than 64 bits"
        if isinstance(each, datetime) and not _has_utc(each):
            return _NO_UTC
    return None


def _holds_long_number(figures: bytes) -> bool:
    """Whether one of them is whole and long: a figure below 0.01 often has a fraction as long."""
    at = figures.find(_LONG_NUMBER)
    while at > 0 and figures[at - 1] == _POINT:
        at = figures.find(_LONG_NUMBER, figures.find(b" ", at))
    return at >= 0


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield from chain.from_iterable(map(_scalars, value.values() if isinstance(value, dict) else value))
    else:
        yield value


def _check_turn(turn: events.AnyTurn | events.TurnCorrected, intake: IntakePolicy) -> None:
    if not (turn.user_id.isprintable() and turn.app_id.isprintable()):
        raise InvalidRecord("invalid_identifier", "user_id or app_id holds control characters")
    for name in ("project_id", "message_id"):
        if not (getattr(turn, name, None) or "").isprintable():
            raise InvalidRecord("invalid_identifier", f"{name} holds control characters")
    # A character is at most four bytes: short text needs no encoding to know that it fits.
    if len(turn.content) * 4 > intake.max_content_bytes:
        size = len(turn.content.encode())
        if size > intake.max_content_bytes:
            raise InvalidRecord("content_too_large", f"{size} bytes, allowed {intake.max_content_bytes}")


@cache
def _decoder_of(topic: Topic) -> Callable[[bytes], Any]:
    carried = carried_by(topic)
    if not carried:
        raise ConfigurationError(f"topic {topic.name} carries no public events; it cannot be decoded")
    return msgspec.json.Decoder(Union[carried]).decode  # noqa: UP007 - made of what is registered


def decode_output(topic: Topic, value: bytes) -> events.OutputEvent:
    """Decode a record of one of Turntide's own topics.

    Raises:
        InvalidRecord: The bytes are no event of that topic, or hold what neither archive nor index can.
    """
    decode = _decoder_of(topic)
    try:
        event: events.OutputEvent = decode(value)
    except UNDECODABLE as error:
        raise InvalidRecord("undecodable_output", f"{topic.name}: {_without_values(str(error))}") from None
    if (broken := _out_of_bounds(event, value)) is not None:
        raise InvalidRecord("undecodable_output", f"{topic.name}: {broken}")
    return event


class _PlainTurn(Turn, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A turn without fields of its own."""


_decode_plain = msgspec.json.Decoder(_PlainTurn).decode


def plain_turns(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None],
    appended_ms: Sequence[int],
    intake: IntakePolicy,
) -> list[Turn | None]:
    """The turns among some records, None for each record that `decode_input` must look at.

    Args:
        values: Raw record values.
        keys: Raw record keys.
        appended_ms: The broker's times of the records, milliseconds since 1970.
        intake: Limits.
    """
    found: list[Turn | None] = []
    for value in values:
        try:
            found.append(_decode_plain(value))  # type: ignore[arg-type]
        except (*UNDECODABLE, TypeError):
            found.append(None)
    plain = [row for row, turn in enumerate(found) if turn is not None]
    good = _all_good(
        [turn for turn in found if turn is not None],
        [values[row] or b"" for row in plain],
        [keys[row] for row in plain],
        [appended_ms[row] for row in plain],
        intake,
    )
    return found if good else [None] * len(found)


def _all_good(
    turns: Sequence[Turn],
    values: Sequence[bytes],
    keys: Sequence[bytes | None],
    appended_ms: Sequence[int],
    intake: IntakePolicy,
) -> bool:
    """Whether every turn is; False already where that cannot be seen at a glance."""
    if not turns:
        return True
    known = [key for key in keys if key is not None]
    sessions = [turn.session_id for turn in turns]
    others = [getattr(turn, of) or "" for turn in turns for of in ("user_id", "app_id", "project_id", "message_id")]
    times = [turn.timestamp for turn in turns]
    return (
        len(known) == len(keys)
        and max(map(len, values)) + max(map(len, known)) <= intake.max_record_bytes
        and "".join(chain(sessions, others)).isprintable()
        # Printable ids hold no line break, so joined texts are equal only if each is.
        and "\n".join(sessions).encode() == b"\n".join(known)
        and min(times) >= intake.earliest_time
        and _none_in_the_future(times, appended_ms, intake.future_skew.total_seconds())
        and max([len(turn.content) for turn in turns]) * 4 <= intake.max_content_bytes
    )


def _none_in_the_future(times: Sequence[datetime], appended_ms: Sequence[int], skew_s: float) -> bool:
    # A float of seconds is exact to a microsecond; who comes closer to the limit than a millisecond is looked at alone.
    allowed_s = skew_s - 0.001
    if max(times).timestamp() <= min(appended_ms) / 1_000 + allowed_s:
        return True
    return all(time.timestamp() <= ms / 1_000 + allowed_s for time, ms in zip(times, appended_ms, strict=True))
