"""Everything that Turntide emits for the demo's conversations: sessions, users and the stage between, without Kafka."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from jobs.demo.asking import Answers, Erased, PurgedApp
from jobs.demo.conversations import CueAct, load_play, schedule
from jobs.demo.play import DemoState
from jobs.demo.questions import Figures, ProjectAnswer, ProjectRecalled, Recalled, load_questions
from jobs.demo.run import demo_policy
from jobs.demo.summary import ArchiveSummary, DemoSummary, summarise
from models.events import (
    AlertChanged,
    CommandEvent,
    ConversationEnded,
    EpisodeRequested,
    EpisodeSummarised,
    InputEvent,
    OutputEvent,
    ProjectConversationEnded,
    ProjectTurnAdded,
    UserTurnAdded,
)
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import PartitionFold
from models.policy import load_policy
from models.text.summary import Passage
from models.user.fold import summarise_episode
from streams.inference.episode_embeddings import episode_vectors
from streams.inference.intake import Intake
from streams.inference.trained_scorer import TrainedScorer, model_at
from streams.inference.wordllama import WordLlamaEmbedder
from streams.kafka.records import record_of_input
from tests.support.entity_driver import Entities
from tests.support.loaded import loaded_embedder
from tests.support.user_partition import commands, keep

_RULES = load_policy(demo_policy(), "toml")
_MODEL = model_at(None)
_FORWARDED = UserTurnAdded | ConversationEnded | ProjectTurnAdded | ProjectConversationEnded
DEMO_POLICY = msgspec.structs.replace(
    _RULES,
    topics=msgspec.structs.replace(_RULES.topics, similarity_threshold=WordLlamaEmbedder.topic_similarity),
    escalation=msgspec.structs.replace(_RULES.escalation, model=_MODEL.combination),
)
MADE_AT = datetime(2025, 6, 28, 15, 0, tzinfo=UTC)

ARCHIVE = ArchiveSummary(rows=900, files=12, bytes=90_000, json_bytes=270_000, json_to_parquet_ratio=3.0, findings=[])
_QUESTIONS = load_questions()
_PROJECT = _QUESTIONS.project
ANSWERS = Answers(
    recalled=[
        Recalled(app_id=asked.app_id, user_id=asked.user_id, query=asked.query, facts=asked.facts)
        for asked in _QUESTIONS.users
    ],
    project=ProjectRecalled(
        app_id=_PROJECT.app_id,
        project_id=_PROJECT.project_id,
        chunks=_PROJECT.fewest_chunks,
        memories={"decision": 3, "goal": 1},
        answers=[ProjectAnswer(query=_PROJECT.query, said="<b>", milliseconds=4.0)],
    ),
    purged=PurgedApp(app_id="isp-support", deleted=1, milliseconds=20.0),
    erased=Erased(user_id="user-edith", seconds=3.0),
)
"""Right answers."""


@cache
def outputs_of_the_play() -> tuple[OutputEvent, ...]:
    """What a partition with all sessions emits, and one with all users and projects, requests answered at once."""
    sessions, users = _Sessions(), _Users()
    cues = schedule(load_play())
    emitted: list[OutputEvent] = []
    alert_ids: dict[str, str] = {}
    for offset, cue in enumerate(cues):
        event = cue.event(MADE_AT - cues[-1].at, alert_ids.get(cue.conversation.session_id))
        outputs = sessions.fold(event, offset)
        alert_ids |= {o.session_id: o.alert_id for o in outputs if isinstance(o, AlertChanged)}
        emitted += outputs
        emitted += users.fold(output for output in outputs if isinstance(output, _FORWARDED))
    return tuple(emitted)


def turns_of_the_play() -> list[InputEvent]:
    """Its turns, in the order of their sending."""
    cues = schedule(load_play())
    return [cue.event(MADE_AT - cues[-1].at) for cue in cues if cue.act is CueAct.TURN]


def played_state() -> DemoState:
    """The demo's state at the end of the play."""
    state = DemoState.of(load_play())
    for event in outputs_of_the_play():
        state.take(event, at_s=0.0)
    return state


def summary_of(
    state: DemoState, *, counted: Figures | None = None, answers: Answers = ANSWERS, archive: ArchiveSummary = ARCHIVE
) -> DemoSummary:
    """The summary with the parts that no test here looks at."""
    counted = counted or Figures({"turns": "732 in 21 sessions, 1 still open"}, [])
    return summarise(
        state, counted, answers, archive, seconds=61.0, data_dir=Path("demo"), report=Path("demo/report.html")
    )


class _Sessions:
    """The sessions role."""

    def __init__(self) -> None:
        self._intake = Intake(DEMO_POLICY, loaded_embedder(), TrainedScorer(_MODEL, loaded_embedder()))
        self._entities: Entities = {}
        self._fold = PartitionFold(self._entities, DEMO_POLICY)

    def fold(self, event: InputEvent, offset: int) -> list[OutputEvent]:
        """Fold one event and keep the state."""
        decoded = self._intake.take(
            [record_of_input(event, "demo.turns.v1", offset=offset, at_ms=int(MADE_AT.timestamp() * 1000))]
        )
        assert decoded.dead == []
        return keep(self._entities, self._fold, decoded.arrivals)


class _Users:
    """The roles memory and enrich, one answering the other; projects beside users."""

    def __init__(self) -> None:
        self._entities: Entities = {}
        self._fold = MemoryPartitionFold(self._entities, DEMO_POLICY)
        self._next = 0

    def fold(self, events: Iterable[CommandEvent]) -> list[OutputEvent]:
        """Fold events, and the answers to what is asked for them."""
        log = commands(*events, first=self._next)
        self._next += len(log)
        outputs = keep(self._entities, self._fold, log)
        asked = [output for output in outputs if isinstance(output, EpisodeRequested)]
        return outputs + (self.fold(map(_answer, asked)) if asked else [])


def _answer(request: EpisodeRequested) -> EpisodeSummarised:
    made = summarise_episode([Passage(turn.content) for turn in request.turns], DEMO_POLICY)
    return EpisodeSummarised(
        app_id=request.app_id,
        user_id=request.user_id,
        timestamp=request.timestamp,
        first_turn=request.first_turn,
        last_turn=request.last_turn,
        summary=made.text,
        summarised_by="extractive",
        key_topics=made.key_topics,
        embedding=episode_vectors(loaded_embedder(), [[turn.content for turn in request.turns]])[0].tolist(),
        embedded_by=loaded_embedder().name,
    )
