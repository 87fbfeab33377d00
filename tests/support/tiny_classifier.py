"""A text classifier in ONNX, small enough to be written by hand: classes are weighed by the words of a text.

The bytes are protocol buffers of onnx.proto3, of which a graph of six nodes needs a handful of fields. So the tests
need neither the `onnx` package nor weights from elsewhere.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

HARMFUL_WORD = "forbidden"
_WORDS = (HARMFUL_WORD, "[UNK]")
"""What shorter texts are filled up with is number 0: unless it is masked, it does harm."""
_FLOAT, _INT64 = 1, 7
_IR_VERSION, _OPSET = 8, 13
_LOGITS_OF_A_HARMFUL_WORD = 4.0
_BIAS = -2.0


def write_classifier(
    folder: Path,
    *,
    classes: int = 2,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "logits",
    labels: Sequence[str] = (),
) -> Path:
    """Write `model.onnx`, `tokenizer.json` and, with labels, `config.json`; gives the first.

    The last class gets 4 for each `forbidden` and −2 in any text, the others 0.

    Args:
        folder: Where.
        classes: How many.
        inputs: Their names; the first has the words' numbers, the second, if any, the mask.
        output: `logits` by text, or `tokens` for one row for each word, as a token classifier has.
        labels: Of the classes.
    """
    weights = np.zeros((len(_WORDS), classes), dtype=np.float32)
    weights[0, -1] = _LOGITS_OF_A_HARMFUL_WORD
    bias = np.zeros(classes, dtype=np.float32)
    bias[-1] = _BIAS
    model = folder / "model.onnx"
    model.write_bytes(_model(weights, bias, inputs, output))
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(_WORDS)}, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    if labels:
        (folder / "config.json").write_text(json.dumps({"id2label": {str(at): name for at, name in enumerate(labels)}}))
    return model


def _model(weights: NDArray[np.float32], bias: NDArray[np.float32], inputs: Sequence[str], output: str) -> bytes:
    masked = len(inputs) > 1
    nodes = [
        _node("Gather", ["weights", inputs[0]], "found"),
        *(
            [_node("Cast", [inputs[1]], "mask", to=_FLOAT), _node("Unsqueeze", ["mask", "last"], "column")]
            if masked
            else []
        ),
        *([_node("Mul", ["found", "column"], "tokens")] if masked else [_node("Identity", ["found"], "tokens")]),
        _node("ReduceSum", ["tokens", "words"], "summed", keepdims=0),
        _node("Add", ["summed", "bias"], "logits"),
    ]
    constants = {"weights": weights, "bias": bias, "last": np.array([-1]), "words": np.array([1])}
    shape: tuple[str | int, ...] = (
        ("texts", weights.shape[1]) if output == "logits" else ("texts", "n", weights.shape[1])
    )
    graph = b"".join(
        [
            *(_bytes(1, node) for node in nodes),
            _bytes(2, b"tiny"),
            *(_bytes(5, _tensor(name, value)) for name, value in constants.items()),
            *(_bytes(11, _value(name, _INT64, ("texts", "n"))) for name in inputs),
            _bytes(12, _value(output, _FLOAT, shape)),
        ]
    )
    return _number(1, _IR_VERSION) + _bytes(8, _bytes(1, b"") + _number(2, _OPSET)) + _bytes(7, graph)


def _node(kind: str, inputs: Iterable[str], output: str, **attributes: int) -> bytes:
    named = [
        _bytes(5, _bytes(1, name.encode()) + _number(3, value) + _number(20, 2)) for name, value in attributes.items()
    ]
    return b"".join(
        [*(_bytes(1, name.encode()) for name in inputs), _bytes(2, output.encode()), _bytes(4, kind.encode()), *named]
    )


def _tensor(name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind = _FLOAT if value.dtype == np.float32 else _INT64
    dims = b"".join(_number(1, size) for size in value.shape)
    return dims + _number(2, kind) + _bytes(8, name.encode()) + _bytes(9, value.tobytes())


def _value(name: str, kind: int, shape: Iterable[str | int]) -> bytes:
    dims = [_number(1, size) if isinstance(size, int) else _bytes(2, size.encode()) for size in shape]
    tensor = _number(1, kind) + _bytes(2, b"".join(_bytes(1, dim) for dim in dims))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
