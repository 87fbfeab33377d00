"""Project memory in this process, over its four files: no Kafka, no store (project memory, Usage Example).

    >>> from tempfile import mkdtemp
    >>> memory = MemorySystem(memory_dir=mkdtemp(), project_name="My Project", max_context_tokens=128_000)
    >>> _ = memory.start_conversation()
    >>> memory.add_message("user", "What database should we use?")
    >>> memory.add_message("assistant", "I recommend PostgreSQL for this use case.")
    >>> memory.add_message("user", "We decided to use PostgreSQL.")
    >>> context = memory.build_context("What was our database decision?")
    >>> "PostgreSQL" in context.retrieval_results[0].text
    True
    >>> memory.end_conversation("Database selection complete")
    >>> memory.flush()

It folds what is said by the same function as the memory role (`models.project.fold.fold`) and answers from the same
view. A new session on the folder goes on where the last one was flushed; files of which its policy would lose
something are refused. They do not keep which sentences a key moment was still waiting for, nor messages of chunks that
were merged. One process writes a folder at a time.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from msgspec import structs

from models import events
from models.errors import ConfigurationError
from models.events.ids import sortable_id
from models.events.topics import TURNS
from models.policy import Policy
from models.policy.project import ContextPolicy, ProjectPolicy
from models.project.fold import FoldedProject
from models.project.rendering import ContextRequest, accessed, render
from models.project.saved import SavedMessage, SavedProject, batches, losses, originals_of, saved_of
from models.project.view import ProjectView
from models.retrieval.context_window import BuiltContext, ContextMessage, TokenBudget, TokenCounter, query_of, scaled_to
from models.retrieval.relevance import RetrievalFilters, RetrievalQuery, RetrievedItem
from models.text.words import estimate_tokens
from streams.embedded.project_folder import ProjectFolder
from streams.masking.credentials import without_secrets

_APP = "local"
_MOST_ITEMS, _MOST_BYTES = 200, 1024 * 1024


class ContextBuild(NamedTuple):
    """Context for a language model (project memory, `ContextBuildResult`).

    Attributes:
        allocation: The text and its items, with `total_tokens`.
        retrieval_results: Best first, also what did not fit.
        warnings: What did not fit.
    """

    allocation: BuiltContext
    budget: TokenBudget
    retrieval_results: list[RetrievedItem]
    warnings: list[str]


class MemorySystem:
    """The memory of a project over a folder; read when it is first needed, written by `flush`.

    Args:
        memory_dir: The folder; it is made when something is to be kept.
        project_name: Stands in the files.
        max_context_tokens: Of a context; reserves keep their share of it.
        chunk_size: Messages of a chunk.
        max_recent_messages: Messages kept verbatim.
        policy: Everything else; None: the defaults.
        now: The clock, aware UTC.
        tokens: Counts those of a context.
    """

    def __init__(
        self,
        memory_dir: str | Path = ".project-memory",
        project_name: str = "Project",
        *,
        max_context_tokens: int | None = None,
        chunk_size: int | None = None,
        max_recent_messages: int | None = None,
        policy: ProjectPolicy | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        tokens: TokenCounter = estimate_tokens,
    ) -> None:
        self._folder = ProjectFolder(Path(memory_dir))
        self._name = project_name
        rules = policy or ProjectPolicy()
        short_term = _with(rules.short_term, chunk_messages=chunk_size, recent_messages=max_recent_messages)
        context = _window(rules.context, max_context_tokens)
        self._policy = structs.replace(rules, short_term=short_term, context=context)
        self._now = now
        self._tokens = tokens
        self._loaded: FoldedProject | None = None
        self._messages: dict[str, dict[int, SavedMessage]] = {}
        self._conversation = ""
        self._dirty = False

    # --- conversations

    def start_conversation(self, conversation_id: str = "") -> str:
        """Begin a conversation, or go on with one; gives its id."""
        name = conversation_id or sortable_id(self._now(), self._name, str(self._project.offset))
        self._take(events.ConversationStatusSet, conversation_id=name, status="active")
        self._conversation = name
        return name

    def add_message(self, role: str, content: str, *, user_id: str = "") -> None:
        """Add a message to the conversation.

        Raises:
            ConfigurationError: No conversation was started.
        """
        name, now, content = self._started(), self._now(), without_secrets(content)
        known = self.view.conversations.get(name)
        turn = 0 if known is None else known.total_turns
        place = events.Position(TURNS.name, 0, self._project.offset + 1)
        said = SavedMessage(turn=turn, role=events.Role(role), content=content, timestamp=now, user_id=user_id)
        self._messages.setdefault(name, {})[turn] = said
        self._take(
            events.ProjectTurnAdded,
            id=sortable_id(now, name, str(turn)),
            session_id=name,
            user_id=user_id,
            source=place,
            turn=turn,
            role=said.role,
            content=content,
        )
        self._forget_messages()

    def end_conversation(self, summary: str = "") -> None:
        """End the conversation.

        Raises:
            ConfigurationError: No conversation was started.
        """
        self._take(
            events.ConversationStatusSet,
            conversation_id=self._started(),
            status="ended",
            summary=without_secrets(summary),
        )
        self._conversation = ""

    # --- reading

    @property
    def view(self) -> ProjectView:
        """View of the project, for every other question."""
        return self._project.view

    def build_context(self, query: str = "", *, system_prompt: str = "") -> ContextBuild:
        """Build the context for a language model; its items count as accessed.

        Raises:
            BudgetTooSmall: The budget does not hold the system prompt.
        """
        policy, recent = self._policy.context, self._recent()
        found = self.view.retrieve(query_of(query, recent, policy), self._now())
        request = ContextRequest(conversation_id=self._conversation, recent=recent, system_prompt=system_prompt)
        built, ids = render(self.view, request, found, policy, self._tokens)
        self._note(ids)
        return ContextBuild(built, built.budget, found, built.warnings)

    def search(self, query: str, *, top_k: int | None = None) -> list[RetrievedItem]:
        """Find items about something, best first, chunks too; they count as accessed."""
        asked = RetrievalQuery(text=query, filters=RetrievalFilters(include_chunks=True), top_k=top_k)
        found = self.view.retrieve(asked, self._now())
        self._note(accessed(found))
        return found

    def messages_of(self, chunk_id: str) -> list[SavedMessage]:
        """The messages that a chunk was made of; none of one that is not there, or was merged with another."""
        chunk = self.view.chunks.get(chunk_id)
        return [] if chunk is None else originals_of(chunk, self._messages.get(chunk.conversation_id, {}))

    # --- upkeep

    def consolidate(self) -> events.ProjectConsolidated | None:
        """Archive what is old and weak, merge episodes, to the end; None if nothing is known of the project yet."""
        outputs = self._take(events.ConsolidationAsked)
        while self.view.stats is not None:
            if done := [each for each in outputs if isinstance(each, events.ProjectConsolidated)]:
                return done[-1]
            outputs = self._take(events.ProjectWorkDue)  # one event goes as far as one write takes it
        return None

    def flush(self) -> None:
        """Write the files that changed, each whole or not at all.

        Raises:
            ConfigurationError: The folder cannot be written.
        """
        if not self._dirty:
            return
        self._folder.write(self.saved(), self._name)
        self._dirty = False

    def saved(self) -> SavedProject:
        """Project as the files keep it."""
        return saved_of(self.view, self._messages)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.flush()  # whatever happened: what was said was said

    # --- parts

    @property
    def _project(self) -> FoldedProject:
        if self._loaded is None:
            saved = self._folder.read()
            self._loaded = FoldedProject(_APP, self._name, Policy(projects=self._policy))
            self._messages = {name: {each.turn: each for each in said} for name, said in saved.messages.items()}
            for chunk in saved.chunks:
                said = {each.turn: each for each in saved.originals.get(chunk.id, [])}
                self._messages.setdefault(chunk.conversation_id, {}).update(said)
            try:
                self._restore(saved)
            except ConfigurationError:
                self._loaded = None  # nothing is written over what was not taken in
                raise
            finally:
                self._dirty = False
        return self._loaded

    def _restore(self, saved: SavedProject) -> None:
        for items in batches(saved, _MOST_ITEMS, _MOST_BYTES):
            self._take(events.ProjectImported, **items)
        self._forget_messages()
        if lost := losses(saved, self.saved()):
            raise ConfigurationError(
                f"{self._folder.path}: {', '.join(lost)} would be lost or truncated: open it with a policy with larger "
                "limits in `projects`, or with more max_recent_messages. Nothing was changed"
            )

    def _take(self, kind: type[Any], **fields: Any) -> list[events.ProjectOutput]:
        now = self._now()
        project = self._project
        event: events.ProjectEvent = kind(app_id=_APP, project_id=self._name, timestamp=now, **fields)
        outputs = project.take(event, now)
        self._dirty = self._dirty or bool(outputs)
        return outputs

    def _started(self) -> str:
        if not self._conversation:
            raise ConfigurationError("no conversation is open: call start_conversation() first")
        return self._conversation

    def _recent(self) -> list[ContextMessage]:
        conversation = self.view.conversations.get(self._conversation)
        if conversation is None:
            return []
        said = self._messages.get(conversation.id, {})
        return [
            ContextMessage(turn=turn, role=said[turn].role.value, content=said[turn].content)
            for turn in conversation.recent
            if turn in said
        ]

    def _forget_messages(self) -> None:
        """Let go of texts of messages that are neither at hand nor in a chunk that was not merged."""
        at_hand = {each.id: set(each.recent) for each in self.view.conversations.values()}
        for chunk in self.view.chunks.values():
            said = originals_of(chunk, self._messages.get(chunk.conversation_id, {}))
            at_hand.setdefault(chunk.conversation_id, set()).update(each.turn for each in said)
        self._messages = {
            name: kept
            for name, said in self._messages.items()
            if (kept := {turn: each for turn, each in said.items() if turn in at_hand.get(name, ())})
        }

    def _note(self, ids: list[str]) -> None:
        for start in range(0, len(ids), events.MOST_NAMED):
            self._take(events.MemoriesAccessed, ids=ids[start : start + events.MOST_NAMED])


def _window(policy: ContextPolicy, total_tokens: int | None) -> ContextPolicy:
    try:
        return policy if total_tokens is None else scaled_to(policy, total_tokens)
    except ValueError as error:
        raise ConfigurationError(f"max_context_tokens: {error}") from error


def _with(section: Any, **given: int | None) -> Any:
    named = {name: value for name, value in given.items() if value is not None}
    try:
        return structs.replace(section, **named)
    except ValueError as error:
        raise ConfigurationError(f"{', '.join(named)}: {error}") from error
