"""Role enrich with a language model that answers, talks rubbish or hangs: episodes come in any case (user memory)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.shared.sending import send_to_turns
from models.events import (
    AppMemoryChanged,
    EpisodeCompressed,
    FactChanged,
    ProjectItemChanged,
    SegmentCompacted,
    SessionEnded,
    TopicChanged,
)
from models.events.topics import COMPACTIONS, CONVERSATION_TOPICS, FACTS, MEMORIES, PROJECTS, USER_EPISODES, Topic
from streams.inference.llm_answers import PROMPTS
from streams.kafka.producer import Record
from streams.settings import LlmSettings, Settings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, running, said, until
from tests.support.openai_stand_in import Mode, standing_in
from tests.support.traced import HEADER, headers_on, traced

PARTITIONS = 1
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
FACT = {"category": "preference", "key": "music", "value": "jazz", "confidence": 0.9, "importance": 0.7}


def say(system: str, user: str) -> str:
    """A summary for turns, one fact for the message that hints at it."""
    if system.startswith("Summarize this conversation segment in 2 sentences:"):
        turns = json.loads(user)["turns"]
        return json.dumps({"summary": f"The user said: {turns[-1]['content']}", "key_topics": []})
    if "summary of one topic" in system:
        return json.dumps({"summary": f"Twelve of them: {json.loads(user)['turns'][0]['content']}", "key_topics": []})
    if system == PROMPTS["project_chunk"]:
        return json.dumps(
            {"summary": f"They said: {json.loads(user)['turns'][-1]['content']}", "key_topics": ["hulls"]}
        )
    if system == PROMPTS["project_episode"]:
        return json.dumps({"summary": "Anna took the ketch.", "key_topics": []})
    if "episode" in system:
        return json.dumps({"summary": "The user asked about boats.", "key_topics": ["boats"]})
    hinted = "saxophone" in user
    return json.dumps({"facts": [FACT | {"corrects": False}] if hinted else [], "retractions": []})


def asking(settings: Settings, model: str, *, timeout_s: float = 15.0) -> Settings:
    """The model is at this address."""
    llm = LlmSettings(base_url=model, model="tiny", timeout=timedelta(seconds=timeout_s))
    return settings.model_copy(update={"llm": llm})


def turns() -> list[Record]:
    """A user who says twenty things, one of them only a model understands."""
    contents = ["There is nothing like a saxophone on a rainy evening!", *[f"Is boat {n} fast?" for n in range(19)]]
    return [
        recorded(said(number, content=content, at=START + timedelta(seconds=number)))
        for number, content in enumerate(contents)
    ]


async def of_kind(settings: Settings, topic: Topic, kind: type[Any]) -> list[Any]:
    """Events of a kind on a topic."""
    return [event for event in await events(settings, topic) if isinstance(event, kind)]


async def summarised(settings: Settings) -> dict[int, str]:
    """The segments that a model's words stand for, by their first turn, where all four have them."""
    segments = await of_kind(settings, COMPACTIONS, SegmentCompacted)
    made = {each.first_turn: each.summary for each in segments if each.summarised_by != "extractive"}
    return made if len(made) == 4 else {}


async def topics(settings: Settings) -> list[TopicChanged]:
    """Topics that a model's words stand for."""
    changes = await of_kind(settings, CONVERSATION_TOPICS, TopicChanged)
    return [each for each in changes if each.cause == "summarised"]


async def remembered(settings: Settings, *, answered: bool) -> tuple[EpisodeCompressed, list[FactChanged]]:
    """The user's first episode, and the facts beside it, with all roles running until it is there."""
    async with running(settings, "sessions", "memory", "enrich"):
        episodes = await until(lambda: of_kind(settings, USER_EPISODES, EpisodeCompressed), "an episode")
        if answered:
            await until(lambda: summarised(settings), "summaries of segments")
            await until(lambda: topics(settings), "the summary of a topic")
    return episodes[0], await of_kind(settings, FACTS, FactChanged)


@pytest.mark.behaviour("risk-05", "user-07")
async def test_a_model_summarises_and_finds_facts(settings: Settings) -> None:
    """Its words stand in the episode and the segments of the session, its fact beside those of the rules."""
    with standing_in() as model:
        model.say = say
        await send_to_turns(settings, traced(turns()))
        episode, facts = await remembered(asking(settings, model.base_url), answered=True)
    carried = await headers_on(settings, USER_EPISODES, "episode_compressed")

    assert ("The user asked about boats.", "openai:tiny", ["boats"]) == (
        episode.summary, episode.summarised_by, episode.key_topics
    )  # fmt: skip
    assert [("music", "jazz", "openai:tiny")] == [(fact.key, fact.value, fact.extracted_by) for fact in facts]
    assert {5 * n: f"The user said: Is boat {5 * n + 3} fast?" for n in range(4)} == await summarised(settings)
    assert {("Twelve of them: Is boat ", "openai:tiny")} == {
        ((each.summary or "")[:24], each.summarised_by) for each in await topics(settings)
    }
    # From the turn to its user's memory, to the model and back.
    assert {HEADER} == set(carried)


@pytest.mark.behaviour("project-03", "project-08")
async def test_a_model_summarises_what_is_said_in_a_project(settings: Settings) -> None:
    """A chunk and an episode, told on the topic with its words, which a replay of the log needs no model for."""
    texts = ["We decided to buy the ketch, because it is dry.", *[f"Is hull {n} dry?" for n in range(20)]]
    told = [said(n, content=text, at=START + timedelta(seconds=n), project_id="web") for n, text in enumerate(texts)]
    with standing_in() as model:
        model.say = say
        await send_to_turns(settings, map(recorded, told))
        settings = asking(settings, model.base_url)

        async def summarised_items() -> dict[str, Any]:
            changes = await of_kind(settings, PROJECTS, ProjectItemChanged)
            found = {each.kind: each.chunk or each.episode for each in changes if each.cause == "summarised"}
            return found if len(found) == 2 else {}

        async with running(settings, "sessions", "memory", "enrich"):
            found = await until(summarised_items, "summaries of a chunk and an episode")

    assert {"chunk": "They said: Is hull 8 dry?", "episode": "Anna took the ketch."} == {
        kind: item.summary for kind, item in found.items()
    }
    assert ({"openai:tiny"}, ["hulls"]) == ({each.summarised_by for each in found.values()}, found["chunk"].key_topics)
    await assert_equal_to_replay(settings)


@pytest.mark.behaviour("risk-05", "user-07")
@pytest.mark.parametrize("mode", [Mode.RUBBISH, Mode.HANG])
async def test_without_an_answer_the_default_serves(settings: Settings, mode: Mode) -> None:
    """The extractive summary, embedded, and no fact that nobody understood."""
    with standing_in() as model:
        model.mode = mode
        await send_to_turns(settings, turns())
        episode, facts = await remembered(asking(settings, model.base_url, timeout_s=0.3), answered=False)

    assert ("extractive", "wordllama", 256) == (episode.summarised_by, episode.embedded_by, len(episode.embedding))
    assert "boat" in episode.summary
    assert facts == []
    assert (await summarised(settings), await topics(settings)) == ({}, [])


@pytest.mark.behaviour("app-03")
async def test_a_model_reads_the_whole_conversation_for_its_memory(settings: Settings) -> None:
    """All sixty turns exactly, though the session keeps ten and segments of fifty."""
    texts = [f"Berth {n}: {'the rope is blue. ' * 12}" for n in range(60)]
    ended = SessionEnded(session_id="s", timestamp=START + timedelta(hours=1))
    with standing_in() as model:
        model.say = lambda _system, _user: json.dumps({"content": "User has sixty berths."})
        told = [said(n, content=text, at=START + timedelta(seconds=n)) for n, text in enumerate(texts)]
        await send_to_turns(settings, [*map(recorded, told), recorded(ended)])
        settings = asking(settings, model.base_url)
        settings.llm.make_memories = True
        async with running(settings, "sessions", "memory", "enrich"):
            made = await until(lambda: of_kind(settings, MEMORIES, AppMemoryChanged), "a memory")
        messages = [one.body["messages"] for one in model.asked]
    (user,) = [said["content"] for told, said in messages if "memory creation" in told["content"]]

    assert "User has sixty berths." == made[0].content
    assert texts == [turn["content"] for turn in json.loads(user)["turns"]]
