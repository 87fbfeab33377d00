"""Whole self-written conversations by the rules and by the shipped scorer: who is alerted on, and who is not."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from models.events import Role
from tests.support.watched import Said, Watched

SAID: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "data" / "own_conversations.toml").read_text())
REFUSALS = {7: "I'm sorry, but I can't help with that.", 14: "I can't help with breaking into systems."}


def converse(name: str, kind: str, refusals: Mapping[int, str] = REFUSALS) -> Watched:
    """A user's turns of a conversation, with short answers between them."""
    said: list[Said] = []
    for number, text in enumerate(SAID[name]):
        said += [(Role.USER, text), (Role.ASSISTANT, refusals.get(number, "All right."))]
    return Watched(kind).hear(said)


@pytest.mark.parametrize("kind", ["rules", "trained"])
def test_slow_escalation_alerts_before_its_end(kind: str) -> None:
    """Detours over pasta and films do not hide it: the alert comes while three of its turns are still to come."""
    watched = converse("slow_escalation", kind)
    raised = watched.alerts[0]
    final = {signal.name: signal.value for signal in watched.profile.signals}

    assert ("raised", True) == (raised.cause, raised.turn <= 2 * (len(SAID["slow_escalation"]) - 3))
    assert {signal.name: signal.value for signal in raised.signals}["level"] > 0
    assert {"repeated_probing", "topic_cycling", "information_gathering", "persistence", "suspicion"} <= {
        name for name, value in final.items() if value > 0
    }


@pytest.mark.parametrize("name", ["support", "story", "security"])
@pytest.mark.parametrize(("kind", "refusals"), [("rules", REFUSALS), ("trained", {})], ids=["rules", "trained"])
def test_ordinary_conversations_do_not_alert(name: str, kind: str, refusals: Mapping[int, str]) -> None:
    """Impatient support, a long story with a war in it, and questions about defence stay below.

    The trained scorer's are without refusals: there a refusal speaks against a user who asked nothing bad, too.
    """
    watched = converse(name, kind, refusals)

    assert (watched.alerts, watched.dead) == ([], [])
    assert watched.profile.turn_count > len(SAID[name])
