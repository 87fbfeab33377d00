"""A text classifier in ONNX as a judge, in this process. Extra `e5` (onnxruntime); works offline.

Any export of a sequence classifier (transformers, optimum) will do: inputs `input_ids`, and if wanted `attention_mask`
and `token_type_ids`, all int64 `(n_texts, n_tokens)`; one output of logits, `(n_texts, n_classes)`. Such a classifier
was trained on single messages, so each user turn is judged alone and the worst of them counts. A turn longer than the
classifier's window is read in several windows.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import structlog
from msgspec import Struct
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from models.errors import ConfigurationError, JudgeFailed
from models.events import JudgedTurn, Role

log = structlog.get_logger(__name__)

Activation = Literal["softmax", "sigmoid"]
_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_PROBE = ["A probe of the classifier.", "Another."]
_INSTALL = "install the extra: `uv sync --extra e5` or `pip install 'turntide[e5]'`"


class OnnxJudge:
    """Runs the classifier in a thread of its own, one judgement at a time.

    Args:
        model: The ONNX file.
        tokenizer: Its `tokenizer.json`; None: beside the model.
        harmful: Number of the class that counts, or its label as `config.json` beside the model has it (`id2label`).
        max_tokens: Of the classifier's window.
        activation: What makes a probability of logits: over all classes, or of each by itself (multi-label).
        batch: Windows in one run of the model.

    Raises:
        ConfigurationError: A file is missing or of another kind, or there is no such class.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path | None = None,
        *,
        harmful: str = "1",
        max_tokens: int = 512,
        activation: Activation = "softmax",
        batch: int = 16,
    ) -> None:
        self._tokenizer = _tokenizer_of(tokenizer or model.with_name("tokenizer.json"), max_tokens)
        self._session = _session_of(model)
        self._inputs = _inputs_of(self._session, model)
        self._activation = activation
        self._batch = batch
        self._harmful = _class_of(harmful, model)
        self._probe(model)
        with model.open("rb") as file:
            self.name = f"onnx:{model.stem}@{file_digest(file, 'sha256').hexdigest()[:12]}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")

    async def judge(self, turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        """Probability of harm of the worst of the user's turns.

        Its time begins when the thread takes it up. A judgement that nobody waits for any more ends with the batch at
        hand.

        Raises:
            JudgeFailed: Not done in time, the user said nothing, or the classifier gave no probability.
        """
        texts = [turn.content for turn in turns if turn.role is Role.USER and turn.content.strip()]
        if not texts:
            raise JudgeFailed("no_text", "the user has said nothing in these turns")
        loop, abandoned = asyncio.get_running_loop(), threading.Event()

        def begun(ends: float) -> None:
            if not abandoned.is_set():
                limit.reschedule(ends)

        def run() -> float:
            ends = loop.time() + within.total_seconds()
            loop.call_soon_threadsafe(begun, ends)
            return self._worst(texts, lambda: abandoned.is_set() or loop.time() >= ends)

        try:
            # What waits for the thread has not begun yet: its time is not spent on others.
            async with asyncio.timeout(None) as limit:
                try:
                    return await loop.run_in_executor(self._thread, run)
                finally:
                    abandoned.set()
        except TimeoutError as error:
            raise JudgeFailed("timeout", f"{self.name}: not done within {within}") from error

    async def close(self) -> None:
        """Release the thread; what waits for it is not judged any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _worst(self, texts: Sequence[str], given_up: Callable[[], bool]) -> float:
        windows = list(self._windows(texts))
        if not windows:
            raise JudgeFailed("no_text", "the tokenizer finds no token in what the user said")
        found = []
        for at in range(0, len(windows), self._batch):
            if given_up():
                raise TimeoutError
            try:
                found.append(self._probabilities(self._logits(windows[at : at + self._batch])))
            except Exception as error:  # onnxruntime's own errors have no common base but this
                raise JudgeFailed("unavailable", f"{self.name}: {type(error).__name__}") from error
        worst = float(np.concatenate(found).max())
        if not np.isfinite(worst):
            raise JudgeFailed("rubbish", f"{self.name}: a probability that is no number")
        return worst

    def _windows(self, texts: Sequence[str]) -> Iterator[Encoding]:
        for encoding in self._tokenizer.encode_batch(list(texts)):
            yield from (window for window in (encoding, *encoding.overflowing) if window.ids)

    def _logits(self, windows: Sequence[Encoding]) -> NDArray[np.float64]:
        """`(n_windows, n_classes)`. Shorter windows are filled up with what the attention mask hides."""
        shape = len(windows), max(len(window.ids) for window in windows)
        arrays = {name: np.zeros(shape, dtype=np.int64) for name in _KNOWN_INPUTS}
        for row, window in enumerate(windows):
            read = slice(len(window.ids))
            arrays["input_ids"][row, read] = window.ids
            arrays["attention_mask"][row, read] = 1
            arrays["token_type_ids"][row, read] = window.type_ids
        (logits,) = self._session.run(None, {name: arrays[name] for name in self._inputs})
        return np.asarray(logits, dtype=np.float64)

    def _probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the harmful class, `(n_windows,)`."""
        if self._activation == "softmax":
            spread = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(spread[:, self._harmful] / spread.sum(axis=1))
        return np.asarray(1 / (1 + np.exp(-np.clip(logits[:, self._harmful], -50, 50))))

    def _probe(self, model: Path) -> None:
        """Whether it takes what it will be given, and has the class."""
        windows = list(self._windows(_PROBE))
        try:
            shape = self._logits(windows).shape
        except Exception as error:  # as in `_worst`
            raise ConfigurationError(
                f"judge.onnx.model {model} cannot classify two short texts ({type(error).__name__}): use a text "
                "classifier with one output, and the tokenizer.json of the same model"
            ) from error
        if len(shape) != 2 or shape[0] != len(windows):  # noqa: PLR2004 - texts by classes
            raise ConfigurationError(
                f"judge.onnx.model {model} gives {shape} for {len(windows)} texts instead of a row of classes for "
                "each: use a sequence classifier"
            )
        if self._harmful >= shape[1]:
            raise ConfigurationError(
                f"judge.onnx.harmful is class {self._harmful}, but {model} has {shape[1]}: set it to 0 to "
                f"{shape[1] - 1}"
            )
        if shape[1] == 1 and self._activation == "softmax":
            raise ConfigurationError(
                f"{model} has one class, whose softmax is always 1: set judge.onnx.activation to sigmoid"
            )


class _Config(Struct, frozen=True):
    """As much of transformers' `config.json` as is read."""

    id2label: dict[int, str] = {}


def _tokenizer_of(file: Path, max_tokens: int) -> Tokenizer:
    _require(file, "judge.onnx.tokenizer", "the classifier's tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=max_tokens)
    except Exception as error:  # the library raises plain exceptions
        raise ConfigurationError(
            f"judge.onnx.tokenizer {file} is not a readable tokenizer: set it to the classifier's tokenizer.json"
        ) from error
    return tokenizer


def _session_of(model: Path) -> Any:
    _require(model, "judge.onnx.model", "an ONNX text classifier")
    try:
        onnxruntime: Any = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"judge onnx: package onnxruntime is missing; {_INSTALL}") from error
    try:
        return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own errors have no common base but this
        raise ConfigurationError(
            f"judge.onnx.model {model} cannot be loaded ({type(error).__name__}): it is damaged or not ONNX"
        ) from error


def _inputs_of(session: Any, model: Path) -> list[str]:
    inputs = [each.name for each in session.get_inputs()]
    if "input_ids" not in inputs or not _KNOWN_INPUTS.issuperset(inputs):
        raise ConfigurationError(
            f"judge.onnx.model {model} has the inputs {', '.join(sorted(inputs))}; a text classifier has input_ids, "
            "and optionally attention_mask and token_type_ids"
        )
    return inputs


def _class_of(harmful: str, model: Path) -> int:
    if harmful.isdecimal():
        return int(harmful)
    config = model.with_name("config.json")
    _require(config, f"judge.onnx.harmful is the label {harmful!r}, to be looked up in", "the class by its number")
    try:
        labels = msgspec.json.decode(config.read_bytes(), type=_Config).id2label
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{config} has no readable id2label: set the class by its number") from error
    found = [number for number, label in labels.items() if label == harmful]
    if len(found) != 1:
        raise ConfigurationError(
            f"judge.onnx.harmful is {harmful!r}, but {config} has {', '.join(labels.values()) or 'no labels'}: set one"
        )
    return found[0]


def _require(file: Path, setting: str, wanted: str) -> None:
    if not file.is_file():
        raise ConfigurationError(f"{setting} {file}: no such file. Set it to {wanted}")
