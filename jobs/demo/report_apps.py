"""The report's part about apps: their memories, why some were compacted, the purge, and the proof of the erasure."""

from __future__ import annotations

from html import escape

from jobs.demo.deeds import Erased, Purged
from jobs.demo.spaces import SpaceSeen
from jobs.demo.state import DemoState
from jobs.demo.summary import Summary
from jobs.demo.wording import compaction_words
from models.events import ErasedStore


def apps_html(state: DemoState, summary: Summary) -> str:
    """One article for each app with memories, one for the purge, one for the erasure; every text in it is escaped."""
    spaces = "".join(_space(app_id, space) for app_id, space in sorted(state.spaces.by_app.items()) if space.most)
    return spaces + _purge(summary.purged) + _erasure(summary.erased)


def _space(app_id: str, space: SpaceSeen) -> str:
    memories = "".join(
        f"<tr><td>{memory.memory_id}</td><td>{escape(memory.content)}</td><td>{memory.importance * 10:.1f}</td>"
        f"<td>{escape(memory.session_id)}</td></tr>"
        for memory in space.memories
    )
    compactions = "".join(f"<p>{escape(compaction_words(each))}</p>" for each in space.compactions)
    spent = 0.0 if space.standing is None else space.standing.spent_units
    return (
        f"<article><h3>{escape(app_id)}</h3><small>{len(space.memories)} memories, {space.most} at the most · "
        f"{len(space.compactions)} compactions · {spent:,.0f} units of energy</small>"
        f"<table><tr><th>memory</th><th>text</th><th>importance</th><th>conversation</th></tr>{memories}</table>"
        f"{compactions}</article>"
    )


def _purge(purged: Purged) -> str:
    wrong = "".join(f'<p class="bad">{escape(problem)}</p>' for problem in purged.problems)
    return (
        f"<article><h3>Purged: {escape(purged.app_id)}</h3><small>{purged.deleted} memories deleted, {purged.left} "
        f"found by a read {purged.milliseconds:.0f} ms after the request</small>{wrong}</article>"
    )


def _erasure(erased: Erased) -> str:
    wrong = "".join(f'<p class="bad">{escape(problem)}</p>' for problem in erased.problems)
    rows = "".join(map(_store, erased.stores))
    return (
        f"<article><h3>Erased: {escape(erased.user_id)} of {escape(erased.app_id)}</h3><small>proved after "
        f"{erased.seconds:g} s, {erased.sessions} sessions</small>{wrong}<table><tr><th>store</th><th>looked at</th>"
        f"<th>removed</th><th>remaining</th></tr>{rows}</table></article>"
    )


def _store(store: ErasedStore) -> str:
    until = "" if store.expires_at is None else f", until {store.expires_at:%Y-%m-%d}"
    return (
        f"<tr><td>{escape(store.store)}</td><td>{store.looked_at:,}</td><td>{store.removed:,}</td>"
        f"<td>{store.remaining:,}{until}</td></tr>"
    )
