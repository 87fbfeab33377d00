"""`turntide lab eval context`: whether what answers a question is in the prompt that memory makes for it.

Talks of one user each go through the fold of users and into an index of their own (Qdrant Edge), as the roles write
them; then every question about a talk is asked. It counts as answered where the words of its answer stand in what is
given. Where a matter changed, the answer is its newest value.

The 64 questions about 8 talks that Turntide brings were written by somebody who did not know the code. They are for
measuring alone: no constant is chosen by them.
"""

from collections.abc import Mapping
from datetime import timedelta
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import BEGINS, Dialogues, LabelledQuestion, spoken
from jobs.lab.eval.user_index import folded_user, index_user, open_store
from jobs.shared.dialogues import DialogueTurn, read_labelled
from jobs.shared.output import Progress
from models.events import Turn
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.users.messages import AssembleContext, Retrieve, SearchMemory
from streams.api.users.reading import MemoryReader
from streams.http.security import Caller, reading_for
from streams.index.collections import TURNS
from streams.index.hybrid_search import HybridSearch, Ranking, Scope
from streams.ports import Embedder
from streams.settings.http import HttpSettings

BUDGETS = (2_000, 1_000, 500)
"""Tokens: the default of `/v1/context`, and parts of it. The talks that Turntide brings take about 900 whole."""
DEPTH = 10
"""Turns of a search: its own default."""
_APP = "default"
"""Of turns whose file names none."""
_WAYS = ("context", "search", "retrieve", "bm25")


class TalkQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """`answer` are words that an answer has to hold, said in this turn."""

    question: str
    answer: str
    turn: int


class Talk(Struct, frozen=True, forbid_unknown_fields=True):
    """What one user and an assistant said, and what is asked afterwards."""

    id: str
    turns: list[DialogueTurn]
    questions: list[TalkQuestion]


def read_talks(file: Path | None = None, *, one_user: bool = False) -> Dialogues:
    """Talks of a user each, or a day each of one, a turn a minute; a question's groups are `all` and its talk.

    Without a file those that Turntide brings. Errors as of `read_labelled`.
    """
    talks = read_labelled(file or files(__package__) / "data/context_questions.jsonl", Talk, "talk")
    turns, questions = list[Turn](), list[LabelledQuestion]()
    for number, talk in enumerate(talks):
        user_id, began = ("everybody", BEGINS + number * timedelta(days=1)) if one_user else (talk.id, BEGINS)
        turns += spoken(talk.id, began, [(said.role, said.content) for said in talk.turns], user_id)
        questions += [
            LabelledQuestion(user_id, each.question, ("all", talk.id), frozenset({(talk.id, each.turn)}), each.answer)
            for each in talk.questions
        ]
    return Dialogues("talks", turns, questions, len(talks))


async def measure(talks: Dialogues, embedder: Embedder, policy: Policy, progress: Progress) -> Figures:
    """Index every talk, ask every question with every budget: shares of questions whose answer is in what is given.

    What is given is the prompt of `/v1/context`, the first turns that `/v1/search` finds (a ceiling for as many turns),
    the text of `/v1/retrieve`, or as many turns by their words alone. `all` has the shares by budget, `rows` those of
    each talk. Where all talks are one user's, each question has to find its talk too.
    """
    asks, asked = list(product(BUDGETS, talks.questions)), list[Figures]()
    async with open_store(embedder) as store:
        for turns in talks.of_users.values():
            await index_user(store, embedder, turns, list(folded_user(turns, policy)))
        reader = memory_api(store, embedder, policy, HttpSettings(mcp=False), topic_prefix=_APP).reader
        search = HybridSearch(store, embedder, policy.retrieval)
        for number, (budget, question) in enumerate(asks, 1):
            asked.append({"budget": budget, "of": question.groups, **await _ask(reader, search, question, budget)})
            progress(number, len(asks))

    def scores(name: str, budget: int) -> Figures:
        """Of one talk or all, with one budget."""
        rows = [each for each in asked if each["budget"] == budget and name in each["of"]]
        tokens = float(median(each["tokens"] for each in rows))
        shares = {way: mean(each[way] for each in rows) for way in _WAYS}
        used = {"tokens_median": tokens, "budget_share": tokens / budget}
        return {"talk": name, "budget": budget, "questions": len(rows), **shares, **used}

    names = dict.fromkeys(turn.session_id for turn in talks.turns)
    return {
        "embedder": embedder.name,
        "talks": talks.conversations,
        "users": len(talks.of_users),
        "turns": len(talks.turns),
        "questions": len(talks.questions),
        "all": {f"{budget}": scores("all", budget) for budget in BUDGETS},
        "rows": [scores(name, budget) for budget in BUDGETS for name in names],
    }


async def _ask(reader: MemoryReader, search: HybridSearch, asked: LabelledQuestion, budget: int) -> dict[str, float]:
    """Whether each way gives the answer, and the tokens of the prompt."""
    about: Mapping[str, Any] = {"user_id": asked.user_id, "app_id": _APP, "query": asked.text}
    with reading_for(Caller()):
        context = await reader.context(AssembleContext(**about, token_budget=budget))
        found = await reader.search(SearchMemory(**about, top_k=DEPTH))
        retrieved = await reader.retrieve(Retrieve(**about))
    where = Scope((_APP,), asked.user_id).where()
    by_words = await search.events(TURNS, asked.text, where, DEPTH, by=Ranking.KEYWORD)
    texts = (
        context.prompt,
        "\n".join(hit.turn.content for hit in found.turns),
        retrieved.injection or "",
        "\n".join(turn.content for turn, _ in by_words),
    )
    wanted = asked.answer.casefold()
    given = {way: wanted in text.casefold() for way, text in zip(_WAYS, texts, strict=True)}
    return {**given, "tokens": context.tokens}
