"""Examples in the contract of projects' memory: one decision and what stands around it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins

from models.events.project_items import (
    ConversationChunk,
    EpisodeKind,
    MemorySource,
    MemoryType,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectMemory,
    Relationship,
)
from models.policy.project import ContextPolicy
from models.retrieval.context_window import ContextItem
from models.retrieval.relevance import Scores
from models.retrieval.token_budget import budget_of
from models.text.words import estimate_tokens
from streams.api.projects import answers, messages
from streams.api.projects import command_messages as deeds
from streams.api.users.examples import TURN

APP_ID = "shop"
PROJECT_ID = "web"
CONVERSATION_ID = "planning-1"
MEMORY_ID = "mjuohs00-9c1d22ab"
OTHER_ID = "mjuohs00-1f0e77cd"
PENDING_ID = "mjuohs00-5b6a7c8d"
AT = "2026-01-03T00:00:00Z"
QUERY = "What was our database decision?"
_SAID = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = "We decided to use PostgreSQL."
_SOURCE = MemorySource(conversation_id=CONVERSATION_ID, turn=2, role="user", user_id="user-17", said_at=_SAID)

_MEMORY = ProjectMemory(
    id=MEMORY_ID,
    type=MemoryType.DECISION,
    content=_TEXT,
    category="architecture",
    tags=["postgresql"],
    subject="database",
    importance=0.7,
    confidence=0.8,
    valid_from=_SAID,
    recorded_at=_SAID,
    created_at=_SAID,
    updated_at=_SAID,
    sources=[_SOURCE],
    last_accessed_at=_SAID,
    tokens=estimate_tokens(_TEXT),
    relationships=[Relationship(target_id=OTHER_ID, type="depends_on", strength=0.9, created_at=_SAID)],
)
_EPISODE = ProjectEpisode(
    id="mjuohs00-0a1b2c3d",
    kind=EpisodeKind.DECISION_MADE,
    title="PostgreSQL it is",
    summary=_TEXT,
    participants=["user-17", "assistant"],
    outcome="PostgreSQL",
    emotional_valence=0.2,
    significance=0.8,
    linked_memories=[MEMORY_ID],
    conversation_id=CONVERSATION_ID,
    first_turn=0,
    last_turn=2,
    started_at=_SAID,
    ended_at=_SAID,
    last_accessed_at=_SAID,
    tokens=12,
)
_CHUNK = ConversationChunk(
    id="mjuohs00-4d5e6f70",
    conversation_id=CONVERSATION_ID,
    first_number=1,
    last_number=1,
    first_turn=0,
    last_turn=9,
    messages=10,
    summary="Databases were compared; PostgreSQL was chosen.",
    key_topics=["database", "postgresql"],
    token_count=160,
    summary_tokens=12,
    started_at=_SAID,
    ended_at=_SAID,
    created_at=_SAID,
)
_CONVERSATION = ProjectConversation(
    id=CONVERSATION_ID,
    status="active",
    started_at=_SAID,
    last_at=_SAID,
    total_turns=30,
    recent=list(range(10, 30)),
    chunks=1,
    active_facts=[MEMORY_ID],
    milestones=[_EPISODE.id],
)
_PENDING = PendingFact(
    id=PENDING_ID,
    content="The launch may move to May.",
    type=MemoryType.GOAL,
    confidence=0.5,
    source=_SOURCE,
    extracted_at=_SAID,
    doubts=["hypothetical"],
)
_FOUND = messages.FoundItem(
    kind="memory",
    id=MEMORY_ID,
    text=_TEXT,
    score=0.72,
    scores=Scores(semantic=0.7, keyword=0.67, recency=0.9, importance=0.7),
    memory=_MEMORY,
)
_CONTEXT_LINE = f"- [decision, 2026-01-01] {_TEXT}"
_EDGE = answers.Edge(source_id=MEMORY_ID, target_id=OTHER_ID, type="depends_on", strength=0.9)
_NODE = answers.Node(id=MEMORY_ID, kind="memory", type="decision", content=_TEXT, valid=True)
_LIMITS = answers.ProjectLimits(memories=20_000, episodes=100, pending=500, conversations=500)


def _plain(message: Any) -> dict[str, Any]:
    plain: dict[str, Any] = to_builtins(message)
    return plain


RETRIEVE: dict[str, Any] = {"query": QUERY, "related_depth": 1, "filters": {"memory_types": ["decision"]}}
FOUND = _plain(messages.FoundItems(results=[_FOUND]))
SEARCH: dict[str, Any] = {"query": "PostgreSQL database", "top_k": 10}
CONTEXT: dict[str, Any] = {"query": QUERY, "conversation_id": CONVERSATION_ID, "budget": {"total_tokens": 8_000}}
BUILT = _plain(
    messages.ProjectContext(
        text=f"## Project memory\n{_CONTEXT_LINE}",
        total_tokens=18,
        items=[ContextItem(section="memories", id=MEMORY_ID, text=_CONTEXT_LINE, tokens=18, priority=0.72)],
        budget=budget_of(ContextPolicy()),
        warnings=[],
        retrieval_results=[_FOUND],
    )
)
STANDING = _plain(
    answers.ProjectStanding(
        app_id=APP_ID,
        project_id=PROJECT_ID,
        known=True,
        limits=_LIMITS,
        revision=41,
        turn_count=30,
        conversations=1,
        memories=2,
        episodes=1,
        pending=1,
        chunks=1,
        created=2,
        consolidated_at=_SAID + timedelta(days=1),
        tokens=answers.HeldTokens(memories=16, episodes=12, chunks=12),
    )
)
PROJECTS = _plain(
    answers.ProjectList(
        projects=[
            answers.ListedProject(app_id=APP_ID, project_id=PROJECT_ID, turn_count=30, memories=2, changed_at=_SAID)
        ]
    )
)
MEMORIES = _plain(answers.MemoryPage(memories=[_MEMORY], next=""))
MEMORY = _plain(answers.ProjectMemoryAnswer(memory=_MEMORY, valid=True, incoming=[]))
VALID = _plain(answers.ValidMemories(at=_SAID + timedelta(days=2), known_at=None, memories=[_MEMORY]))
PENDING = _plain(answers.PendingFacts(pending=[_PENDING]))
CONVERSATIONS = _plain(answers.Conversations(conversations=[_CONVERSATION]))
CONVERSATION: dict[str, Any] = {"conversation": to_builtins(_CONVERSATION), "chunks": [to_builtins(_CHUNK)]} | {
    "recent_messages": [TURN]
}
EPISODES = _plain(answers.Episodes(episodes=[_EPISODE]))
ARC = _plain(
    answers.ArcAnswer(conversation_id=CONVERSATION_ID, beginning=[_EPISODE], middle=[], end=[], key_moments=[_EPISODE])
)
GRAPH = _plain(answers.GraphAnswer(nodes=[_NODE], edges=[_EDGE]))
RELATED = _plain(
    answers.RelatedMemories(
        memory_id=OTHER_ID,
        related=[
            answers.RelatedNode(
                id=MEMORY_ID, kind="memory", type="decision", content=_TEXT, valid=True, distance=1, strength=0.9
            )
        ],
    )
)
PATH = _plain(answers.PathAnswer(found=True, edges=[_EDGE]))
EXPORTED = _plain(
    answers.ExportPage(
        format=answers.EXPORT_FORMAT,
        version=answers.EXPORT_VERSION,
        app_id=APP_ID,
        project_id=PROJECT_ID,
        revision=41,
        next="",
        memories=[_MEMORY],
    )
)
ADD: dict[str, Any] = {"content": _TEXT, "type": "decision", "subject": "database"}
EDIT: dict[str, Any] = {"valid_until": AT}
RELATE: dict[str, Any] = {"source_id": MEMORY_ID, "target_id": OTHER_ID, "relation": "depends_on", "strength": 0.9}
STATUS: dict[str, Any] = {"status": "ended", "summary": "Database selection complete"}
IMPORT: dict[str, Any] = {"memories": [to_builtins(_MEMORY)]}
DONE = _plain(deeds.DeedAnswer(success=True, outcome="done", item_id=MEMORY_ID, count=1, memory=_MEMORY))
WAITS: dict[str, Any] = {
    "success": False,
    "pending": True,
    "request_id": "5b0f9a2c7d1e4c63a8f20b94e6d3c718",
    "hint": "the command is in the log and will be carried out, once",
}
