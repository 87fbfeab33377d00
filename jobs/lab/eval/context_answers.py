"""`turntide lab eval context`: whether what answers a question is in the prompt that memory makes for it.

Talks of one user each go through the fold of users and into an index of their own (Qdrant Edge), as the roles write
them; then every question about a talk is asked. It counts as answered where the words of its answer stand in what is
given. Where a matter changed, the answer is its newest value.

The 64 questions about 8 talks that Turntide brings were written by somebody who did not know the code. They are for
measuring alone: no constant is chosen by them.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from statistics import mean, median
from typing import Any

from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import BEGINS
from jobs.lab.eval.user_index import folded_user, index_user, own_store
from jobs.shared.dialogues import read_labelled
from jobs.shared.output import Progress
from models.events import Role, Turn
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.users.messages import AssembleContext, Retrieve, SearchMemory
from streams.api.users.reading import MemoryReader
from streams.http.security import Caller, reading_for
from streams.index.collections import TURNS
from streams.index.hybrid_search import HybridSearch, Ranking, Scope
from streams.ports import Embedder, VectorStore
from streams.settings.http import HttpSettings

BUDGETS = (2_000, 1_000, 500)
"""Tokens: the default of `/v1/context`, and parts of it. The talks that Turntide brings take about 900 whole."""
DEPTH = 10
"""Turns of a search: its own default."""
_APP = "eval"
_APART, _A_DAY = timedelta(minutes=1), timedelta(days=1)
_WAYS = ("context", "search", "retrieve", "bm25")


class TalkQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A question about a talk.

    Attributes:
        answer: Words that an answer has to hold, in whatever case.
        turn: Where they were said.
    """

    question: str
    answer: str
    turn: int


class TalkTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of a talk."""

    role: Role
    content: str


class Talk(Struct, frozen=True, forbid_unknown_fields=True):
    """What one user and an assistant said, and what is asked afterwards."""

    id: str
    turns: list[TalkTurn]
    questions: list[TalkQuestion]


def read_talks(file: Path | None = None) -> list[Talk]:
    """Read talks with their questions; None: those that Turntide brings. Errors as of `read_labelled`."""
    own = files(__package__).joinpath("data/context_questions.jsonl")
    return read_labelled(file or own, Talk, "talk")


async def measure(
    talks: Sequence[Talk], embedder: Embedder, policy: Policy, progress: Progress, *, one_user: bool = False
) -> Figures:
    """Index every talk, ask every question with every budget: shares of questions whose answer is in what is given.

    What is given is the prompt of `/v1/context`, the first turns that `/v1/search` finds (a ceiling for as many turns),
    the text of `/v1/retrieve`, or as many turns by their words alone. `all` has the shares by budget, `rows` those of
    each talk. With `one_user` all talks are one user's, so that each question has to find its talk too.
    """
    of = {talk.id: "everybody" if one_user else talk.id for talk in talks}
    asks = [(budget, talk, each) for budget in BUDGETS for talk in talks for each in talk.questions]
    asked: list[Figures] = []
    async with own_store(embedder) as store:
        for user_id in dict.fromkeys(of.values()):
            await _index(store, embedder, policy, user_id, [talk for talk in talks if of[talk.id] == user_id])
        reader = memory_api(store, embedder, policy, HttpSettings(mcp=False), topic_prefix=_APP).reader
        search = HybridSearch(store, embedder, policy.retrieval)
        for number, (budget, talk, each) in enumerate(asks, 1):
            found = await _ask(reader, search, of[talk.id], each, budget)
            asked.append({"talk": talk.id, "budget": budget, **found})
            progress(number, len(asks))

    def scores(name: str, budget: int) -> Figures:
        """Of one talk or all, with one budget."""
        rows = [each for each in asked if each["budget"] == budget and name in {"all", each["talk"]}]
        tokens = float(median(each["tokens"] for each in rows))
        shares = {way: mean(each[way] for each in rows) for way in _WAYS}
        used = {"tokens_median": tokens, "budget_share": tokens / budget}
        return {"talk": name, "budget": budget, "questions": len(rows), **shares, **used}

    return {
        "embedder": embedder.name,
        "talks": len(talks),
        "users": len({*of.values()}),
        "turns": sum(len(talk.turns) for talk in talks),
        "questions": sum(len(talk.questions) for talk in talks),
        "all": {f"{budget}": scores("all", budget) for budget in BUDGETS},
        "rows": [scores(talk.id, budget) for budget in BUDGETS for talk in talks],
    }


async def _index(store: VectorStore, embedder: Embedder, policy: Policy, user_id: str, talks: Sequence[Talk]) -> None:
    """Fold and index a user's talks, a turn a minute, a day for each talk."""
    turns = [
        Turn(
            session_id=talk.id,
            user_id=user_id,
            app_id=_APP,
            turn=n,
            role=said.role,
            content=said.content,
            timestamp=BEGINS + day * _A_DAY + n * _APART,
        )
        for day, talk in enumerate(talks)
        for n, said in enumerate(talk.turns)
    ]
    await index_user(store, embedder, turns, list(folded_user(turns, policy)), 0)


async def _ask(
    reader: MemoryReader, search: HybridSearch, user_id: str, asked: TalkQuestion, budget: int
) -> dict[str, float]:
    """Whether each way gives the answer, and the tokens of the prompt."""
    about: Mapping[str, Any] = {"user_id": user_id, "app_id": _APP, "query": asked.question}
    with reading_for(Caller()):
        context = await reader.context(AssembleContext(**about, token_budget=budget))
        found = await reader.search(SearchMemory(**about, top_k=DEPTH))
        retrieved = await reader.retrieve(Retrieve(**about))
    where = Scope((_APP,), user_id).where()
    by_words = await search.events(TURNS, asked.question, where, DEPTH, by=Ranking.KEYWORD)
    texts = (
        context.prompt,
        "\n".join(hit.turn.content for hit in found.turns),
        retrieved.injection or "",
        "\n".join(turn.content for turn, _ in by_words),
    )
    wanted = asked.answer.casefold()
    given = {way: wanted in text.casefold() for way, text in zip(_WAYS, texts, strict=True)}
    return {**given, "tokens": context.tokens}
