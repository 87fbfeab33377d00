"""Reading projects' memory: routes of retrieval, the context window, search and export, which MCP tools call too."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, structs

from models.errors import BudgetTooSmall
from models.events import Role, SessionName
from models.events.project_items import ConversationChunk, ItemKind, ProjectConversation, ProjectMemory
from models.policy.project import ContextPolicy, ProjectPolicy
from models.project.kept_memories import decay_at
from models.project.rendering import ContextRequest, accessed, render
from models.project.validity import is_valid
from models.project.view import ProjectView
from models.retrieval.context_window import ContextMessage, TokenCounter, query_of, scaled_to
from models.retrieval.relevance import RetrievalQuery, RetrievedItem
from models.text.words import estimate_tokens
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.projects import answers
from streams.api.projects.messages import (
    PROJECTS,
    AskedProject,
    BudgetOverrides,
    BuildContext,
    FoundItems,
    OfProject,
    ProjectContext,
    RetrieveMemories,
    SearchProject,
    Strategy,
    found_item,
    no_such,
)
from streams.api.sessions.history import HistoryReader
from streams.api.users.messages import TurnAnswer
from streams.http.problems import Problem, invalid_field
from streams.index.project_memory import ProjectMemories
from streams.index.session_memory import SessionVectorMemory

_FIELDS: dict[ItemKind, str] = {
    "memory": "memories",
    "episode": "episodes",
    "chunk": "chunks",
    "conversation": "conversations",
    "pending": "pending",
}
_NOT_YET = "conversation: not indexed yet, so its messages are missing"


@dataclass(frozen=True)
class ProjectReader:
    """Retrieval, context and look-ups over the memory of all projects.

    Args:
        projects: As indexed.
        turns: Messages at hand.
        history: Those of chunks, in the index or the archive.
        record: Hears what was retrieved of an app's project (`AccessRecorder.record`); nobody waits for it.
        policy: Defaults of retrieval and of the context window.
        now: The clock: what recency counts from.
        tokens: Counts those of a context.
    """

    projects: ProjectMemories
    turns: SessionVectorMemory
    history: HistoryReader
    record: Callable[[str, str, Iterable[str]], None]
    policy: ProjectPolicy
    now: Callable[[], datetime] = now_utc
    tokens: TokenCounter = estimate_tokens

    async def view(self, asked: AskedProject) -> ProjectView:
        """Everything of the project; an empty one if nothing is known of it.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        found = await self.projects.view(asked.app_id, asked.project_id)
        return found or ProjectView(asked.app_id, asked.project_id, self.policy)

    @PROJECTS.post("/retrieve", "retrieve_project_memory", audits="text_read")
    async def retrieve(self, asked: OfProject, body: RetrieveMemories) -> FoundItems:
        """Return the memories and episodes relevant to a question, with the parts of their relevance.

        Each result counts as accessed, unless `record_access` is false.
        """
        return await self._answered(AskedProject(asked), body, _query(body, body.query, body.context))

    @PROJECTS.post("/search", "search_project", audits="text_read")
    async def search(self, asked: OfProject, body: SearchProject) -> FoundItems:
        """Search memories, episodes and chunks, best match first.

        Each returned memory and episode counts as accessed, unless `record_access` is false.
        """
        named = AskedProject(asked)
        # What is weak is given too; fused scores have no threshold of the policy's.
        threshold = 0.0 if body.strategy == "tfidf" else None
        query = RetrievalQuery(text=body.query, filters=body.filters, top_k=body.top_k, threshold=threshold)
        return await self._answered(named, body, query)

    @PROJECTS.post("/context", "assemble_project_context", audits="text_read")
    async def context(self, asked: OfProject, body: BuildContext) -> ProjectContext:
        """Build a context for a language model within a token budget. Warnings name what did not fit.

        Each included memory and episode counts as accessed, unless `record_access` is false.

        Raises:
            Problem: 422 the budget does not hold the system prompt.
        """
        named = AskedProject(asked)
        policy = _window(self.policy.context, body.budget)
        view = await self.view(named)
        recent: list[ContextMessage] = []
        conversation = view.conversations.get(body.conversation_id or "")
        if conversation is not None:
            said = await self.messages(named, conversation)
            recent = [answered(ContextMessage, each) for each in said]
        around = query_of(body.query, recent, policy).context
        found = await self._found(view, _query(body, body.query, around), body.strategy)
        request = ContextRequest(conversation_id=body.conversation_id, recent=recent, system_prompt=body.system_prompt)
        try:
            built, ids = render(view, request, found, policy, self.tokens)
        except BudgetTooSmall as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "budget_too_small", str(error)) from None
        self._note(named, ids if body.record_access else [])
        return answered(
            ProjectContext,
            built,
            warnings=built.warnings + [_NOT_YET] * (conversation is None and body.conversation_id is not None),
            retrieval_results=list(map(found_item, found)),
        )

    @PROJECTS.get("/export", "export_project_items", audits="text_read")
    async def export(
        self,
        asked: OfProject,
        *,
        kind: Annotated[ItemKind, Meta(description="Kind of the items.")],
        after: Annotated[str, Meta(max_length=256, description="`next` of the previous page.")] = "",
        limit: Annotated[int, Meta(ge=1, le=answers.MAX_PAGE, description="Maximum number of items.")] = 500,
        originals: Annotated[bool, Meta(description="Include the original messages of chunks.")] = False,
    ) -> answers.ExportPage:
        """Export a page of a project's stored items of one kind; conversations with their recent messages.

        Does not count as an access.
        """
        named = AskedProject(asked)
        page = _page(await self.view(named), kind, after, limit)
        if page.conversations:
            page = structs.replace(page, messages=await self.messages(named, *page.conversations))
        if page.chunks and originals:
            page = structs.replace(page, messages=await self.originals(named, *page.chunks))
        return page

    async def messages(self, asked: AskedProject, *conversations: ProjectConversation) -> list[TurnAnswer]:
        """Messages at hand of conversations, as far as they are indexed; never another app's."""
        return [
            answered(TurnAnswer, turn)
            for each in conversations
            for turn in await self.turns.turns_numbered(SessionName(asked.app_id, each.id), each.recent)
            if turn.app_id == asked.app_id
        ]

    async def originals(self, asked: AskedProject, *chunks: ConversationChunk) -> list[TurnAnswer]:
        """Messages that chunks were made of, in order of number, as far as the index or the archive has them.

        Raises:
            StoreUnavailable: One of the two does not answer.
        """
        found: list[TurnAnswer] = []
        for name in sorted({each.conversation_id for each in chunks}):
            ranges = [range(c.first_turn, c.last_turn + 1) for c in chunks if c.conversation_id == name]
            first, last = min(each.start for each in ranges), max(each.stop for each in ranges)
            page = await self.history.page(SessionName(asked.app_id, name), first, last - first)
            found += [
                answered(TurnAnswer, turn)
                for turn in page.turns
                if turn.project_id == asked.project_id
                and turn.role in {Role.USER, Role.ASSISTANT}
                and any(turn.turn in each for each in ranges)
            ]
        return found

    def present(self, memory: ProjectMemory) -> ProjectMemory:
        """A memory with the decay factor of now."""
        return structs.replace(memory, decay_factor=decay_at(memory, self.now(), self.policy.long_term))

    def holds(self, memory: ProjectMemory) -> bool:
        """Whether it holds now and is not put away."""
        return is_valid(memory, self.now()) and not memory.archived

    async def _answered(
        self, asked: AskedProject, body: RetrieveMemories | SearchProject, query: RetrievalQuery
    ) -> FoundItems:
        found = await self._found(await self.view(asked), query, body.strategy)
        self._note(asked, accessed(found) if body.record_access else [])
        return FoundItems(results=list(map(found_item, found)))

    async def _found(self, view: ProjectView, query: RetrievalQuery, strategy: Strategy) -> list[RetrievedItem]:
        if strategy == "hybrid":
            return list(await self.projects.find(view, query, self.now()))
        return view.retrieve(query, self.now())

    def _note(self, asked: AskedProject, ids: list[str]) -> None:
        if ids:
            self.record(asked.app_id, asked.project_id, ids)


def conversation_of(view: ProjectView, conversation_id: str) -> ProjectConversation:
    """A conversation.

    Raises:
        Problem: 404, the project has none of that id.
    """
    found = view.conversations.get(conversation_id)
    if found is None:
        raise no_such("conversation", "conversations")
    return found


def _query(request: RetrieveMemories | BuildContext, text: str, context: str) -> RetrievalQuery:
    """What is looked for.

    Raises:
        Problem: 422, a range that ends before it begins.
    """
    filters = request.filters
    if filters.date_from is not None and filters.date_to is not None and filters.date_to < filters.date_from:
        raise invalid_field("filters.date_to", "is before date_from: swap them, or leave one out")
    return answered(RetrievalQuery, request, text=text, context=context)


def _window(policy: ContextPolicy, asked: BudgetOverrides) -> ContextPolicy:
    """The policy's context window, with what the request says; of another size its reserves are scaled with it.

    Raises:
        Problem: 422, reserves leave nothing of the total.
    """
    given = {name: value for name, value in structs.asdict(asked).items() if value is not None}
    try:
        scaled = policy if asked.total_tokens is None else scaled_to(policy, asked.total_tokens)
        return structs.replace(scaled, **given)
    except ValueError:
        detail = "total_tokens must exceed system_tokens + working_tokens: raise it, or lower the two"
        raise invalid_field("budget", detail) from None


def _page(view: ProjectView, kind: ItemKind, after: str, limit: int) -> answers.ExportPage:
    items = getattr(view, _FIELDS[kind])
    ids = [each for each in sorted(items) if each > after]
    return answers.ExportPage(
        format=answers.EXPORT_FORMAT,
        version=answers.EXPORT_VERSION,
        app_id=view.app_id,
        project_id=view.project_id,
        revision=view.revision,
        next=ids[limit - 1] if len(ids) > limit else "",
        **{_FIELDS[kind]: [items[each] for each in ids[:limit]]},
    )
