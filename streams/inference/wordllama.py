"""The default embedder: static 256-d token vectors (WordLlama), weights inside the wheel, no network, no GPU.

Measured on two shared cores, CPU time, LoCoMo's turns (128 characters): 20 / 17 / 13 µs per text in batches of 1 / 10 /
500 when their words were met before, 28 while they are new; through the tokenizer as whole texts 73 / 65 / 39.
"""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from models.errors import ConfigurationError
from models.text.words import Remembered
from streams.ports import Embedder, Vectors

HEAD_CHARS = 2_000
"""Characters of a text that are read; what a turn is about stands at its head."""
HEAD_TOKENS = 512
"""Tokens of the head that are pooled; fewer characters than HEAD_CHARS may already hold more."""
_SPACE = "\u2581"
"""A space to the tokenizer."""


class WordLlamaEmbedder(Embedder):
    """Sum of the head's token vectors, scaled to unit length (the mean points the same way).

    Each text is pooled on its own, so its vector is bit for bit the same in any batch. White space around the head
    does not count; a text of nothing else has a zero row.

    `topic_similarity` sorts messages into topics best (`turntide lab eval topics`, mean of seeds 1 to 3, 60 sessions of
    five dialogues each, active bonus 0.1): F1 of pairs 0.62 at 1.6 topics per true dialogue; 0.25 gives 0.60 at 2.2.
    The source's 0.7 gives 0.12 at 6.1, without the bonus 0.10 at 6.3: nearly every message starts a topic.

    `episode_distance`: of 782 questions of LoCoMo 68 % have an episode with some of their evidence nearer than it, and
    5 % of other users' episodes are as near (0.6: 42 and 0.8 %, the source's 0.4: 4 and 0 %): `turntide lab eval
    tiers`.
    """

    name = "wordllama"
    dim = 256
    topic_similarity = 0.2
    episode_distance = 0.7
    is_quick = True

    def __init__(self) -> None:
        self._token_vectors, self._tokens = _loaded(_folder())

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch: `(n_texts, 256)` float32, rows of unit length or zero."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            if tokens := self._tokens_of(text[:HEAD_CHARS].strip()):
                np.add.reduce(self._token_vectors.take(tokens, axis=0), axis=0, out=vector)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def _tokens_of(self, head: str) -> Sequence[int]:
        """Ids of the head's tokens: those of its words, as none begins in one and ends in another.

        But spaces that follow each other are tokens together, and `<s>` is one by itself.
        """
        words = head.split(" ")
        if "" in words or "<" in head or _SPACE in head:
            return self._tokens.of(head)
        return list(chain.from_iterable(map(self._tokens.__getitem__, words)))[:HEAD_TOKENS]


@cache
def _loaded(folder: Path) -> tuple[Vectors, Remembered[Sequence[int]]]:
    """Token vectors `(n_tokens, 256)` float32 and tokens of words by id, which the embedders of a process share."""
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=HEAD_TOKENS)
    token_vectors = weights["embedding.weight"].astype(np.float32)
    token_vectors.setflags(write=False)
    return token_vectors, Remembered(lambda word: tuple(tokenizer.encode(word, add_special_tokens=False).ids))


def _folder() -> Path:
    """Where the wheel's files are. Importing the package would load an HTTP client and clustering with it (0.4 s).

    Raises:
        ConfigurationError: It is not installed.
    """
    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise ConfigurationError("vectors.embedder is wordllama, which is not installed: reinstall `turntide`")
    return Path(found.origin).parent
