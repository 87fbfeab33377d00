"""Of every kind of entity: what the largest policies make of the largest events is below what the topics take."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from models import events
from models.entities import APP, PROJECT, USER
from models.events import CommandEvent, ExtractedFact, FactCategory, OutputEvent, Position, RequestedTurn, Role
from models.events.registry import EntityKind
from models.policy import FactPolicy, MemoryPolicy, Policy, UserPolicy
from models.policy.app import MOST_SPACE_CHARS, AppPolicy
from models.policy.project import LongTermPolicy, NarrativePolicy, ProjectPolicy, ShortTermPolicy
from models.session.bounds import CHUNK_STATE_BYTES, STATE_WRITE_BYTES
from tests.support.app_driver import ended
from tests.support.entity_driver import NOON
from tests.support.limits import ESCAPED, WIDE, Partition, largest, too_large, written_bytes
from tests.support.user_driver import added, session_erased, user_erased

APP_ID = "%" * 256
"""Three times as long in a key."""
ROLES = (Role.USER, Role.ASSISTANT)
Script = Iterator[CommandEvent]


def text(number: int, chars: int) -> str:
    """Another one each time, by turns long as UTF-8 and long as JSON."""
    return (f"{number:05d}" + (ESCAPED, WIDE)[number % 2] * chars)[:chars]


def place(number: int) -> Position:
    """Of ever other partitions of a topic with a long name."""
    return Position("t" * 249, number % 1_000, 2**53 - 1_000 + number // 1_000)


def kept_topics(n: int, at: datetime) -> Iterator[events.KeptTopic]:
    """As many as one event has, each as large as it can be."""
    for each in range(16):
        yield events.KeptTopic(
            topic_id=f"{n % 5}-{each}{'t' * 30}",
            created_at=at,
            last_active_at=at,
            importance=0.9123456789012345,
            messages=2**40,
            accesses=2**40,
            weight=255,
            embedding=[-128] * 256,
            turns=[2**52 + run for run in range(128)],
            title=text(n, 400),
            tags=[text(n, 64)] * 16,
            summary=text(n, 2_810),
            summarised_by=ESCAPED * 256,
        )


def user_script(_policy: Policy) -> Script:
    """Turns of ever other sessions, and of facts as many as an answer may have, each another value every time."""
    ids: Any = {"app_id": APP_ID, "user_id": WIDE * 256}
    for n in range(60):
        at = NOON + timedelta(microseconds=n)
        turn = added(text(n, 64 * 1024), f"{WIDE * 250}{n:06d}", 2**53, place(n), at, **ids, role=ROLES[n % 2])
        yield turn
        facts = [
            ExtractedFact(
                category=FactCategory.INSTRUCTION,
                key=f"{'k' * 62}{k:02d}",
                value=text(n, 400),
                confidence=0.9123456789012345,
                importance=0.9123456789012345,
            )
            for k in range(64)
        ]
        session_id = f"{WIDE * 250}{n:06d}"
        yield events.TopicsKept(
            **ids, id=f"{n}", session_id=session_id, timestamp=at, source=place(n), topics=list(kept_topics(n, at))
        )
        back = [events.Retraction(category=FactCategory.CONSTRAINT, key="k" * 64, value=text(n, 400))]
        yield events.FactsExtracted(
            **ids, timestamp=at, facts=facts, retractions=back, session_id=ESCAPED * 999, extracted_by=ESCAPED * 999
        )


def space_script(policy: Policy) -> Script:
    """Ends of conversations of everything the most, and what admins may ask for."""
    ids: Any = {"app_id": APP_ID, "user_id": ""}
    names: Any = {"by": ESCAPED * 256, "request_id": ESCAPED * 64}
    for n in range(policy.apps.most + 6):
        at = NOON + timedelta(hours=n)
        notable = events.NotableSentence(events.NotableKind.PREFERENCE, ROLES[n % 2], 2**53, text(n, 3_000), 1 / 3)
        more: Any = {
            "user_id": f"{ESCAPED * 250}{n:06d}",
            "reason": ESCAPED * 999,
            "summary": ESCAPED * 500_000,
            "key_topics": [ESCAPED * 999] * 99,
            "notables": [notable] * 99,
            "turns": [RequestedTurn(role, text(n, 3_000)) for role in ROLES * 50],
            "last_turn": 2**53,
        }
        yield ended("", f"{WIDE * 250}{n:06d}", place(n), at, app_id=APP_ID, **more)
        shared = [f"{WIDE * 250}{a:06d}" for a in range(64)]
        yield events.MemoryEdited(**ids, **names, timestamp=at, memory_id=n + 1, shared_with=shared)
    yield events.MemoryDeleted(**ids, **names, timestamp=NOON, memory_id=2**53)
    yield events.AppUninstalled(**ids, **names, timestamp=NOON)


def project_script(policy: Policy) -> Script:
    """Turns that say much, by many, and memories by hand."""
    ids: Any = {"app_id": WIDE * 256, "project_id": ESCAPED * 256}
    for n in range(40):
        at = NOON + timedelta(hours=n)
        said = f"We decided to use tool{n % 5} for {text(n, 300)}. The build is broken. It is fixed now."
        more: Any = {"user_id": ESCAPED * 256, "turn": n, "role": Role.USER, "content": said}
        session = f"{WIDE * 255}{n % 3}"
        yield events.ProjectTurnAdded(id=f"t{n}", session_id=session, timestamp=at, source=place(n), **ids, **more)
        most = policy.projects.long_term.content_chars
        by_hand: Any = {"memory_type": events.MemoryType.FACT, "content": text(n, most), "tags": [WIDE * 64]}
        yield events.ProjectMemoryAdded(**ids, **by_hand, timestamp=at, request_id="r" * 64, by=ESCAPED * 256)
    yield events.ConsolidationAsked(**ids, timestamp=NOON + timedelta(days=99))


def answer(output: OutputEvent, policy: Policy) -> CommandEvent | None:
    """What a slower stage can say at the most."""
    owner: Any = {"app_id": output.app_id, "timestamp": output.timestamp} if isinstance(output, events.Output) else {}
    most = policy.apps.most_content_chars
    match output:
        case events.EpisodeRequested():
            return events.EpisodeSummarised(
                **owner, user_id=output.user_id, first_turn=output.first_turn, last_turn=output.last_turn,
                summary=ESCAPED * 8_000, summarised_by=ESCAPED * 999, key_topics=[ESCAPED * 999] * 99,
                embedding=[-2.2250738585072014e-308] * 4_096, embedded_by=ESCAPED * 999,
            )  # fmt: skip
        case events.MemoryRequested():
            tags = [f"{t:03d}" + WIDE * 999 for t in range(64)]
            content = text(output.request, most)
            return events.MemoryProposed(
                **owner, request=output.request, content=content, importance=1 / 3, tags=tags, made_by=ESCAPED * 999
            )
        case events.StatementsRequested():
            read = [
                events.ReadStatement(content=each, memory_type=events.MemoryType.PREFERENCE, confidence=1 / 3)
                for each in output.sentences
            ]
            return events.StatementsRead(
                **owner, project_id=output.project_id, session_id=output.session_id, user_id=output.user_id,
                turn=output.turn, statements=read, read_by=ESCAPED * 256,
            )  # fmt: skip
        case events.ProjectSummaryRequested():
            of = {name: getattr(output, name) for name in ("project_id", "session_id", "kind", "item_id")}
            return events.ProjectSummarised(
                **owner, **of, first_turn=output.first_turn, last_turn=output.last_turn, summary=ESCAPED * 8_000,
                key_topics=[ESCAPED * 200] * 64, summarised_by=ESCAPED * 256,
            )  # fmt: skip
        case events.CompactionRequested():
            return events.CompactionDecided(
                **owner, request=output.request, action="edit", target_memory_id=output.memories[0].memory_id,
                new_content=text(output.request, most), reason=ESCAPED * 9_999, decided_by=WIDE * 999,
            )  # fmt: skip
    return None


LARGE = largest(MemoryPolicy, segment_turns=1)
APPS = {"ask": True, "waiting": 4}
SHORT = ShortTermPolicy(recent_messages=4, chunk_messages=2, max_chunks=2, message_chars=400, retention_turns=2)
CASES: dict[str, tuple[EntityKind, Callable[[Policy], Script], Policy]] = {
    "user": (USER, user_script, Policy(users=UserPolicy(facts=FactPolicy(ask=True)))),
    "largest user": (
        USER,
        user_script,
        Policy(memory=LARGE, users=largest(UserPolicy, facts=largest(FactPolicy, ask=True))),
    ),
    "space": (APP, space_script, Policy(apps=AppPolicy(ask=True))),
    # As many memories as show it: comparing all with all takes its time.
    "space of many": (
        APP,
        space_script,
        Policy(
            memory=LARGE,
            apps=largest(
                AppPolicy, **APPS, most_content_chars=MOST_SPACE_CHARS // 50, content_chars=800, most=16, most_pinned=14
            ),
        ),
    ),
    "space of long": (APP, space_script, Policy(memory=LARGE, apps=largest(AppPolicy, **APPS, most=10, most_pinned=8))),
    "project": (
        PROJECT,
        project_script,
        Policy(projects=ProjectPolicy(ask=True, short_term=SHORT, long_term=LongTermPolicy(ask=True))),
    ),
    "largest project": (
        PROJECT,
        project_script,
        Policy(
            projects=ProjectPolicy(
                ask=True,
                asked_tokens=10_000,
                short_term=largest(ShortTermPolicy, recent_messages=4, chunk_messages=2, max_chunks=2),
                narrative=largest(NarrativePolicy),
                long_term=largest(LongTermPolicy, history=16, ask=True),
            )
        ),
    ),
}
UNSEEN = {events.AppMemorySkipped}


@pytest.mark.parametrize("name", CASES)
def test_everything_written_is_below_what_its_topic_takes(name: str) -> None:
    """Every event that a kind emits, and every write of its state; answers of slower stages are at their largest."""
    kind, script, policy = CASES[name]
    partition = Partition(policy)
    log: list[CommandEvent] = []
    for event in script(policy):
        log.append(event)
        outputs = partition.take([event])
        while answers := [found for output in outputs if (found := answer(output, policy)) is not None]:
            log += answers
            outputs = partition.take(answers)
    whole = Partition(policy)
    whole.take(log)

    assert [output for output in partition.outputs if too_large(output)] == []
    assert {each.event for each in kind.emits} - {type(output) for output in partition.outputs} <= UNSEEN
    assert max(map(written_bytes, (*partition.results, *whole.results))) <= STATE_WRITE_BYTES
    assert (len(whole.results) > 1) is (name != "space")
    assert whole.entities == partition.entities


@pytest.mark.parametrize("of_user", [False, True])
def test_an_erasure_is_one_write(of_user: bool) -> None:
    """It stands alone in its result: as many turns and facts as there can be, with pasts that all go, fit."""
    policy = CASES["largest user"][2]
    partition = Partition(policy)
    ids: Any = {"app_id": APP_ID, "user_id": WIDE * 256}
    for n in range(policy.users.most_turns):
        session = WIDE * 256 if n % 2 else "t"
        partition.take([added("A boat.", session, n, Position("turns", 0, n), NOON, **ids, role=Role.ASSISTANT)])
    for change in range(3):
        for first in range(0, policy.users.facts.most, 64):
            found = [
                ExtractedFact(
                    category=FactCategory.INSTRUCTION,
                    key=f"{'k' * 60}{n:04d}",
                    value=f"{WIDE * 396}001{change}",
                    confidence=0.9,
                )
                for n in range(first, min(first + 64, policy.users.facts.most))
            ]
            at = NOON + timedelta(minutes=change)
            told = {"facts": found, "session_id": "t", "extracted_by": WIDE * 256}
            partition.take([msgspec.structs.replace(events.FactsExtracted(**ids, timestamp=at), **told)])
    partition.take([user_erased(**ids) if of_user else session_erased(WIDE * 256, 0, 1, **ids)])
    result = partition.results[-1]
    (user,) = (parts for entity, parts in result.changed.items() if entity)

    assert (result.erased, len(user) > policy.users.facts.most) == (1, True)
    assert ({*user.values()} == {None}) is of_user
    assert CHUNK_STATE_BYTES < written_bytes(result) <= STATE_WRITE_BYTES
