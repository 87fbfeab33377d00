"""An answer that was asked for before an erasure and is folded after it brings nothing back, of two like tenants."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from models import events
from models.partition.commands import MemoryPartitionFold
from models.policy import AppPolicy, FactPolicy, Policy, ProjectPolicy, UserPolicy
from models.policy.project import LongTermPolicy
from tests.support.app_driver import ended
from tests.support.entity_driver import Entities
from tests.support.session_driver import Session
from tests.support.topic_driver import Talk, recalled
from tests.support.user_driver import NOON, added, fact
from tests.support.user_partition import commands, keep

CANARY = "Zanzibarcanary"
TENANTS = ("erased", "other")
POLICY = Policy(
    users=UserPolicy(high_turns=4, keep_turns=3, facts=FactPolicy(ask=True)),
    apps=AppPolicy(ask=True),
    projects=ProjectPolicy(ask=True, long_term=LongTermPolicy(ask=True)),
)
Events = list[events.CommandEvent]


class Layer(NamedTuple):
    """A layer that asks, and what a slower stage answers."""

    says: Callable[[str, int], Events]
    """What makes an app's entity ask, in a life that begins at a place of `turns.v1`."""
    answer: Callable[[Any, dict[str, Any]], Any]
    session_erased: Callable[[dict[str, Any]], Any]
    erased: Callable[[dict[str, Any]], Any]


def user_turns(app: str, life: int) -> Events:
    """As many as make an episode."""
    places = [events.Position("turns", 0, life + n) for n in range(4)]
    return [added("The boat needs sails.", "s", n, at, NOON, app_id=app) for n, at in enumerate(places)]


def project_turns(app: str, life: int) -> Events:
    """One that makes an episode, with a sentence that the rules read nothing in."""
    place = events.Position("turns", 0, life)
    of: dict[str, Any] = {"app_id": app, "user_id": "u", "project_id": "p", "session_id": "s", "timestamp": NOON}
    said = "We decided to use PostgreSQL. Calling it: two nodes."
    return [events.ProjectTurnAdded(id="i", source=place, turn=0, role=events.Role.USER, content=said, **of)]


def conversations(app: str, life: int) -> Events:
    """One that ended."""
    return [ended("I decided to buy a tent.", "s", events.Position("turns", 0, life), NOON, app_id=app)]


def of_user(request: Any, about: dict[str, Any]) -> Any:
    """An episode or a fact."""
    if isinstance(request, events.EpisodeRequested):
        first, last = request.first_turn, request.last_turn
        said = {**about, "summary": CANARY, "summarised_by": "llm"}
        return events.EpisodeSummarised(first_turn=first, last_turn=last, **said)
    facts = [fact("name", CANARY)]
    return events.FactsExtracted(facts=facts, session_id=request.session_id, turn=request.turn, **about)


def of_project(request: Any, about: dict[str, Any]) -> Any:
    """A statement, or an episode's summary."""
    if isinstance(request, events.ProjectSummaryRequested):
        of = {name: getattr(request, name) for name in ("session_id", "kind", "item_id", "first_turn", "last_turn")}
        return events.ProjectSummarised(summary=CANARY, summarised_by="llm", **of, **about)
    found = events.ReadStatement(content=CANARY, memory_type=events.MemoryType.DECISION, confidence=0.8)
    return events.StatementsRead(session_id=request.session_id, turn=request.turn, statements=[found], **about)


def of_space(request: Any, about: dict[str, Any]) -> Any:
    """A memory."""
    return events.MemoryProposed(request=request.request, content=CANARY, made_by="llm", **about)


def _user(about: dict[str, Any]) -> dict[str, Any]:
    return {**about, "user_id": "u", "request_id": "r"}


SPAN: dict[str, Any] = {"started_at": NOON, "ended_at": NOON}
LAYERS = {
    "user": Layer(
        user_turns,
        lambda request, about: of_user(request, {**about, "user_id": "u"}),
        lambda about: events.UserSessionErased(session_id="s", **SPAN, **_user(about)),
        lambda about: events.UserErased(**_user(about)),
    ),
    "project": Layer(
        project_turns,
        lambda request, about: of_project(request, {**about, "project_id": "p"}),
        lambda about: events.ProjectSessionErased(project_id="p", session_ids=["s"], request_id="r", **about),
        lambda about: events.ProjectErased(project_id="p", request_id="r", **about),
    ),
    "space": Layer(
        conversations,
        of_space,
        lambda about: events.SpaceSessionErased(session_ids=["s"], request_id="r", **about),
        lambda about: events.SpaceErased(request_id="r", **about),
    ),
}


class Log:
    """A partition with both tenants; after each write it is recovered, or the fold goes on."""

    def __init__(self, *, restarts: bool) -> None:
        self.entities: Entities = {}
        self.restarts = restarts
        self.log: list[Any] = []
        self._fold = MemoryPartitionFold(self.entities, POLICY)

    def put(self, *these: Any) -> list[Any]:
        """Fold some; gives what came out."""
        new = commands(*these, first=len(self.log))
        self.log += new
        if self.restarts:
            self._fold = MemoryPartitionFold(self.entities, POLICY)
        return list(keep(self.entities, self._fold, new))

    def canaries(self, outputs: Sequence[Any]) -> set[tuple[str, str]]:
        """Apps that tell of it, and apps that keep it."""
        told = {("told", output.app_id) for output in outputs if CANARY in str(output)}
        kept = {key for key, parts in self.entities.items() for value in parts.values() if CANARY.encode() in value}
        return told | {("kept", key.partition(":")[2].partition("/")[0]) for key in kept}


@pytest.mark.parametrize("restarts", [False, True], ids=["goes_on", "restarts"])
@pytest.mark.parametrize("again", [False, True], ids=["silent", "begins_anew"])
@pytest.mark.parametrize("scope", ["session_erased", "erased"])
@pytest.mark.parametrize("layer", LAYERS)
def test_it_is_nobodys_and_the_other_tenants_counts(layer: str, scope: str, again: bool, restarts: bool) -> None:
    """Whatever was erased, whether or not it begins anew under its ids, after a restart, and in a replay of the log."""
    of, log = LAYERS[layer], Log(restarts=restarts)
    asked = log.put(*(event for app in TENANTS for event in of.says(app, 0)))
    requests = [output for output in asked if "requested" in output.__struct_config__.tag]
    late = [
        of.answer(each, {"app_id": each.app_id, "timestamp": NOON, "asked_offset": each.source.offset})
        for each in requests
    ]
    log.put(getattr(of, scope)({"app_id": "erased", "timestamp": NOON}))
    if again:
        log.put(*of.says("erased", 100))
    outputs = log.put(*late)

    assert {"erased", "other"} == {each.app_id for each in late}
    assert {("told", "other"), ("kept", "other")} == log.canaries(outputs)

    replayed: Entities = {}
    keep(replayed, MemoryPartitionFold(replayed, POLICY), log.log)

    assert replayed == log.entities


@pytest.mark.parametrize("layer", LAYERS)
def test_what_is_asked_after_the_erasure_is_answered(layer: str) -> None:
    """The new life's own questions."""
    of, log = LAYERS[layer], Log(restarts=True)
    log.put(*of.says("erased", 0))
    log.put(of.erased({"app_id": "erased", "timestamp": NOON}))
    requests = [each for each in log.put(*of.says("erased", 100)) if "requested" in each.__struct_config__.tag]
    about = {"app_id": "erased", "timestamp": NOON}
    outputs = log.put(*(of.answer(each, {**about, "asked_offset": each.source.offset}) for each in requests))

    assert ("told", "erased") in log.canaries(outputs)


def test_a_session_that_was_erased_and_began_anew_takes_no_summary_of_before() -> None:
    """Though its turns have the same numbers and times again; what is asked of the new ones counts."""
    session = Session(Policy())
    for _life in range(2):
        session.outputs.clear()
        for turn in range(5):
            session.say(turn)
        (segment,) = session.of(events.SegmentCompacted)
        if not _life:
            late = segment
            session.put(events.SessionErased(session_id="s", timestamp=NOON, request_id="r"))
    for asked in (late, segment):
        session.put(
            events.SegmentSummarised(
                session_id="s",
                timestamp=NOON,
                first_turn=asked.first_turn,
                last_turn=asked.last_turn,
                summary=f"{CANARY} {asked.source.offset}",
                summarised_by="llm",
                ended_at=asked.ended_at,
                asked_offset=asked.source.offset,
            )
        )

    told = [each.summary for each in session.of(events.SegmentCompacted) if each.summarised_by == "llm"]
    assert [f"{CANARY} {segment.source.offset}"] == told


def test_topics_that_a_user_came_back_with_before_the_erasure_do_not_come_into_the_session_after_it() -> None:
    """They were on their way, with words of the erased session; what the new one brings back counts."""
    talk = Talk()
    talk.ask(0)
    talk.put(events.SessionErased(session_id="s", timestamp=NOON, request_id="r"))
    talk.ask(1)
    talk.outputs.clear()
    for topic, offset in ((CANARY, 0), ("new", 2)):
        came = structs.replace(recalled(topic, None, 3, NOON), source=events.Position("turns", 3, offset))
        talk.put(came)

    assert ["new"] == [each.topic_id for each in talk.of(events.TopicChanged) if each.cause == "restored"]
