"""Questions of the demo to memory (`questions.toml`) and to the archive (`figures.toml`), and wrong answers."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.resources import files

import duckdb
import msgspec
import polars as pl
from msgspec import Struct

from jobs.demo.conversations import DemoConversation
from streams.api.users.messages import EpisodeAnswer


class DemoQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question of one user, and what must be answered.

    Attributes:
        facts: Category/key → value; each must be among the facts.
        gone: Category/key of what the user took back; none of it may be among them.
        episode: Turn range of the episode that must be the nearest; None: any or none.
    """

    app_id: str
    user_id: str
    query: str
    facts: dict[str, str] = {}
    gone: list[str] = []
    episode: str | None = None


class Pivot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn of the project's conversation that changed what holds.

    Attributes:
        turn: Of the conversation.
        query: What is asked about it.
        before: What the best answer must say if only what held right before the turn counts …
        after: … and right after it.
    """

    turn: int
    query: str
    before: str
    after: str


class ProjectQuestions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a project's memory, and what must be answered.

    Attributes:
        query: For whose answer a context is built, too.
        answer: What the best hit must say.
        fewest_chunks: Of the conversation.
        fewest_types: Of memories.
    """

    app_id: str
    project_id: str
    conversation_id: str
    query: str
    answer: str
    fewest_chunks: int
    most_chunks: int
    fewest_types: int
    pivots: list[Pivot]


class Questions(Struct, frozen=True, forbid_unknown_fields=True):
    """All questions, in the order of their asking."""

    users: list[DemoQuestion]
    project: ProjectQuestions


class Recalled(Struct, frozen=True, kw_only=True):
    """A question with memory's answer; empty where there was none."""

    app_id: str
    user_id: str
    query: str
    facts: dict[str, str] = {}
    """Category/key → value, the most important first."""
    nearest_episode: EpisodeAnswer | None = None
    turn: str = ""
    """The turn that answers best …"""
    because: dict[str, float] = {}
    """… and what put it on top: the largest terms of its score, by signal."""
    milliseconds: float = 0.0
    problems: list[str] = []


class ProjectAnswer(Struct, frozen=True, kw_only=True):
    """The best answer to one question about a project."""

    query: str
    said: str
    """Empty if nothing was found."""
    at: datetime | None = None
    """Only what held then counted; None: what holds now."""
    when: str = ""
    """The same in words."""
    milliseconds: float

    @property
    def asked(self) -> str:
        """The question, and as of when."""
        return f"{self.query} {self.when}".strip()


class ProjectRecalled(Struct, frozen=True, kw_only=True):
    """What the memory of a project answered; empty where it did not."""

    app_id: str
    project_id: str
    chunks: int = 0
    """Of the conversation."""
    memories: dict[str, int] = {}
    """Type → how many."""
    superseded: int = 0
    """Relationships by which a memory replaced another."""
    key_moments: list[str] = []
    """Titles, in order of time."""
    answers: list[ProjectAnswer] = []
    problems: list[str] = []


def load_questions() -> Questions:
    """What is asked at the end of the play."""
    return msgspec.toml.decode((files("jobs.demo") / "questions.toml").read_bytes(), type=Questions)


def wrong_answers(question: DemoQuestion, facts: dict[str, str], episode: str) -> Iterator[str]:
    """What is wrong with what was answered of a user; `episode` is the turn range of the nearest."""
    for name, value in question.facts.items():
        if facts.get(name) != value:
            yield f"{name} should be {value}, memory says {facts.get(name, 'nothing')}"
    for name in question.gone:
        if name in facts:
            yield f"{name} was taken back, memory still says {facts[name]}"
    if question.episode is not None and episode != question.episode:
        yield f"the nearest episode should be {question.episode}, memory finds {episode}"


def wrong_project(questions: ProjectQuestions, recalled: ProjectRecalled) -> Iterator[str]:
    """What is wrong with what was answered of a project."""
    if not questions.fewest_chunks <= recalled.chunks <= questions.most_chunks:
        yield f"has {recalled.chunks} chunks, not {questions.fewest_chunks} to {questions.most_chunks}"
    if len(recalled.memories) < questions.fewest_types:
        yield f"has memories of {len(recalled.memories)} types, not of {questions.fewest_types}"
    if recalled.superseded < len(questions.pivots):
        yield f"has {recalled.superseded} memories that superseded another, not {len(questions.pivots)}"
    if not recalled.key_moments:
        yield "has an arc without key moments"
    wanted = [questions.answer, *(said for pivot in questions.pivots for said in (pivot.before, pivot.after))]
    for should, answer in zip(wanted, recalled.answers, strict=True):
        if should not in answer.said:
            yield f"{answer.asked} should say {should}, memory says {answer.said or 'nothing'}"


class Figures(Struct, frozen=True):
    """What the archive answered.

    Attributes:
        figures: Name → text.
        problems: What is wrong with what it holds.
    """

    figures: dict[str, str]
    problems: list[str]


class Queries(Struct, frozen=True, forbid_unknown_fields=True):
    """SQL by name, as `figures.toml` has it."""

    figures: dict[str, str]
    checks: dict[str, str]
    further: dict[str, str]


def load_queries() -> Queries:
    """The queries of the demo."""
    return msgspec.toml.decode((files("jobs.demo") / "figures.toml").read_bytes(), type=Queries)


def ask_archive(
    lake: duckdb.DuckDBPyConnection, play: Iterable[DemoConversation], asked: Iterable[DemoQuestion]
) -> Figures:
    """Count and check what has landed.

    Args:
        lake: The archive, opened to be read.
        play: Conversations that were played to their end.
        asked: Questions about users, whose facts must have been stored, updated and retracted.
    """
    queries = load_queries()
    of_play = ("session_id", "app_id", "user_id", "ends", "shows_topics")
    conversations = [{name: getattr(each, name) for name in of_play} | {"turns": len(each.turns)} for each in play]
    users = {(each.app_id, each.user_id) for each in asked}
    _give(lake, "play", pl.DataFrame(conversations))
    _give(lake, "asked", pl.DataFrame(sorted(users), schema=["app_id", "user_id"], orient="row"))
    texts = {name: lake.execute(sql).fetchall()[0][0] for name, sql in queries.figures.items()}
    problems = [text for sql in queries.checks.values() for (text,) in lake.execute(sql).fetchall()]
    return Figures({name: text or "none" for name, text in texts.items()}, problems)


def _give(lake: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """A frame as a temporary table; a frame itself would be read by way of pyarrow, which the demo does without."""
    lake.register("given", frame.__arrow_c_stream__())
    lake.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM given")
    lake.unregister("given")
