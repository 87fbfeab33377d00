"""A second reader of user turns: e5-small-v2, fine-tuned on the project's contrast pairs. Extra `e5`; English.

The file beside this module holds no model: changes of rank 8 to queries and values of e5's upper six layers (LoRA, Hu
et al. 2021), and a head. They are added to the int8 weights of e5's own file, which are quantised anew, each output
column by itself as they were; so places and sizes stay, and onnxruntime runs it like the embedder. How it was trained
says deploy/models/e5-reader.md.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from models.errors import ConfigurationError
from models.risk.turn_model import name_of
from models.text.disguise import as_meant
from streams.inference.onnx_embedder import HEAD_CHARS, E5Embedder, OnnxEmbedder, e5_files
from streams.inference.reader_file import INSTEAD, ReaderFile, read_fine_tuned
from streams.ports import Vectors

READ_TOKENS = 128
"""Of a turn: as many as it was trained on."""
_DIM = 384
_LARGEST = 64
"""Whole number of a column's largest weight, as in e5's file: no processor's sum of two products overflows 16 bits."""
_DECIMALS = 2


class _FineTuned(E5Embedder):
    head_tokens = READ_TOKENS

    def __init__(self, file: ReaderFile) -> None:
        model, tokenizer = e5_files()
        OnnxEmbedder.__init__(self, changed(model, file), tokenizer)

    def mean(self, text: str) -> Vectors:
        """Mean of the last layer, `(384,)`, as it is."""
        mean: Vectors = self._hidden(self.before_text + text).mean(axis=0)
        return mean


class E5Reader:
    """Log-odds that a turn is harmful, by itself; about 4 ms of CPU.

    One text a run, as the embedder: neighbours change nothing. Sums of int8 are exact, but other processors can reckon
    the rest a little otherwise: a reading is rounded to two digits, and can still be another one there.

    Attributes:
        file: What its file holds.
        data: The file's bytes.
        name: Version and the first twelve digits of the file's SHA-256.

    Raises:
        ConfigurationError: The extra is not installed, or the file is damaged or belongs to another model.
        JarError: The model is not in the cache, and cannot be fetched or is another one.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.file = read_fine_tuned(self.data)
        self.name = name_of(self.file.version, self.data)
        self._encoder = _FineTuned(self.file)
        self._head = np.frombuffer(self.file.head, np.float32)

    def readings(self, texts: Sequence[str], vectors: Vectors | None = None) -> list[float]:  # noqa: ARG002
        """Log-odds of each text as it is meant, to two digits; 0 of one that says nothing."""
        heads = [as_meant(text).text[:HEAD_CHARS].strip() for text in texts]
        return [self._reading(head) if head else 0.0 for head in heads]

    def _reading(self, text: str) -> float:
        return round(float(self._encoder.mean(text) @ self._head) + self.file.offset, _DECIMALS)


def changed(model: bytes, file: ReaderFile) -> bytes:
    """e5's ONNX file with the changes in it, as long as it was.

    Raises:
        ConfigurationError: It is another file than the one that the changes belong to.
    """
    if sha256(model).digest() != file.model:
        raise ConfigurationError(f"{file.version} was trained on another file of e5 than the installed one. {INSTEAD}")
    patched = bytearray(model)
    for each in file.changes:
        scales = np.frombuffer(patched, np.float32, _DIM, each.scales_at)
        whole = np.frombuffer(patched, np.int8, _DIM * _DIM, each.weights_at).reshape(_DIM, _DIM)
        down = np.frombuffer(each.down, np.float16).astype(np.float32).reshape(_DIM, -1)
        up = np.frombuffer(each.up, np.float16).astype(np.float32).reshape(-1, _DIM)
        weights = whole * scales + down @ up
        scales[:] = np.abs(weights).max(axis=0) / _LARGEST
        whole[:] = np.rint(weights / scales)
    return bytes(patched)
