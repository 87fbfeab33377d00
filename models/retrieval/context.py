"""Prompt of user memory: the source texts, and which parts of them fit a token budget (stage 3).

`format_for_injection` and `long_term_prompt` write the source's layouts (stage 3, "Final Prompt Injection").
`fit_prompt` selects parts when not all fit, and fills the rest of the budget with found turns, each with its time, so
that the newest statement on a subject is last. An app's memories come first, in the layout of app memory ("Memory
Context Format"): `format_app_memories` writes them, `fit_app_memories` selects them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from models.events.app import AppMemoryChanged
from models.events.user import EpisodeCompressed, FactChanged
from models.text.words import CHARS_PER_TOKEN, estimate_tokens

SUMMARY_CHARS = 150
"""Characters of an episode's summary in a prompt (user memory, stage 3)."""
MIN_TOKENS = 64
"""Smallest budget: headings, closing line and the beginning of any last turn fit into it."""

_ELLIPSIS = "…"
_LAST_TURN_CHARS = 40
"""Characters of the last turn that facts never displace; with the headings they are fewer than `MIN_TOKENS`."""
_AFTER_PREFACE = "\n\n"
_MEMORY = "# Long-term Memory"
_PROFILE = "## User Profile"
_EPISODES = "\n## Recent Context"
_FOUND = "\n## Said Before"
_CONVERSATION = "\n# Recent Conversation"
_APP_MEMORIES = "The following are memories from previous conversations with this app:"
_APP_CLOSING = "Use these memories to provide context-aware responses."
_CLOSING = "\nAnswer consistently using the memory and conversation above."


class PromptTurn(Protocol):
    """The fields of a turn that a prompt shows."""

    @property
    def role(self) -> str:
        """Role of the speaker; at most 12 characters."""

    @property
    def content(self) -> str:
        """Text of the turn."""

    @property
    def session_id(self) -> str:
        """Session of the turn."""

    @property
    def turn(self) -> int:
        """Turn number in the session."""

    @property
    def timestamp(self) -> datetime:
        """Time of the turn, with time zone."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt within its budget, and how much of each sequence it contains.

    Attributes:
        prompt: The text.
        tokens: Estimated tokens of `prompt`.
        facts: Number of facts in it, from the first.
        episodes: Number of episodes in it, from the first.
        recent: Number of recent turns in it, the latest ones.
        last_turn_cut: Whether the last turn ends in an ellipsis.
        found: Number of found turns in it, from the first.
    """

    prompt: str
    tokens: int
    facts: int
    episodes: int
    recent: int
    last_turn_cut: bool
    found: int


def format_for_injection(facts: Sequence[FactChanged], episodes: Sequence[EpisodeCompressed]) -> str:
    r"""Facts and episodes in the order given, exactly as the source writes them (stage 3, `format_for_injection`).

    >>> format_for_injection([], [])
    '## User Profile\n\n## Recent Context'
    """
    return "\n".join([_PROFILE, *map(_fact_line, facts), _EPISODES, *map(_episode_line, episodes)])


def long_term_prompt(
    facts: Sequence[FactChanged], episodes: Sequence[EpisodeCompressed], recent: Sequence[PromptTurn]
) -> str:
    """The whole prompt (user memory, "Final Prompt Injection"); turns in order of time."""
    said = [_said_line(turn.role, turn.content) for turn in recent]
    return "\n".join([_MEMORY, format_for_injection(facts, episodes), _CONVERSATION, *said, _CLOSING])


def preface_room(token_budget: int) -> int:
    """Largest length of a preface of `fit_prompt` in characters: half of the budget; the rest is for the user's memory.

    >>> preface_room(2_000), preface_room(MIN_TOKENS)
    (3998, 0)
    """
    tokens = min(token_budget // 2, token_budget - MIN_TOKENS)
    return max(0, tokens * CHARS_PER_TOKEN - len(_AFTER_PREFACE))


def fit_prompt(
    facts: Sequence[FactChanged],
    episodes: Sequence[EpisodeCompressed],
    recent: Sequence[PromptTurn],
    *,
    token_budget: int,
    preface: str = "",
    found: Sequence[PromptTurn] = (),
    found_chars: int = SUMMARY_CHARS,
) -> Fitted:
    """Build the largest prompt that fits the budget.

    Facts come first, then the latest turns, then episodes, then found turns; each sequence is filled in its own order,
    without gaps. A fact is omitted only if all facts together do not fit; then the prompt has no episode and no found
    turn. The last turn is always included, and cut if it does not fit whole. Found turns are in order of time.

    Args:
        facts: The most important first.
        episodes: The nearest first.
        recent: In order of time.
        token_budget: Tokens of the whole prompt, at least `MIN_TOKENS`.
        preface: First part, never cut; at most `preface_room` characters.
        found: The best first, none of them in `recent`.
        found_chars: Most characters of each found turn.

    Raises:
        ValueError: The budget is below `MIN_TOKENS`, or the preface leaves less than that.
    """
    head = preface + _AFTER_PREFACE if preface else ""
    room = token_budget * CHARS_PER_TOKEN - len(head)
    if room < MIN_TOKENS * CHARS_PER_TOKEN:
        raise ValueError(f"a prompt needs at least {MIN_TOKENS} tokens, not {room // CHARS_PER_TOKEN}")
    room -= len(long_term_prompt((), (), ()))
    last = recent[-1] if recent else None
    kept_for_last = 0 if last is None else 1 + len(_said_line(last.role, last.content[:_LAST_TURN_CHARS] + _ELLIPSIS))
    told, left = _those_that_fit(map(_fact_line, facts), room - kept_for_last)
    said, cut, left = _latest_turns(recent, left + kept_for_last)
    near, lines = list[str](), list[str]()
    if len(told) == len(facts):
        near, left = _those_that_fit(map(_episode_line, episodes), left)
        lines, _ = _those_that_fit((_found_line(turn, found_chars) for turn in found), left - len(_FOUND) - 1)
    by_time = sorted(range(len(lines)), key=lambda n: (found[n].timestamp, found[n].session_id, found[n].turn))
    before = [_FOUND, *map(lines.__getitem__, by_time)] if by_time else []
    prompt = head + "\n".join([_MEMORY, _PROFILE, *told, _EPISODES, *near, *before, _CONVERSATION, *said, _CLOSING])
    return Fitted(prompt, estimate_tokens(prompt), len(told), len(near), len(said), cut, len(lines))


def _fact_line(fact: FactChanged) -> str:
    return f"- {fact.key}: {fact.value}"


def _episode_line(episode: EpisodeCompressed) -> str:
    return f"- {episode.turn_range}: {episode.summary[:SUMMARY_CHARS]}..."


def _said_line(role: str, content: str) -> str:
    return f"{role}: {content}"


def _found_line(turn: PromptTurn, most_chars: int) -> str:
    """A found turn as exactly one line: its text must not look like another turn or a heading."""
    said = " ".join(turn.content.split())
    cut = said if len(said) <= most_chars else said[: most_chars - 1] + _ELLIPSIS
    return f"- [{turn.timestamp.astimezone(UTC):%Y-%m-%d %H:%M}] {_said_line(turn.role, cut)}"


def _those_that_fit(lines: Iterable[str], room: int) -> tuple[list[str], int]:
    """The first lines that fit into `room` characters with line breaks, and the characters left."""
    fit = list[str]()
    for line in lines:
        if len(line) + 1 > room:
            break
        fit.append(line)
        room -= len(line) + 1
    return fit, room


def _latest_turns(recent: Sequence[PromptTurn], room: int) -> tuple[list[str], bool, int]:
    """Lines of the latest turns that fit, in order of time, whether the last was cut, and the characters left."""
    if not recent:
        return [], False, room
    lines = [_said_line(turn.role, turn.content) for turn in recent]
    if len(lines[-1]) + 1 > room:
        return [lines[-1][: room - 1 - len(_ELLIPSIS)] + _ELLIPSIS], True, 0
    latest, left = _those_that_fit(lines[::-1], room)
    return latest[::-1], False, left


class FittedMemories(NamedTuple):
    """Text for a prompt, and the memories in it."""

    text: str
    memories: Sequence[AppMemoryChanged]


def format_app_memories(app_name: str, memories: Sequence[AppMemoryChanged]) -> str:
    r"""Memories in the order given, exactly as the source writes them; empty without memories.

    A memory is always exactly one line: its text must not look like another memory or the closing line.

    >>> format_app_memories("shop", [])
    ''
    """
    if not memories:
        return ""
    lines = (f"{number}. {_memory_line(memory)}" for number, memory in enumerate(memories, start=1))
    return "\n".join([f"(memories for app: {app_name})", _APP_MEMORIES, "", *lines, "", _APP_CLOSING])


def fit_app_memories(
    app_name: str,
    memories: Sequence[AppMemoryChanged],
    ranked: Sequence[AppMemoryChanged],
    *,
    most: int,
    contents_chars: int,
    text_chars: int,
) -> FittedMemories:
    """The first ranked memories that fit, whole and without gaps.

    Args:
        app_name: App of the memories.
        memories: In the order of the text (app memory: the latest updated first).
        ranked: The same memories, the most relevant first.
        most: Largest number of memories.
        contents_chars: Most characters of all contents together (app memory, ~2,000).
        text_chars: Most characters of the whole text.
    """
    for n in range(min(most, len(ranked)), 0, -1):
        wanted = {id(memory) for memory in ranked[:n]}
        kept = [memory for memory in memories if id(memory) in wanted]
        if sum(len(memory.content) for memory in kept) <= contents_chars:
            text = format_app_memories(app_name, kept)
            if len(text) <= text_chars:
                return FittedMemories(text, kept)
    return FittedMemories("", ())


def _memory_line(memory: AppMemoryChanged) -> str:
    return f"[Created: {memory.created_at:%Y-%m-%d}] {' '.join(memory.content.split())}"
