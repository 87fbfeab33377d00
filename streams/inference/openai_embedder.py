"""An embedder behind OpenAI's API (Ollama, vLLM, hosted). Extra `llm`.

Nothing serves in its place: vectors of two embedders cannot be compared, so a collection takes one for ever. When the
server does not answer, `models.errors.EmbedderUnavailable` is raised, a `StoreUnavailable`: who indexes waits and tries
again as for a vector store that is down, and a query is answered by 503.

A call blocks for as long as the server takes: on an event loop it belongs into a thread. It is not for the role that
folds turns: a server's vectors may change with its version, and a replay would not reach the same state.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import msgspec
import numpy as np
import openai
import structlog
from msgspec import Meta, Struct
from pydantic import SecretStr

from models.errors import ConfigurationError, EmbedderUnavailable
from streams.inference.llm_client import NotTheApi, judge, key_of
from streams.inference.resilience import Blame, CallFailed, CallGuard, CallRetry
from streams.ports import Embedder, Vectors

log = structlog.get_logger(__name__)

HEAD_CHARS = 2_000
"""Characters of a text that are sent: about 500 tokens, which models of this kind take."""
MAX_TEXTS_PER_REQUEST = 256
DEFAULT_TIMEOUT = timedelta(seconds=30)

_SHORTEST_HEAD = 125
_PROBE = "The quick brown fox jumps over the lazy dog."


class OpenAiEmbedder(Embedder):
    """Texts to vectors of a model on a server; rows are scaled to unit length here.

    The thresholds belong to the model and are guesses until you measure them (`turntide lab eval topics` finds
    `topic_similarity`): between those of wordllama and MiniLM, which were measured. Models with instruction
    tuning crowd their cosines higher and want higher ones.

    Args:
        base_url: With the version, e.g. `http://127.0.0.1:11434/v1`.
        model: As the server calls it.
        api_key: None where the server asks for none.
        dim: What the model gives; None: the server is asked now.
        timeout: Of one try. It runs anew whenever a piece of the answer comes.
        topic_similarity: Cosine above which a message joins a topic. A guess.
        episode_distance: Cosine distance up to which an episode belongs to a question. A guess; the source's 0.4 is
            MiniLM's.
        guard: Before the server, with `streams.inference.llm_client.judge`; none: of defaults with this time-out.

    Raises:
        EmbedderUnavailable: `dim` is None and the server does not answer.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: SecretStr | None = None,
        *,
        dim: int | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
        topic_similarity: float = 0.25,
        episode_distance: float = 0.6,
        guard: CallGuard | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        self.topic_similarity = topic_similarity
        self.episode_distance = episode_distance
        self._model = model
        self._guard = guard or CallGuard(f"embedder {model}", judge, CallRetry(timeout=timeout))
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=key_of(api_key),
            timeout=timeout.total_seconds(),
            max_retries=0,  # the guard's budget is the only one
        )
        self.dim = dim if dim is not None else self._asked_dim()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts: `(n_texts, dim)` float32, rows of unit length or zero. The head of long text counts.

        Raises:
            EmbedderUnavailable: The server does not answer, or not with vectors.
            ConfigurationError: The server's vectors are of another size than before.
        """
        heads = [text[:HEAD_CHARS].strip() for text in texts]
        vectors = np.zeros((len(heads), self.dim), dtype=np.float32)
        filled = [place for place, head in enumerate(heads) if head]
        for start in range(0, len(filled), MAX_TEXTS_PER_REQUEST):
            places = filled[start : start + MAX_TEXTS_PER_REQUEST]
            vectors[places] = self._rows([heads[place] for place in places])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def _asked_dim(self) -> int:
        try:
            dim: int = self._request([_PROBE]).shape[1]
        except _Refused as error:
            raise self._refuses_all() from error
        return dim

    def _rows(self, heads: list[str]) -> Vectors:
        """Rows of texts; where the server refuses them, of halves, down to the one text that it refuses."""
        try:
            rows = self._request(heads)
        except _Refused:
            if len(heads) == 1:
                return self._row_of_refused(heads[0])
            middle = len(heads) // 2
            return np.vstack([self._rows(heads[:middle]), self._rows(heads[middle:])])
        if rows.shape[1] != self.dim:
            raise ConfigurationError(
                f"embedder {self._model} returns vectors of {rows.shape[1]} dimensions, not {self.dim} as before or as "
                f"set: another model has its name. Set that model and run `turntide ops reindex`"
            )
        return rows

    def _row_of_refused(self, head: str) -> Vectors:
        """Row of a shorter head, or zero for a text that is refused at any length: it must not hold up the others."""
        if len(head) > _SHORTEST_HEAD:
            return self._rows([head[: len(head) // 2]])
        if head == _PROBE:
            raise self._refuses_all()
        self._rows([_PROBE])
        log.warning("text_not_embedded", embedder=self.name, chars=len(head))
        return np.zeros((1, self.dim), dtype=np.float32)

    def _refuses_all(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(f"embedder {self._model} refuses all texts: check that it is one for embeddings")

    def _request(self, heads: list[str]) -> Vectors:
        try:
            return self._guard.call_blocking(lambda: self._asked(heads))
        except CallFailed as error:
            if error.blame is Blame.REQUEST:
                raise _Refused from error
            raise EmbedderUnavailable(f"{error}: check the embedder's base_url, model and api_key") from error

    def _asked(self, heads: list[str]) -> Vectors:
        response = self._client.embeddings.with_raw_response.create(
            model=self._model, input=heads, encoding_format="float"
        )
        try:
            found = msgspec.json.decode(response.content, type=_Embeddings).data
            found.sort(key=lambda row: row.index)
            rows = np.array([row.embedding for row in found], dtype=np.float32)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            raise NotTheApi from error
        if rows.ndim != 2 or len(rows) != len(heads) or not np.isfinite(rows).all():  # noqa: PLR2004 - a matrix
            raise NotTheApi
        return rows


class _Refused(Exception):  # noqa: N818
    """The server works, and refuses these texts."""


class _Row(Struct, frozen=True):
    index: int
    embedding: Annotated[list[float], Meta(min_length=1)]


class _Embeddings(Struct, frozen=True):
    """As much of an answer as is read."""

    data: list[_Row]
