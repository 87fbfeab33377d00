"""Rendering of project memory for a language model, and what of it counts as accessed: one rule for every reader.

| asked for | counts as accessed |
|---|---|
| retrieval, search | every memory and episode that was found |
| context | those that are in it: what did not fit nobody read |
| chunks | never (project memory: accesses of memories and episodes) |
"""

from collections.abc import Iterable

from msgspec import Struct

from models.events.project_items import ConversationChunk
from models.policy.project import ContextPolicy
from models.project.view import ProjectView
from models.retrieval.context_window import BuiltContext, ContextInputs, ContextMessage, TokenCounter, build_context
from models.retrieval.relevance import RetrievedItem

_NO_ACCESS = "chunk"


class ContextRequest(Struct, frozen=True, kw_only=True):
    """Request for a context.

    Attributes:
        conversation_id: Whose messages and chunks; None: no such.
        recent: Its messages at hand, in order.
        system_prompt: Comes first.
    """

    conversation_id: str | None
    recent: list[ContextMessage]
    system_prompt: str = ""


def render(
    view: ProjectView, request: ContextRequest, found: list[RetrievedItem], policy: ContextPolicy, tokens: TokenCounter
) -> tuple[BuiltContext, list[str]]:
    """A context of what was found, and ids of what counts as accessed.

    Raises:
        BudgetTooSmall: The budget does not hold the system prompt.
    """
    chunks = [] if request.conversation_id is None else chunks_of(view, request.conversation_id)
    inputs = ContextInputs(system_prompt=request.system_prompt, recent=request.recent, memories=found, chunks=chunks)
    built = build_context(inputs, policy, tokens)
    read = {item.id for item in built.items if item.section == "memories"}
    return built, accessed(each for each in found if each.id in read)


def accessed(found: Iterable[RetrievedItem]) -> list[str]:
    """Ids of what counts as accessed, best first."""
    return [each.id for each in found if each.kind != _NO_ACCESS]


def chunks_of(view: ProjectView, conversation_id: str) -> list[ConversationChunk]:
    """Chunks of a conversation, in order."""
    mine = (chunk for chunk in view.chunks.values() if chunk.conversation_id == conversation_id)
    return sorted(mine, key=lambda chunk: chunk.first_number)
