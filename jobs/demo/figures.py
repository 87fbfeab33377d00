"""Figures and checks of the play, asked of the archive (`figures.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files

import duckdb
import msgspec
import polars as pl
from msgspec import Struct

from jobs.demo.conversations import DemoConversation
from jobs.demo.questions import DemoQuestion


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
    return msgspec.convert(tomllib.loads((files("jobs.demo") / "figures.toml").read_text("utf-8")), Queries)


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
    lake.register("play", pl.DataFrame(conversations))
    lake.register("asked", pl.DataFrame(sorted(users), schema=["app_id", "user_id"], orient="row"))
    texts = {name: lake.execute(sql).fetchall()[0][0] for name, sql in queries.figures.items()}
    problems = [text for sql in queries.checks.values() for (text,) in lake.execute(sql).fetchall()]
    return Figures({name: text or "none" for name, text in texts.items()}, problems)
