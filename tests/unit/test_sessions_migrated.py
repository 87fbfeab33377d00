"""State of releases up to 0.2, which kept a session by its id alone, gets its key by app and id."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from models.events import DEFAULT_APP, SessionEnded, session_key
from models.partition.log_fold import PARTITION_ENTITY
from models.partition.sessions_v1 import bound, unbound
from tests.support.entity_driver import Entities
from tests.unit.test_partition import START, Kept, log, turn

_OTHER_APP = 36
"""Place of a field that an open session had."""


def state(*, ended: bool) -> Entities:
    """A session of app `shop`, open or ended."""
    kept = Kept()
    turns = [turn("chat", n, START + timedelta(seconds=n), f"About boats, {n}?", "shop") for n in range(7)]
    end = SessionEnded(session_id="chat", app_id="shop", timestamp=START + timedelta(minutes=1))
    kept.take(log(*turns, *([end] if ended else [])))
    return kept.entities


def as_before(entities: Entities) -> Entities:
    """The same state as 0.2 kept it."""
    parts = dict(entities[session_key("shop", "chat")])
    head: list[Any] = msgspec.msgpack.decode(parts["head"])
    head[0] = 1
    if not head[1]:
        head.insert(_OTHER_APP, False)
    parts["head"] = msgspec.msgpack.encode(head)
    return {PARTITION_ENTITY: entities[PARTITION_ENTITY], "chat": parts}


@pytest.mark.parametrize("ended", [False, True])
def test_a_session_is_kept_as_this_release_keeps_it(ended: bool) -> None:
    """An open one by its head's app, a closed one by that of its last profile; nothing is left under the id."""
    now = state(ended=ended)
    before = as_before(now)

    assert unbound(before) == ["chat"]

    changes = bound(before, ["chat"], {"chat": "shop"} if ended else {})

    assert changes[session_key("shop", "chat")] == now[session_key("shop", "chat")]
    assert changes["chat"] == dict.fromkeys(before["chat"])
    assert unbound(now) == []


def test_words_of_nobodys_session_come_to_no_tenant() -> None:
    """Of a closed session without a profile the numbers stay, for the default app, and nothing that was said."""
    before = as_before(state(ended=True))
    changes = bound(before, ["chat"], {})

    assert len(before["chat"]) > 1
    assert changes[session_key(DEFAULT_APP, "chat")].keys() == {"head"}


def test_a_session_of_this_release_is_not_replaced() -> None:
    """After a crash in between, or with a worker of the earlier release beside it, the newer state counts."""
    now = state(ended=False)
    both = now | {"chat": as_before(now)["chat"]}

    assert unbound(both) == ["chat"]
    assert bound(both, ["chat"], {}).keys() == {"chat"}
