"""The report's part about users: what memory answered, facts with what they were before, and episodes."""

from __future__ import annotations

from html import escape

from jobs.demo.questions import Recalled
from jobs.demo.summary import Summary
from jobs.demo.users import UserSeen, UsersSeen, UserSummary
from models.events import FactChanged


def users_html(users: UsersSeen, summary: Summary) -> str:
    """One article for each user that memory was asked about; every text in it is escaped."""
    return "".join(
        _user(each, users.by_name.get((each.app_id, each.user_id), UserSeen()), summary) for each in summary.users.shown
    )


def _user(counted: UserSummary, seen: UserSeen, summary: Summary) -> str:
    answers = "".join(
        _answer(each) for each in summary.recalled if (each.app_id, each.user_id) == (counted.app_id, counted.user_id)
    )
    facts = "".join(_fact(fact) for fact in [*seen.active, *(f for f in seen.facts.values() if not f.active)])
    episodes = "".join(
        f"<tr><td>{escape(e.turn_range)}</td><td>{escape(e.summary)}</td>"
        f"<td>{e.tokens_before:,} → {e.tokens_after:,}</td></tr>"
        for e in sorted(seen.episodes, key=lambda episode: episode.first_turn)
    )
    return (
        f"<article><h3>{escape(counted.user_id)}</h3><small>{escape(counted.app_id)} · {counted.turns} turns, "
        f"{counted.turns_at_hand} of them at hand · {counted.facts} facts, {counted.past_values} past values · "
        f"{len(counted.episodes)} episodes</small>{answers}"
        f"<table><tr><th>fact</th><th>value</th><th>before</th></tr>{facts}</table>"
        f"<table><tr><th>episode</th><th>summary</th><th>tokens</th></tr>{episodes}</table></article>"
    )


def _answer(recalled: Recalled) -> str:
    wrong = "".join(f'<p class="bad">{escape(problem)}</p>' for problem in recalled.problems)
    return (
        f"<p>“{escape(recalled.query)}” <small>{recalled.milliseconds:.0f} ms</small></p>{wrong}"
        f"<pre>{escape(recalled.injection)}</pre>"
    )


def _fact(fact: FactChanged) -> str:
    before = [past.value for past in fact.history]
    value = fact.value if fact.active else f"({fact.cause})"
    if not fact.active:
        before.append(fact.value)
    return (
        f"<tr><td>{escape(fact.category)}/{escape(fact.key)}</td><td>{escape(value)}</td>"
        f"<td>{escape(', '.join(before))}</td></tr>"
    )
