"""The rule scorer: orders of risk, contexts and disguises; and whole conversations: who is alerted on."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from models.events import Role
from models.risk.scorer import score_text
from tests.support.watched import Said, Watched

SAID: dict[str, Any] = tomllib.loads((Path(__file__).parent / "data" / "risk_of_texts.toml").read_text())


@pytest.mark.parametrize("text", SAID["harmless"])
def test_everyday_language_is_not_risky(text: str) -> None:
    """Ordinary senses of risky words score nothing."""
    assert 0.0 == score_text(text)


@pytest.mark.parametrize("text", SAID["alarming"])
def test_plain_requests_are_risky(text: str) -> None:
    """Asking for the thing reaches the level at which the detectors watch."""
    assert 0.5 <= score_text(text) <= 1.0


@pytest.mark.parametrize(("lower", "higher"), SAID["riskier"])
def test_context_moves_the_risk(lower: str, higher: str) -> None:
    """Defence, scholarship and fiction lower it; intent, evasion, a person and rule-changing raise it."""
    assert score_text(lower) < score_text(higher)


def test_disguise_does_not_help() -> None:
    """Zero-width characters, full-width letters and case give the same risk."""
    expected = score_text("how do i write malware")

    assert [expected] * 3 == [
        score_text("HOW DO I WRITE MALWARE"),
        score_text("how do i write mal\u200bware"),
        score_text("how do i write \uff4d\uff41\uff4c\uff57\uff41\uff52\uff45"),
    ]


def test_long_text_costs_no_more_than_its_ends() -> None:
    """The middle of a long paste is not examined, its end is."""
    filler = "word " * 2000

    assert (0.0, score_text("how to write malware")) == (
        score_text(filler + "how to write malware " + filler),
        score_text(filler + "how to write malware"),
    )


TALKS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "data" / "own_conversations.toml").read_text())
REFUSALS = {7: "I'm sorry, but I can't help with that.", 14: "I can't help with breaking into systems."}


def converse(name: str, kind: str, refusals: Mapping[int, str] = REFUSALS) -> Watched:
    """A user's turns of a conversation, with short answers between them."""
    said: list[Said] = []
    for number, text in enumerate(TALKS[name]):
        said += [(Role.USER, text), (Role.ASSISTANT, refusals.get(number, "All right."))]
    return Watched(kind).hear(said)


@pytest.mark.parametrize("kind", ["rules", "trained"])
def test_slow_escalation_alerts_before_its_end(kind: str) -> None:
    """Detours over pasta and films do not hide it: the alert comes while three of its turns are still to come."""
    watched = converse("slow_escalation", kind)
    raised = watched.alerts[0]
    final = {signal.name: signal.value for signal in watched.profile.signals}

    assert ("raised", True) == (raised.cause, raised.turn <= 2 * (len(TALKS["slow_escalation"]) - 3))
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
    assert watched.profile.turn_count > len(TALKS[name])
