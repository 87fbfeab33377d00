"""Detection of episodes in the turns of a project's conversations (project memory, Layer 4). Pure.

`narrative_sentences` finds the sentences of episodes, `valence` their tone. The state of a conversation between turns
is a `NarrativeState`.

| of an episode | is |
|---|---|
| title | its sentence, without the reason |
| summary | its sentence, and the most informative other one of the turn; of a solution also the issue |
| context | topics of the last turns, in their words |
| participants | speakers since it began, or just before: users by id if they have one, others by role |
| outcome | of a decision, pivot, solution or completed task: the sentence itself |
| range | its turn; of a solution from the issue on |
| significance | by kind and wording; more for reasons, emphasis, important memories and a long struggle |
"""

import re
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, structs

from models.events.base import Role
from models.events.ids import sortable_id
from models.events.project_items import SUPERSEDES, EpisodeKind, MemoryType, ProjectEpisode, ProjectMemory
from models.language.narrative_sentences import NarrativeSentence, own_sentences, tellings, valence
from models.language.notable import clipped
from models.policy.project import NarrativePolicy
from models.text.summary import topic_names
from models.text.tables import PatternTables
from models.text.words import estimate_tokens, fold_text, word_set, words_of

_RE = PatternTables("statements_patterns").section("narrative_detection")

_TITLE_KEPT = 60
_WORDS, _WORD_CHARS = 12, 16
_ISSUE_WORDS = 8
_SPEAKERS, _SPEAKER_CHARS = 6, 64
_SPOKEN_OF = 12
_LINKED = 4
"""Most entries stored per issue, of speakers and of topics: a state stays below 1 KB, in other scripts 4 KB."""
_SAME_STEM = 4
_SHORTEST_TITLE = 15
_JUST_BEFORE = 2
_MOST_EMPHATIC = 2
_HALF = 0.5
_REASON = re.compile(r",? (?:because|since|so that|as it|mainly|due to|for the reason)\b|; |, for\b")
_REASONED = re.compile(r"\b(?:because|since|so that|mainly|due to|the reason|thanks to|in order to|as it)\b")
_EMPHATIC = word_set(
    "huge finally serious seriously critical major crucial important urgent essential definitely absolutely never "
    "always blocker everything entire whole real severe massive"
)
_GENERIC = word_set(
    "issue problem bug error fixed solved resolved finally trouble broken done finished completed update ready "
    "decided chose switch launched working breakthrough thing today tomorrow"
)
_WITH_OUTCOME = (EpisodeKind.DECISION_MADE, EpisodeKind.PIVOT, EpisodeKind.PROBLEM_SOLVED, EpisodeKind.TASK_COMPLETED)
_SOLVING = (EpisodeKind.PROBLEM_SOLVED, EpisodeKind.BREAKTHROUGH)


class ConversationTurn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn of a project's conversation."""

    conversation_id: str
    turn: int
    role: Role
    user_id: str
    content: str
    timestamp: datetime


class OpenIssue(Struct, frozen=True, array_like=True):
    """A reported issue without a solution so far."""

    turn: int
    at: datetime
    title: str
    words: list[str]
    """Topics of its turn."""
    significance: float
    linked: list[str]


class NarrativeState(Struct, array_like=True):
    """State of detection in one conversation between turns; changed in place by `detect`, bounded."""

    issues: list[OpenIssue] = []
    """Open issues, the oldest first."""
    speakers: dict[str, int] = {}
    """Speaker → number of the last turn."""
    topics: list[str] = []
    """Topics of the last turns, the latest last."""


def detect(
    watch: NarrativeState, said: ConversationTurn, memories: Sequence[ProjectMemory], key: str, policy: NarrativePolicy
) -> list[ProjectEpisode]:
    """Episodes in a turn, at most one of each kind; turns of tools and systems contain none.

    Args:
        watch: State of the turn's conversation; changed.
        said: The turn; numbers may come out of order.
        memories: Memories that this turn created or strengthened.
        key: Key of the project.
        policy: Rules of the project.
    """
    if said.role not in (Role.USER, Role.ASSISTANT):
        return []
    name = (said.user_id if said.role is Role.USER and said.user_id else said.role.value)[:_SPEAKER_CHARS]
    speakers = {**watch.speakers, name: max(said.turn, watch.speakers.get(name, 0))}
    watch.speakers = dict(sorted(speakers.items(), key=lambda each: each[1])[-_SPEAKERS:])
    weightiest = sorted(memories, key=lambda memory: (-memory.importance, memory.id))
    teller = _Teller(watch, said, weightiest, key, policy, _topics(said.content))
    found = [episode for narrative in tellings(said.content, said.role) if (episode := teller.episode(narrative))]
    watch.topics = list(dict.fromkeys(reversed([*watch.topics, *teller.topics])))[:_SPOKEN_OF][::-1]
    return found


class _Teller(Struct, frozen=True):
    """Makes episodes of one turn; `memories` are its own, the most important first."""

    watch: NarrativeState
    said: ConversationTurn
    memories: list[ProjectMemory]
    key: str
    policy: NarrativePolicy
    topics: list[str]

    def episode(self, narrative: NarrativeSentence) -> ProjectEpisode | None:
        """The episode of a sentence; None if it is not significant enough, or repeats an open issue."""
        kind = self._kind(narrative)
        solved = self._solved() if kind in _SOLVING else []
        issue = solved[0] if solved else None
        significance = self._significance(kind, narrative, issue)
        self.watch.issues = [each for each in self.watch.issues if each not in solved]
        if kind is EpisodeKind.ISSUE_IDENTIFIED and not self._opens(narrative, significance):
            return None
        if significance < self.policy.min_significance:
            return None
        return self._made(kind, narrative, issue if kind is EpisodeKind.PROBLEM_SOLVED else None, significance)

    def _kind(self, narrative: NarrativeSentence) -> EpisodeKind:
        """Kind of the episode: a decision that replaces another is a pivot."""
        turns = any(
            memory.type is MemoryType.DECISION
            and memory.mentions == 1
            and any(edge.type == SUPERSEDES for edge in memory.relationships)
            for memory in self.memories
        )
        return EpisodeKind.PIVOT if turns and narrative.kind is EpisodeKind.DECISION_MADE else narrative.kind

    def _solved(self) -> list[OpenIssue]:
        """Open issues on the turn's topics, the oldest first; those with one shared word only if none shares more.

        If none shares a word it is the last one, if it is near: "that fixed it".
        """
        open_ = [issue for issue in self.watch.issues if issue.turn < self.said.turn]
        shared = {issue.turn: _shared(self.topics, issue.words) for issue in open_}
        if surely := [issue for issue in open_ if shared[issue.turn] > 1]:
            return surely
        last = [issue for issue in open_ if shared[issue.turn]] or [
            issue for issue in open_ if self.said.turn - issue.turn <= self.policy.near_turns
        ]
        return last[-1:]

    def _opens(self, narrative: NarrativeSentence, significance: float) -> bool:
        """Add an open issue; False if it is open already."""
        words = (_topics(narrative.sentence) + [word for word in self.topics if word not in narrative.sentence])[
            :_ISSUE_WORDS
        ]
        if any(_shared(words, issue.words) > len(words) / 2 for issue in self.watch.issues):
            return False
        issue = OpenIssue(
            self.said.turn,
            self.said.timestamp,
            clipped(_title(narrative.sentence), _TITLE_KEPT),
            words,
            significance,
            [memory.id for memory in self.memories[:_LINKED]],
        )
        self.watch.issues = sorted([*self.watch.issues, issue], key=lambda each: each.turn)[-self.policy.open_issues :]
        return True

    def _significance(self, kind: EpisodeKind, narrative: NarrativeSentence, issue: OpenIssue | None) -> float:
        policy = self.policy
        folded = fold_text(narrative.sentence)
        emphatic = sum(word in _EMPHATIC for word in words_of(folded)) + folded.count("!")
        value = policy.significance.of(kind) + narrative.gain + policy.emphasis_gain * min(emphatic, _MOST_EMPHATIC)
        if kind in (EpisodeKind.DECISION_MADE, EpisodeKind.PIVOT) and _REASONED.search(folded):
            value += policy.reason_gain
        if self.memories:
            value += policy.importance_gain * max(0.0, self.memories[0].importance - _HALF)
        if issue is not None:
            turns = self.said.turn - issue.turn
            value += policy.struggle_gain * min(1.0, turns / policy.struggle_turns)
            value = max(value, issue.significance)
        return round(min(max(value, 0.0), 1.0), 3)

    def _made(
        self, kind: EpisodeKind, narrative: NarrativeSentence, issue: OpenIssue | None, significance: float
    ) -> ProjectEpisode:
        policy, said = self.policy, self.said
        first, began = (issue.turn, min(issue.at, said.timestamp)) if issue else (said.turn, said.timestamp)
        title = clipped(_title(narrative.sentence), policy.title_chars)
        summary = clipped(self._summary(narrative, issue), policy.summary_chars)
        outcome = clipped(_led_off(narrative.sentence), policy.summary_chars) if kind in _WITH_OUTCOME else None
        context = clipped(", ".join(self.watch.topics or self.topics), policy.context_chars)
        since = {name or Role.USER.value for name, turn in self.watch.speakers.items() if turn >= first - _JUST_BEFORE}
        linked = dict.fromkeys([memory.id for memory in self.memories] + (issue.linked if issue else []))
        episode = ProjectEpisode(
            id=sortable_id(began, self.key, said.conversation_id, kind.value, str(first)),
            kind=kind,
            title=title,
            summary=summary,
            context=context,
            participants=sorted(since)[: policy.participants],
            outcome=outcome,
            emotional_valence=valence(said.content),
            significance=significance,
            linked_memories=list(linked)[: policy.linked],
            conversation_id=said.conversation_id,
            first_turn=first,
            last_turn=said.turn,
            started_at=began,
            ended_at=said.timestamp,
            last_accessed_at=said.timestamp,
        )
        return structs.replace(episode, tokens=tokens_of(episode))

    def _summary(self, narrative: NarrativeSentence, issue: OpenIssue | None) -> str:
        others = [each for each in own_sentences(self.said.content, self.said.role) if each != narrative.sentence]
        most = max(others, key=lambda each: len(_topics(each)), default="")
        besides = [most] if len(_topics(most)) > 1 else []
        was = [issue.title if issue.title.endswith("…") else f"{issue.title}."] if issue else []
        return " ".join([*was, _led_off(narrative.sentence), *besides])


def tokens_of(episode: ProjectEpisode) -> int:
    """Tokens of all texts of an episode."""
    return sum(map(estimate_tokens, (episode.title, episode.summary, episode.context, episode.outcome or "")))


def _led_off(sentence: str) -> str:
    said = _RE.LEAD.sub("", sentence)
    return said[:1].upper() + said[1:]


def _title(sentence: str) -> str:
    """A sentence without its reason.

    >>> _title("So: we decided to use SQLite, because it is simple.")
    'We decided to use SQLite'
    """
    said = _led_off(sentence)
    reason = _REASON.search(said, _SHORTEST_TITLE)
    return (said[: reason.start()] if reason else said).rstrip(" .,;:!")


def _topics(content: str) -> list[str]:
    """Content words as written, each topic once, without the words common to all issues and successes."""
    topic_of = topic_names()
    named: dict[str, str] = {}
    for word in words_of(fold_text(content)):
        if (topic := topic_of(word)) and topic not in _GENERIC and word not in _GENERIC:
            named.setdefault(topic, word.removesuffix("'s")[:_WORD_CHARS])
    return list(named.values())[:_WORDS]


def _shared(words: Sequence[str], others: Sequence[str]) -> int:
    """Number of words that also occur in `others`, in any inflection: "book" and "booking"."""
    return sum(any(a.startswith(b[: max(_SAME_STEM, len(b) - 2)]) for b in others) for a in words)
