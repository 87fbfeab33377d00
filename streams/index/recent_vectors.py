"""Vectors of texts that were embedded lately: an item that changed often has the text it had."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from streams.ports import Embedder, Vectors

_MOST = 8_192
"""Rows: 8 MB of 256 dimensions."""


class RecentVectors:
    """Vectors of texts, embedded beside the loop unless they were lately.

    Args:
        embedder: Makes them.

    Attributes:
        blank: For what is not embedded.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._rows: OrderedDict[bytes, Vectors] = OrderedDict()
        self.blank: Vectors = np.zeros(embedder.dim, dtype=np.float32)

    async def of(self, texts: Sequence[str]) -> list[Vectors]:
        """A row `(dim,)` for each text."""
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        rows = {key: self._rows[key] for key in keys if key in self._rows}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if missing:
            made = await asyncio.to_thread(self._embedder.embed, list(missing.values()))
            rows |= {key: row.copy() for key, row in zip(missing, made, strict=True)}  # of its own: a row keeps all
        for key, row in rows.items():
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > _MOST:
            self._rows.popitem(last=False)
        return [rows[key] for key in keys]
