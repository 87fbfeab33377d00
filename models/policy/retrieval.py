"""Rules of hybrid search and of what prompts are filled with. Part of `models.policy`, which has the whole.

Measured by `turntide lab eval retrieval` on five conversations of LoCoMo; every one of them is a wide plateau: of 60
combinations around the defaults the worst has a recall@10 (questions 1-4) 3 points below the best with wordllama and
4 with MiniLM, and choosing on four conversations and measuring on the fifth gives what the defaults give (75.8, 78.6).
"""

from typing import Annotated

from msgspec import Meta

from models.events import Ratio
from models.policy.stream import PolicySection


class RetrievalPolicy(PolicySection, frozen=True, kw_only=True):
    """How lexical and dense rankings become one."""

    candidates: Annotated[int, Meta(ge=10, le=1_000)] = 100
    """Best points of each ranking that are looked at; 50 to 150 give the same recall, more costs more."""
    dense_weight: Annotated[float, Meta(ge=0, le=10)] = 0.5
    """Weight of the dense ranking, in standard deviations, beside the lexical one at 1; 0.3 to 0.7 do equally well."""
    neighbour_decay: Ratio = 0.5
    """What a turn gets of its neighbours' scores, to the power of their distance in turns; 0 for nothing. An answer
    rarely repeats the words of its question."""
    neighbour_reach: Annotated[int, Meta(ge=0, le=16)] = 4
    """Distance in turns beyond which turns are no neighbours."""
    session_share: Ratio = 0.4
    """Share of the best score of its session that a turn gets: what answers a question in several places stands in
    sessions that speak of it. 0.2 to 0.7 raise recall@10 by 0.5 to 1 point."""
    speaker_bonus: Annotated[float, Meta(ge=0, le=10)] = 1.5
    """What a turn gets, in standard deviations, that begins with the name of the one speaker the question names
    ("Anna: …"). 1 to 1.8 raise recall@10 of questions over several turns by 4 to 6 points; questions about the wrong
    person, which have no answer, lose 1 to 2."""
    reranked: Annotated[int, Meta(ge=0, le=1_000)] = 150
    """Best turns that are read and ranked anew; 95 % of what answers questions is among them."""
    learned: bool = True
    """Whether turns are ranked anew by weights trained with the embedder, where it has some; else by the formula."""


class PromptPolicy(PolicySection, frozen=True, kw_only=True):
    """What a prompt of user memory takes of episodes, and the turns that it is filled with."""

    episode_distance: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Cosine distance up to which an episode bears on a question (user memory, stage 2, below 0.4); null: the
    embedder's own. What a distance means depends on the embedder. Questions of LoCoMo that have an episode with their
    evidence within it, and episodes of others within it: wordllama 0.7 68 and 5 % (the source's 0.4: 4 and 0 %), minilm
    0.7 71 and 7 % (0.4: 1 and 0 %), e5 0.18 64 and 8 % (0.2: 91 and 30 %)."""

    turns: Annotated[int, Meta(ge=0, le=1_000)] = 100
    """Best turns, at most; 0 for none. As many as a search gives at most: what lies beyond has nothing to do with the
    question."""
    turn_tokens: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Of a usual turn in a prompt, with its time: only so many are looked for as the budget may hold. Turns of public
    chats take 20 to 60; twice as much looks for half as many and costs the same time."""
    neighbours: Annotated[int, Meta(ge=0, le=16)] = 1
    """Turns on each side that come into a prompt with one that was found: the answer to a question, and what it
    answers."""
    turn_chars: Annotated[int, Meta(ge=40, le=100_000)] = 800
    """Characters of a turn that was found: a pasted page must not take the place of all others."""
