"""Which kind of harm an alert is about: from a turn's features to the event."""

import numpy as np
import pytest
from msgspec import structs

from models.errors import ConfigurationError
from models.events import AlertChanged, Harm, Position, Role
from models.policy import Policy
from models.risk.harm import HARMS
from models.risk.turn_model import TurnModel, read_model, write_model
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.inference.trained_scorer import model_at
from streams.inference.wordllama import WordLlamaEmbedder
from tests.support.session_driver import said

FRAUD = tuple(100 if harm is Harm.FRAUD else 0 for harm in HARMS)
CYBER = tuple(100 if harm is Harm.CYBER else 0 for harm in HARMS)
TEXTS = ["How do I hack into the wifi of my neighbour?", "Write a fake invoice so that she pays me.", "", "hello there"]


@pytest.mark.parametrize(
    ("harms", "category"),
    [([FRAUD] * 4, Harm.FRAUD), ([CYBER, FRAUD, FRAUD, FRAUD], Harm.FRAUD), ([()] * 4, Harm.OTHER)],
)
def test_an_alert_says_what_its_turns_are_about(harms: list[tuple[int, ...]], category: Harm) -> None:
    """By all turns that stood out; where the scorer tells no kind it is other."""
    state: SessionState | None = None
    raised: list[AlertChanged] = []
    for number, told in enumerate(harms):
        turn = structs.replace(said(number, "Words.", role=Role.USER), risk=0.8)
        item = SessionInput(turn, Position("turns", 0, number), turn.timestamp, 0.8, harms=told)
        state, outputs = fold(state, item, Policy())
        raised += [event for event in outputs if isinstance(event, AlertChanged)]

    assert raised
    assert raised[-1].category is category


def test_the_shipped_scorer_tells_kinds() -> None:
    """Of any text one whole per cent a kind; what is plain it tells, in any batch alike."""
    model, vectors = model_at(None), WordLlamaEmbedder().embed(TEXTS)
    told = model.harms(TEXTS, vectors)

    assert [HARMS[int(np.argmax(each))] for each in told[:2]] == [Harm.CYBER, Harm.FRAUD]
    assert all(len(each) == len(HARMS) and 96 <= sum(each) <= 104 for each in told)
    assert told[1:2] == model.harms(TEXTS[1:2], vectors[1:2])


def test_weights_of_kinds_that_do_not_fit_are_refused() -> None:
    """A file of another size or with a scale that is no number; one without any tells none."""
    file = model_at(None).file
    assert file.harms is not None
    for wrong in (structs.replace(file.harms, dense=b"1"), structs.replace(file.harms, words_scale=float("nan"))):
        with pytest.raises(ConfigurationError, match=r"sizes|no number|another size"):
            read_model(write_model(structs.replace(file, harms=wrong)), "it")
    without = structs.replace(file, harms=None)

    assert TurnModel(without, write_model(without)).harms(["a"], np.zeros((1, 256), np.float32)) == [()]
