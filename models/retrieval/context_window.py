"""Context window of a project (project memory, Context Window Management).

| section | priority | may take |
|---|---|---|
| system prompt | 1.0 | its full length; the part beyond its reserve reduces the available tokens |
| recent messages | 0.9 for the newest, falling | 60 % of what is available |
| memories and episodes | their relevance | 40 %, and what recent messages leave if all of them fit |
| chunk summaries | 0.5 for the newest, falling | what memories leave if all of them fit |

Available is the total without the system prompt and without the reserve of the current turn, which stays empty here.
A section is filled by falling priority, and the first item that does not fit ends it. A section passes on unused
tokens only if all of its items are in; what memories and chunks leave then goes to older messages. With these two
rules a larger budget never loses an item that a smaller one included, which filling gaps with small items would do.
Items are never cut, not even the newest message; a warning names what is missing.

Tokens are counted per item, with its line break and its section's heading; so a counter must not count more tokens in
a text than in its lines together. Four characters per token and OpenAI's tokenisers meet this.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from models.errors import BudgetTooSmall
from models.events.project_items import ConversationChunk, ProjectEpisode, ProjectMemory
from models.policy.project import ContextPolicy
from models.retrieval.relevance import RetrievalQuery, RetrievedItem

TokenCounter = Callable[[str], int]
"""Tokens of a text; `models.text.words.estimate_tokens` by default."""
SectionName = Literal["system", "memories", "chunks", "recent"]
SYSTEM_PRIORITY: Final = 1.0
RECENT_PRIORITY: Final = 0.9
CHUNK_PRIORITY: Final = 0.5
_SECTIONS: Final[Mapping[SectionName, tuple[str, str]]] = {
    "memories": ("## Project memory", "memories"),
    "chunks": ("## Earlier in the conversation", "chunk summaries"),
    "recent": ("## Conversation", "recent messages"),
}
"""Heading of each section, and the name of its items."""


_PARTS: Final = 10_000
"""Shares are computed in whole parts: with rounded products a larger budget could get less."""


class TokenBudget(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of a context window (project memory, Token Budget Management).

    Attributes:
        total: Size of the window.
        system_prompt: Reserve for the system prompt, or its length if greater.
        working_memory: Reserve for the current turn, which the caller adds.
        retrieved_context: Part of `available` for memories.
        recent_messages: Part of `available` for recent messages.
        used: Tokens of all items in the context, including the system prompt.
        available: Total without the two reserves.
    """

    total: int
    system_prompt: int
    working_memory: int
    retrieved_context: int
    recent_messages: int
    used: int
    available: int


class ContextMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A recent message: a turn with its original text."""

    turn: int
    role: str
    content: str


class ContextInputs(Struct, frozen=True, kw_only=True):
    """All candidates for a context.

    Attributes:
        recent: Recent messages in order of time.
        memories: Retrieved memories and episodes, the most relevant first.
        chunks: Chunks of the conversation in order of time.
    """

    system_prompt: str = ""
    recent: list[ContextMessage] = []
    memories: list[RetrievedItem] = []
    chunks: list[ConversationChunk] = []


class ContextItem(Struct, frozen=True, kw_only=True, gc=False):
    """An item of the context.

    Attributes:
        id: Id of the memory, episode or chunk; of a message its turn number; empty for the system prompt.
        text: Lines of the item.
        tokens: Tokens of `text` with its line break; the first item of a section includes the heading.
    """

    section: SectionName
    id: str
    text: str
    tokens: int
    priority: float


class BuiltContext(Struct, frozen=True, kw_only=True):
    """A context within its budget.

    Attributes:
        items: In the order of the text: system prompt, memories, chunks, messages in order of time.
        text: Text for the language model.
        warnings: What did not fit, and a system prompt that is longer than its reserve. Contains no user text.
        total_tokens: Tokens of all items; `text` has no more.
    """

    items: list[ContextItem]
    text: str
    budget: TokenBudget
    warnings: list[str]
    total_tokens: int


class _Section(NamedTuple):
    """Items by falling priority, and how many of them are included."""

    items: list[ContextItem]
    taken: int
    tokens: int

    @property
    def complete(self) -> bool:
        return self.taken == len(self.items)

    @property
    def kept(self) -> list[ContextItem]:
        return self.items[: self.taken]


def build_context(inputs: ContextInputs, policy: ContextPolicy, tokens: TokenCounter) -> BuiltContext:
    """Build the context that fits, by priority; deterministic, and a larger total only adds items.

    Raises:
        BudgetTooSmall: The total is smaller than the system prompt and the reserve of the current turn.
    """
    prompt = inputs.system_prompt.strip()
    system = _items("system", [("", prompt)] if prompt else [], [SYSTEM_PRIORITY], tokens)
    system_tokens = sum(item.tokens for item in system)
    budget = _budget_of(policy, system_tokens)
    recent, memories, chunks = _allocated(inputs, budget, tokens)
    shown = [*system, *memories.kept, *reversed(chunks.kept), *reversed(recent.kept)]
    used = system_tokens + recent.tokens + memories.tokens + chunks.tokens
    warnings = [_missing(section) for section in (recent, memories, chunks) if not section.complete]
    if system_tokens > policy.system_tokens:
        reserve = policy.system_tokens
        warnings.insert(0, f"the system prompt takes {system_tokens} tokens, {reserve} are reserved for it")
    return BuiltContext(
        items=shown,
        text=_text(shown),
        budget=replace(budget, used=used),
        warnings=warnings,
        total_tokens=used,
    )


def _budget_of(policy: ContextPolicy, system_tokens: int) -> TokenBudget:
    """Division of an empty window.

    Raises:
        BudgetTooSmall: The total is smaller than the system prompt and the reserve of the current turn.
    """
    reserved = max(policy.system_tokens, system_tokens)
    available = policy.total_tokens - reserved - policy.working_tokens
    if available < 0:
        raise BudgetTooSmall(
            f"{policy.total_tokens} tokens are too few for a system prompt of {system_tokens} and the "
            f"{policy.working_tokens} reserved for the current turn: shorten the prompt or raise the budget"
        )
    recent = available * round(policy.recent_share * _PARTS) // _PARTS
    return TokenBudget(
        total=policy.total_tokens,
        system_prompt=reserved,
        working_memory=policy.working_tokens,
        retrieved_context=available - recent,
        recent_messages=recent,
        used=0,
        available=available,
    )


def scaled_to(policy: ContextPolicy, total_tokens: int) -> ContextPolicy:
    """The same policy for a window of another size: reserves keep their share, rounded down together.

    >>> scaled = scaled_to(ContextPolicy(), 4_000)
    >>> scaled.total_tokens, scaled.system_tokens, scaled.working_tokens
    (4000, 62, 250)
    """
    reserved = total_tokens * (policy.system_tokens + policy.working_tokens) // policy.total_tokens
    working = total_tokens * policy.working_tokens // policy.total_tokens
    return replace(policy, total_tokens=total_tokens, system_tokens=reserved - working, working_tokens=working)


def query_of(text: str, recent: Sequence[ContextMessage], policy: ContextPolicy) -> RetrievalQuery:
    """Retrieval query for a context: the user's text, with the latest messages as its context."""
    latest = recent[len(recent) - min(policy.query_messages, len(recent)) :]
    return RetrievalQuery(text=text, context="\n".join(message.content for message in latest))


def _allocated(inputs: ContextInputs, budget: TokenBudget, tokens: TokenCounter) -> tuple[_Section, _Section, _Section]:
    """Recent messages, memories and chunks, each filled up to its budget."""
    retrieved = {found.id for found in inputs.memories}
    said = [(str(message.turn), f"{message.role}: {message.content.strip()}") for message in reversed(inputs.recent)]
    known = [(found.id, _memory_line(found)) for found in inputs.memories]
    earlier = [(chunk.id, _chunk_line(chunk)) for chunk in reversed(inputs.chunks) if chunk.id not in retrieved]
    messages = _items("recent", said, _falling(RECENT_PRIORITY, CHUNK_PRIORITY, len(said)), tokens)
    recent = _filled(messages, budget.recent_messages)
    room = budget.retrieved_context + (budget.recent_messages - recent.tokens) * recent.complete
    memories = _filled(_items("memories", known, [found.score for found in inputs.memories], tokens), room)
    room = (room - memories.tokens) * memories.complete
    chunks = _filled(_items("chunks", earlier, _falling(CHUNK_PRIORITY, 0.0, len(earlier)), tokens), room)
    if memories.complete and chunks.complete and not recent.complete:
        recent = _filled(messages, budget.available - memories.tokens - chunks.tokens)
    return recent, memories, chunks


def _items(
    section: SectionName, lines: Sequence[tuple[str, str]], priorities: Sequence[float], tokens: TokenCounter
) -> list[ContextItem]:
    """Items by falling priority; the first includes the tokens of the heading."""
    heads = itertools.chain([_heading(section)], itertools.repeat(""))
    return [
        ContextItem(section=section, id=item_id, text=line, tokens=tokens(f"{head}{line}\n"), priority=priority)
        for (item_id, line), priority, head in zip(lines, priorities, heads, strict=False)
    ]


def _filled(items: list[ContextItem], room: int) -> _Section:
    """The first items that fit, without gaps."""
    used = 0
    for n, item in enumerate(items):
        if used + item.tokens > room:
            return _Section(items, n, used)
        used += item.tokens
    return _Section(items, len(items), used)


def _falling(first: float, beyond: float, count: int) -> list[float]:
    """Evenly falling values from `first` on, all above `beyond`.

    >>> _falling(0.5, 0.0, 2)
    [0.5, 0.25]
    """
    return [first - (first - beyond) * n / count for n in range(count)]


def _heading(section: SectionName) -> str:
    """Heading of a section, with the empty line before it."""
    return f"\n{_SECTIONS[section][0]}\n" if section in _SECTIONS else ""


def _memory_line(found: RetrievedItem) -> str:
    """A memory as exactly one line: its text must not look like another memory or a heading."""
    match found.item:
        case ProjectMemory(type=kind, valid_from=at):
            label = kind.value
        case ProjectEpisode(kind=what, ended_at=at):
            label = what.value.replace("_", " ")
        case ConversationChunk(ended_at=at):
            label = "earlier"
    doubt = " (another memory contradicts this)" if found.contradicted_by else ""
    return f"- [{label}, {at:%Y-%m-%d}] {_on_one_line(found.text)}{doubt}"


def _chunk_line(chunk: ConversationChunk) -> str:
    return f"- turns {chunk.first_turn}-{chunk.last_turn}: {_on_one_line(chunk.summary)}"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _text(items: Sequence[ContextItem]) -> str:
    """Text of the sections in the order of the items, each under its heading."""
    parts = []
    for section, group in itertools.groupby(items, key=lambda item: item.section):
        parts += [_heading(section), *(f"{item.text}\n" for item in group)]
    return "".join(parts).strip("\n")


def _missing(section: _Section) -> str:
    """Warning that names the items that did not fit."""
    left = section.items[section.taken :]
    name = left[0].section
    what = "turns" if name == "recent" else "ids"
    named = ", ".join(item.id for item in left)
    return f"{len(left)} of {len(section.items)} {_SECTIONS[name][1]} did not fit, {what} {named}"
