"""The logs that are folded: the demo's play, chaos with all else that a log can hold, and those of earlier releases."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.demo.conversations import load_play, schedule
from jobs.demo.run import demo_policy
from jobs.lab.chaos.traffic import traffic
from tests.golden.world import COMMANDS, TURNS, Lines, World, encode

PLAYED_AT = datetime(2025, 6, 28, 15, 0, tzinfo=UTC)
_CHAOS_AT = datetime(2025, 3, 14, 9, 0, tzinfo=UTC)
_CHAOS_TURNS = 800
_THINGS = ("fences", "boats", "lamps", "gardens", "violins", "bread ovens", "kites")
_LONG_AFTER = timedelta(days=2)

TOKENS: list[dict[str, Any]] = [
    {"token": "token-of-the-admin-1", "role": "admin", "name": "admin"},
    {"token": "token-of-the-blind-1", "role": "operator", "name": "blind", "text": False},
    {"token": "token-of-a-tenant-1", "role": "reader", "name": "tenant", "apps": ["isp-support"]},
]


async def demo(folder: Path) -> World:
    """What the demo plays; alerts are acknowledged as there."""
    rules = folder / "policy.toml"
    rules.write_bytes(demo_policy())
    world = World(folder, PLAYED_AT, policy_file=rules, http={"tokens": TOKENS})
    cues = schedule(load_play())
    for cue in cues:
        session_id = cue.conversation.session_id
        alert_id = None
        if cue.act == "acknowledge":
            await world.fold()
            alert_id = next(e["alert_id"] for e in world.events("alerts.v1") if e["session_id"] == session_id)
        event = cue.event(PLAYED_AT - cues[-1].at, alert_id)
        world.now = event.timestamp + timedelta(seconds=1)
        world.append(TURNS.name, session_id.encode(), encode(event))
    await world.fold()
    return world


async def chaos(folder: Path) -> World:
    """Traffic with disorder and poison, controls of every kind, requests that nobody answers well, and erasures."""
    asking = {"base_url": "http://127.0.0.1:1/v1", "model": "none"}
    judge = {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "none"}
    world = World(folder, _CHAOS_AT, llm=asking, judge=judge)
    world.model = _model
    for sent in traffic(7, turns=_CHAOS_TURNS, ends_at=_CHAOS_AT, span=timedelta(hours=2)):
        world.append(TURNS.name, sent.record.key, sent.record.value)
    await world.fold()
    _control(world)
    await world.fold()
    await world.remind()
    world.now += timedelta(minutes=10)
    _forget(world)
    await world.fold()
    world.now += _LONG_AFTER
    for number in range(8):  # everything else is over
        world.say(TURNS.name, f"clock-{number}", "clock_ticked", session_id=f"clock-{number}")
    await world.fold()
    await world.remind()
    return world


_BETTER = {
    "segment_requested": ("segment_summarised", "session_id", "first_turn", "last_turn", "ended_at"),
    "topic_summary_requested": ("topic_summarised", "session_id", "topic_id", "packed"),
    "project_summary_requested": (
        "project_summarised",
        *("session_id", "project_id", "kind", "item_id", "first_turn", "last_turn"),
    ),
}


def _model(request: dict[str, Any]) -> dict[str, Any] | None:
    """Made-up answers, some of them wrong; episodes and every fourth request are left to those who always answer."""
    about = {name: request[name] for name in ("app_id", "timestamp")}
    number = request.get("request", request.get("turn", 0))
    if request["type"] in _BETTER:
        answer, *names = _BETTER[request["type"]]
        said = {"summary": "Of hedges.", "summarised_by": "made-up"}
        said |= {name: request[name] for name in names}
        return None if request.get("first_turn", 0) % 3 else {"type": answer, **about, **said}
    if request["type"] == "episode_requested" or number % 4 == 3:
        return None
    if request["type"] == "facts_requested":
        fact = {"category": "preference", "key": f"colour_{number % 5}", "value": f"blue {number}", "confidence": 0.9}
        said = {"session_id": request["session_id"], "turn": number, "extracted_by": "made-up"}
        return {"type": "facts_extracted", **about, "user_id": request["user_id"], "facts": [fact], **said}
    space = {**about, "user_id": request["user_id"] if request["space"] == "user" else "", "request": number}
    if request["type"] == "memory_requested":
        made = {"importance": number % 10 / 10, "tags": [f"tag-{number % 3}"], "made_by": "made-up", "tokens": 20}
        return {
            "type": "memory_proposed",
            **space,
            "content": f"User wants {_THINGS[number % 7]} of {number} feet.",
            **made,
        }
    merged = {"action": "merge", "target_memory_id": request["memories"][0]["memory_id"], "new_content": "Merged."}
    decided = merged if number % 2 else {"action": "burn", "target_memory_id": -1}
    return {"type": "compaction_decided", **space, **decided, "reason": "alike", "decided_by": "made-up"}


def _control(world: World) -> None:
    """Every control event, of sessions for which there is something to control."""
    made_up = {"summary": "Of fences.", "summarised_by": "made-up"}
    alerts = {each["session_id"]: each["alert_id"] for each in world.events("alerts.v1")}
    for n, (session_id, alert_id) in enumerate(alerts.items()):
        of = {"session_id": session_id, "alert_id": alert_id}
        world.say(TURNS.name, session_id, "alert_labelled", **of, escalating=n % 2 == 0, reason="seen", by="on-call")
        world.say(TURNS.name, session_id, "turns_judged", **of, judge="made-up", probability=0.25 + n % 3 / 4)
        if n % 2:
            world.say(TURNS.name, session_id, "alert_acknowledged", **of, by="on-call", note="reading")
    topics = {each["session_id"]: each for each in world.events("conversation-topics.v1") if each["kept"]}
    for n, (session_id, topic) in enumerate(topics.items()):
        of = {"session_id": session_id, "topic_id": topic["topic_id"]}
        match n % 4:
            case 0:
                world.say(TURNS.name, session_id, "topic_adjusted", **of, importance=0.9, tags=["kept"])
            case 1:
                world.say(TURNS.name, session_id, "feedback_given", **of, value=-1.0)
            case 2:
                world.say(TURNS.name, session_id, "topic_summarised", **of, **made_up)
            case _:
                world.say(TURNS.name, session_id, "topic_restored", **_restored(session_id, world.now))
    for segment in world.events("compactions.v1")[:5]:
        of = {name: segment[name] for name in ("session_id", "first_turn", "last_turn")}
        world.say(TURNS.name, of["session_id"], "segment_summarised", **of, **made_up)


def _restored(session_id: str, at: datetime) -> Mapping[str, Any]:
    message = {"turn": 1, "role": "user", "content": "Which sails does a boat need?", "timestamp": at}
    about = {"title": "boats", "created_at": at, "importance": 0.5, "access_count": 3, "summary": "Of sails."}
    return {"session_id": session_id, "topic_id": "restored", "messages": [message], **about}


def _forget(world: World) -> None:
    """A session, a user and an app, as the executor of erasures tells the folds."""
    of = {"request_id": "erase-1"}
    span = {"started_at": world.now - timedelta(days=1), "ended_at": world.now}
    world.say(TURNS.name, "s-1", "session_erased", session_id="s-1", **of)
    user = {"app_id": "app-1", "user_id": "u-1"}
    world.say(COMMANDS.name, "user:app-1/u-1", "user_session_erased", **user, session_id="s-1", **span, **of)
    world.say(COMMANDS.name, "app:app-1/u-1", "space_session_erased", **user, session_ids=["s-1"], **of)
    world.say(COMMANDS.name, "app:app-1", "space_session_erased", app_id="app-1", user_id="", session_ids=["s-1"], **of)
    world.say(COMMANDS.name, "user:app-2/u-2", "user_erased", app_id="app-2", user_id="u-2", **of)
    world.say(COMMANDS.name, "app:app-0", "space_erased", app_id="app-0", user_id="", **of)


def forget_project(world: World) -> None:
    """A session and then all of the demo's project, and the points of one user."""
    of = {"app_id": "workshop", "project_id": "tool-library", "request_id": "erase-2"}
    key = "project:workshop/tool-library"
    world.say(COMMANDS.name, key, "project_session_erased", **of, session_ids=["tool-library"])
    world.say(COMMANDS.name, key, "project_erased", **of)
    due = {"request_id": "erase-3", "scope": "user", "app_id": "assistant", "user_id": "alex"}
    world.say("erasures.v1", "erase-3/vectors_erasure_due", "vectors_erasure_due", **due)


async def folded(folder: Path, log: Any) -> Lines:
    """What comes of a log of an earlier release: of its turns, and of its commands as they stand."""
    world = World(folder, log.made_at, prefix=log.prefix, forwards=False)
    for topic in (TURNS.name, COMMANDS.name):
        for number, records in log.records[topic].items():
            for record in records:
                world.now = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
                world.append(topic, record.key, record.value, record.headers, int(number))
    await world.fold(answer=False)
    return world.written(TURNS.name, COMMANDS.name)
