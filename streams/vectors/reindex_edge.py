"""Qdrant Edge as the source of a copy. The folder must belong to this process: the target store's lock sees to that."""

from __future__ import annotations

from pathlib import Path

from qdrant_edge import ScrollRequest

from streams.vectors import points as rules
from streams.vectors.edge_shard import EdgeCollection, read_info
from streams.vectors.reindex import Stored


class _Scrolled(EdgeCollection):
    """A collection that is read from one end to the other."""

    def page(self, after: str, limit: int) -> tuple[list[Stored], str]:
        """As `streams.vectors.reindex.Source.page`."""
        request = ScrollRequest(offset=after or None, limit=limit, with_payload=True)
        records, following = self._shard.scroll(request)
        hits = [rules.hit(record.payload or {}, 0.0) for record in records]
        return [Stored(hit.key, hit.payload) for hit in hits], "" if following is None else str(following)


class EdgeSource:
    """A `streams.vectors.reindex.Source` in a folder.

    Args:
        folder: Where the collections live.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Scrolled] = {}

    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds; None if there is no such collection."""
        info = read_info(self._folder / collection)
        return info.embedder if info else None

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[Stored], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        if collection not in self._open:
            folder = self._folder / collection
            info = read_info(folder)
            if info is None:
                return [], ""
            found = EdgeCollection.load(folder, info)
            self._open[collection] = _Scrolled(found._shard, info)  # noqa: SLF001 - the shard changes its owner
        return self._open[collection].page(after, limit)

    def close(self) -> None:
        """Release the collections."""
        for collection in self._open.values():
            collection.close()
        self._open.clear()
