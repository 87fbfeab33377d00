"""Many records of `turns.v1` at once: whatever is plainly a good turn, by checks over all of them together.

The rules are those of `models.wire.codec`. What is not plainly good is left to `decode_input`, which says why: a
control event, a turn with fields of its own, a refusal. So the two cannot differ but in speed.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain

import msgspec

from models.events import Turn
from models.policy import IntakePolicy
from models.wire.codec import UNDECODABLE


class _PlainTurn(Turn, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A turn without fields of its own."""


_decode = msgspec.json.Decoder(_PlainTurn).decode


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
            found.append(_decode(value))  # type: ignore[arg-type]
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
