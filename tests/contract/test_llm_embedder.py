"""The embedder behind OpenAI's API: the suite of all embedders, and what a server can do wrong."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from models.errors import ConfigurationError, EmbedderUnavailable, StoreUnavailable
from streams.inference.openai_embedder import HEAD_CHARS, OpenAiEmbedder
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import Embedder
from tests.contract.test_embedder import (  # noqa: F401 - the suite; it asks for this module's `embedder`
    test_a_vector_does_not_depend_on_its_batch,
    test_odd_text_is_embedded,
    test_only_the_head_of_long_text_counts,
    test_rows_are_unit_length_float32,
    test_the_topic_threshold_tells_two_clear_matters_apart,
)
from tests.support.openai_stand_in import SECRET, Mode, StandIn, guarding, standing_in


@pytest.fixture(scope="module")
def model() -> WordLlamaEmbedder:
    """What the server serves."""
    return WordLlamaEmbedder()


@pytest.fixture(scope="module")
def embedder(model: WordLlamaEmbedder) -> Iterator[Embedder]:
    """An embedder with that model's thresholds, for the suite."""
    with standing_in(model.embed) as server:
        made = OpenAiEmbedder(server.base_url, "served", topic_similarity=model.topic_similarity)
        yield made
        made.close()


@pytest.fixture
def server(model: WordLlamaEmbedder) -> Iterator[StandIn]:
    """A server to make trouble on."""
    with standing_in(model.embed) as running:
        yield running


def client_of(server: StandIn, *, dim: int | None = 256, tries: int = 2, timeout: float = 5.0) -> OpenAiEmbedder:
    """An embedder that does not wait between tries."""
    within = timedelta(seconds=timeout)
    guard = guarding(tries=tries, timeout=timeout)
    return OpenAiEmbedder(server.base_url, "served", SecretStr(SECRET), dim=dim, timeout=within, guard=guard)


def test_asks_as_the_api_says(server: StandIn) -> None:
    """Path, key, body and the text's head; the name says whose vectors these are. A dimension that is set asks nothing.

    Models refuse what is longer than their window, and tokens cost.
    """
    client, asking = client_of(server), client_of(server, dim=None)
    client.embed(["hello"])
    client.embed(["x" * 300_000])
    dims = [client.dim, asking.dim]
    (_, asked, long) = server.asked

    assert (asked.path, asked.headers["authorization"]) == ("/v1/embeddings", f"Bearer {SECRET}")
    assert asked.body == {"model": "served", "input": ["hello"], "encoding_format": "float"}
    assert (client.name, dims, len(long.body["input"][0])) == ("openai:served", [256, 256], HEAD_CHARS)


def test_large_batches_are_cut(server: StandIn) -> None:
    """256 texts to a request; empty ones are not sent; every row stands at its text's place."""
    texts = [f"text {n}" if n % 3 else " " for n in range(900)]
    vectors = client_of(server).embed(texts)

    assert [len(asked.body["input"]) for asked in server.asked] == [256, 256, 88]
    assert vectors.any(axis=1).tolist() == [bool(n % 3) for n in range(900)]
    assert vectors[899].tobytes() == client_of(server).embed([texts[899]])[0].tobytes()


@pytest.mark.parametrize(
    ("mode", "tries"),
    [
        (Mode.ERROR, 2),
        (Mode.RATE_LIMIT, 2),
        (Mode.UNAUTHORISED, 1),
        (Mode.RUBBISH, 1),
        (Mode.BROKEN_BODY, 1),
        (Mode.PAGE, 1),
        (Mode.TOO_FEW, 1),
    ],
)
def test_trouble_is_that_of_a_store(server: StandIn, mode: Mode, tries: int) -> None:
    """Who indexes waits for it, who asks gets 503: both know what to do with an unavailable store."""
    server.mode = mode
    with pytest.raises(EmbedderUnavailable, match="base_url") as trouble:
        client_of(server).embed(["somebody's words"])

    assert isinstance(trouble.value, StoreUnavailable)
    assert not any(word in str(trouble.value) for word in (SECRET, "words"))
    assert len(server.asked) == tries


def test_vectors_of_another_size_are_refused(server: StandIn) -> None:
    """Another model under the same name would spoil the collection."""
    client = client_of(server)
    server.mode = Mode.WRONG_DIM
    with pytest.raises(ConfigurationError, match="128 dimensions, not 256"):
        client.embed(["hello"])


def test_a_server_that_takes_fewer_texts_gets_fewer(server: StandIn) -> None:
    """Halves, until it takes them."""
    server.most_texts = 10
    texts = [f"text {n}" for n in range(64)]
    vectors = client_of(server).embed(texts)
    sizes = [len(asked.body["input"]) for asked in server.asked]

    assert (len(vectors), bool(vectors.any(axis=1).all())) == (64, True)
    assert [size for size in sizes if size <= 10] == [8] * 8


def test_a_text_that_is_refused_is_shortened(server: StandIn) -> None:
    """Until the model's window takes it; its neighbours are not touched. At no length it has a zero row.

    It must not hold up the index for ever.
    """
    server.refuses = lambda text: len(text) > 600 or "poison" in text
    long = client_of(server).embed(["hello", "word" * 1_000])
    sent = len(server.asked[-1].body["input"][0])
    poisoned = client_of(server).embed(["hello", "poison", "there"])

    assert (long.any(axis=1).tolist(), sent) == ([True, True], 500)
    assert poisoned.any(axis=1).tolist() == [True, False, True]
