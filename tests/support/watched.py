"""Conversations as records through the real intake and the fold of a partition, judged as shipped."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Self

from aiokafka.structs import ConsumerRecord

from jobs.lab.train.scorer import own_dialogues
from jobs.shared.dialogues import LabelledDialogue
from models.events import AlertChanged, DeadLetter, OutputEvent, ProfileUpdated, Role, Turn, session_key
from models.partition.sessions import PartitionFold
from models.policy import Policy
from models.session.fold import SessionState
from models.wire.codec import encode
from streams.inference.intake import Intake
from streams.inference.trained_scorer import TrainedScorer, model_at
from streams.settings import load_settings
from streams.wiring import policy_of, scorer_of
from tests.support.entity_driver import Entities
from tests.support.loaded import loaded_embedder
from tests.support.user_partition import keep

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
SESSION = "s"
Said = tuple[Role, str]


@cache
def shipped_scorer() -> TrainedScorer:
    """The scorer's shipped file, over the default embedder."""
    return TrainedScorer(model_at(None), loaded_embedder())


@cache
def shipped_policy() -> Policy:
    """The policy of a worker without settings."""
    return policy_of(load_settings())


@cache
def own_dialogue(session_id: str) -> LabelledDialogue:
    """One of the project's own labelled dialogues."""
    return next(dialogue for dialogue in own_dialogues() if dialogue.session_id == session_id)


def said_in(dialogue: LabelledDialogue) -> list[Said]:
    """Its turns: who said what."""
    return [(turn.role, turn.content) for turn in dialogue.turns]


def by_user(*texts: str) -> list[Said]:
    """User turns in a row."""
    return [(Role.USER, text) for text in texts]


class Watched:
    """One session on a partition, its turns a minute apart, watched as `scorer.kind` has it."""

    def __init__(self, kind: str = "trained") -> None:
        self.entities: Entities = {}
        self.outputs: list[OutputEvent] = []
        self.dead: list[DeadLetter] = []
        settings = load_settings(scorer={"kind": kind})
        policy = policy_of(settings)
        self._fold = PartitionFold(self.entities, policy)
        self._intake = Intake(policy, loaded_embedder(), scorer_of(settings, loaded_embedder()))
        self._offset = 0

    def hear(self, said: Sequence[Said]) -> Self:
        """Take further turns in, as one poll."""
        return self.take(map(self._encoded, said, range(self._offset, self._offset + len(said))))

    def take(self, values: Iterable[bytes]) -> Self:
        """Take records in, as one poll."""
        records = []
        for value in values:
            appended_ms = int((START + self._offset * timedelta(minutes=1)).timestamp() * 1000)
            records.append(
                ConsumerRecord("t", 0, self._offset, appended_ms, 0, SESSION.encode(), value, None, 1, len(value), ())
            )
            self._offset += 1
        arrivals, dead = self._intake.take(records)
        self.dead += dead
        self.outputs += keep(self.entities, self._fold, arrivals)
        return self

    @staticmethod
    def _encoded(said: Said, number: int) -> bytes:
        role, content = said
        at = START + number * timedelta(minutes=1)
        return encode(
            Turn(session_id=SESSION, user_id="u", app_id="a", turn=number, role=role, content=content, timestamp=at)
        )

    @property
    def alerts(self) -> list[AlertChanged]:
        """Every change of an alert."""
        return [output for output in self.outputs if isinstance(output, AlertChanged)]

    @property
    def profile(self) -> ProfileUpdated:
        """The last profile."""
        return [output for output in self.outputs if isinstance(output, ProfileUpdated)][-1]

    @property
    def probability(self) -> float | None:
        """That it escalates, as it stands; None where no user turn was weighed."""
        judged = SessionState.load(self.entities[session_key("a", SESSION)]).judged(shipped_policy())
        return None if judged is None else judged.probability
