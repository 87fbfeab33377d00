"""Fine-tuning of the second reader of user turns (`streams.inference.e5_reader`) on the project's own contrast pairs.

Each half of a pair is a text of its own with its label: logistic loss over a linear head on the mean of e5's last
layer. e5's int8 weights are taken as float32 and reckoned with in bfloat16; LoRA (Hu et al. 2021; PEFT) changes queries
and values of its upper six layers. Extra `train-reader`: torch and what builds on it are imported when asked for.

One thread and a seed: the same versions on the same processor make the same file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from tokenizers import Tokenizer

from jobs.lab.train.turns import WEIGHT_OF_SET, MessagePair, as_read
from streams.inference.e5_reader import READ_TOKENS, E5Reader
from streams.inference.onnx_embedder import HEAD_CHARS, E5Embedder, e5_files
from streams.inference.reader_file import ChangedWeights, ReaderFile, write_reader

if TYPE_CHECKING:
    from jobs.shared.output import Progress

LAYERS = range(6, 12)
TUNED = ("query", "value")
"""Layers that are changed, and what of them."""
RANK, ALPHA, DROPOUT = 8, 16, 0.1
"""Of the changes, what their product is multiplied by (over the rank), and what of their input is left out."""
RATE, HEAD_RATE, DECAY, WARM_UP = 1e-3, 2e-3, 0.01, 30
"""Of AdamW; the rates rise over so many steps, then fall to 0."""
BATCH_PAIRS = 24
_JITTER_TOKENS = 3.0
"""Pairs of like length are one batch; of what length exactly is drawn, so that no two epochs have the same ones."""
EVERY = 6
"""Of so many pairs one sets the scale of readings …"""
SPREAD = 2.0
"""… whose standard deviation is this there, and whose median 0."""
WEIGHT = 8_370
"""Of the signal: an eighth of the spread of the scorer's own log-odds (deploy/models/e5-reader.md)."""


def halves_of(pairs: Sequence[MessagePair]) -> list[str]:
    """Two texts a pair: harmful, benign, harmful …."""
    return [half for pair in pairs for half in (pair.harmful, pair.benign)]


def batches(lengths: NDArray[np.int64], rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Every pair once, in batches of like length, in an order that is drawn; `lengths` in tokens, of each pair."""
    order = np.argsort(lengths + rng.normal(0, _JITTER_TOKENS, len(lengths)), kind="stable")
    starts = np.arange(0, len(order), BATCH_PAIRS)
    for start in rng.permutation(starts):
        yield order[start : start + BATCH_PAIRS]


def scaled(file: ReaderFile, readings: Sequence[float]) -> ReaderFile:
    """The reader whose readings, where these are its own, have the median 0 and the deviation `SPREAD`."""
    factor = SPREAD / float(np.std(readings))
    head = np.frombuffer(file.head, np.float32) * np.float32(factor)
    offset = (file.offset - float(np.median(readings))) * factor
    return structs.replace(file, head=head.tobytes(), offset=round(offset, 6))


def in_order(readings: Sequence[float]) -> float:
    """Share of pairs of which the harmful half reads higher, of readings in the order of `halves_of`."""
    harmful, benign = np.array(readings).reshape(-1, 2).T
    return float((harmful > benign).mean())


def trained_reader(
    pairs: Sequence[MessagePair], version: str, progress: Progress, *, epochs: int, seed: int
) -> E5Reader:
    """A reader that learnt these pairs.

    Args:
        pairs: Several; all of them are learnt.
        version: Of the file.
        progress: Told of every batch.
        epochs: How often each pair is shown.
        seed: Of weights, order and dropout.
    """
    tuning = _FineTuning(*e5_files(), seed)
    tuning.fit(pairs, epochs, progress)
    file = tuning.file(version)
    return E5Reader(write_reader(scaled(file, E5Reader(write_reader(file)).readings(halves_of(pairs[::EVERY])))))


class _FineTuning:
    """e5 with changes of rank `RANK` and a head, in PyTorch."""

    def __init__(self, model: bytes, tokenizer: bytes, seed: int) -> None:
        import torch
        from peft import LoraConfig, get_peft_model

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self._torch, self._rng = torch, np.random.default_rng(seed)
        self._model = model
        self._places, encoder = _read(model)
        where = {"target_modules": list(TUNED), "layers_to_transform": list(LAYERS), "layers_pattern": "layer"}
        lora: Any = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=DROPOUT, **where)
        self._encoder: Any = get_peft_model(encoder.bfloat16(), lora)
        self._head: Any = torch.nn.Linear(encoder.config.hidden_size, 1)
        torch.nn.init.zeros_(self._head.weight)
        self._mean: Any = torch.zeros(encoder.config.hidden_size)
        self._spread = 1.0
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(READ_TOKENS)

    def fit(self, pairs: Sequence[MessagePair], epochs: int, progress: Progress) -> None:
        """Learn the pairs."""
        torch, said = self._torch, as_read(halves_of(pairs))
        texts = [E5Embedder.before_text + text[:HEAD_CHARS].strip() for text in said]
        ids = [each.ids for each in self._tokenizer.encode_batch(texts)]
        lengths = np.array(list(map(len, ids))).reshape(-1, 2).max(axis=1)
        weights = torch.tensor([WEIGHT_OF_SET.get(pair.set, 1.0) for pair in pairs])
        self._centre([ids[2 * n + half] for n in range(0, len(pairs), EVERY) for half in (0, 1)])
        tuned = [each for each in self._encoder.parameters() if each.requires_grad]
        rates = [{"params": tuned, "lr": RATE}, {"params": self._head.parameters(), "lr": HEAD_RATE}]
        optimiser = torch.optim.AdamW(rates, weight_decay=DECAY)
        steps = epochs * -(-len(pairs) // BATCH_PAIRS)
        rising = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * (1 - step / steps)
        )
        self._encoder.train()
        shown = chain.from_iterable(batches(lengths, self._rng) for _ in range(epochs))
        for done, rows in enumerate(shown, 1):
            log_odds = self._log_odds([ids[2 * n + half] for n in rows for half in (0, 1)]).reshape(-1, 2)
            wrong = torch.nn.functional.softplus(log_odds * torch.tensor([-1.0, 1.0])).sum(1)
            (wrong @ weights[rows] / weights.mean() / BATCH_PAIRS).backward()
            optimiser.step()
            optimiser.zero_grad()
            rising.step()
            progress(done, steps)

    def file(self, version: str) -> ReaderFile:
        """What was learnt, its readings not scaled yet."""
        changes = []
        for name in (f"encoder.layer.{layer}.attention.self.{tuned}" for layer in LAYERS for tuned in TUNED):
            module = self._encoder.get_submodule(f"base_model.model.{name}")
            down, up = (each["default"].weight.detach().T for each in (module.lora_A, module.lora_B))
            halved = (each.half().numpy().tobytes() for each in (down * (ALPHA / RANK), up))
            changes.append(ChangedWeights(*self._places[f"{name}.weight"], *halved))
        head = self._head.weight.detach()[0] / self._spread
        offset = float(self._head.bias.detach()[0] - head @ self._mean)
        return ReaderFile(
            version=version,
            model=sha256(self._model).digest(),
            changes=changes,
            head=head.numpy().tobytes(),
            offset=offset,
            weight=WEIGHT,
        )

    def _centre(self, ids: Sequence[list[int]]) -> None:
        """Have the head see means of the last layer by their distance from these texts', scaled."""
        self._encoder.eval()
        with self._torch.no_grad():
            means = self._torch.cat([self._means([each]) for each in ids])
        self._mean = means.mean(0)
        self._spread = float((means - self._mean).std())

    def _log_odds(self, ids: Sequence[list[int]]) -> Any:
        return self._head((self._means(ids) - self._mean) / self._spread).squeeze(1)

    def _means(self, ids: Sequence[list[int]]) -> Any:
        """Means of the last layer, `(n, dim)` float32, of texts padded to the longest."""
        width = max(map(len, ids))
        mask = self._torch.tensor([[1] * len(each) + [0] * (width - len(each)) for each in ids])
        padded = self._torch.tensor([each + [0] * (width - len(each)) for each in ids])
        hidden = self._encoder(input_ids=padded, attention_mask=mask).last_hidden_state.float()
        return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def _read(model: bytes) -> tuple[dict[str, tuple[int, int]], Any]:
    """Where e5's ONNX file holds scales and whole numbers of its matrices, by name; and e5 as a model of PyTorch."""
    import onnx
    import torch
    from transformers import BertConfig, BertModel

    graph = onnx.load_model_from_string(model).graph
    held = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    matrices = {
        node.input[1]: node.name.strip("/").removesuffix("/MatMul_quant").replace("/", ".") + ".weight"
        for node in graph.node
        if node.op_type == "MatMulInteger" and node.input[1] in held
    }
    places, weights = {}, {name: value for name, value in held.items() if name.endswith((".weight", ".bias"))}
    for name in [each for each in held if each.endswith("_quantized")]:
        base = name.removesuffix("_quantized")
        whole, scale, zero = (held[f"{base}_{part}"] for part in ("quantized", "scale", "zero_point"))
        value = (whole.astype(np.float32) - zero) * scale
        if name in matrices:
            places[matrices[name]] = model.index(scale.tobytes()), model.index(whole.tobytes())
            base, value = matrices[name], value.T
        weights[base] = value
    words, dim = weights["embeddings.word_embeddings.weight"].shape
    shape = BertConfig(vocab_size=words, hidden_size=dim, intermediate_size=4 * dim)  # 12 layers of 12 heads, as usual
    encoder: Any = BertModel(shape, add_pooling_layer=False)
    encoder.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return places, encoder
