"""A Qdrant server as the source of a copy, and its aliases for readers from outside."""

from __future__ import annotations

from collections.abc import Iterable

from qdrant_client import models

from streams.vectors import points as rules
from streams.vectors.generations import generation_name
from streams.vectors.reindex import Stored
from streams.vectors.server import ServerStore


def alias_of(collection: str) -> str:
    """Name under which readers from outside find a collection of the generation that serves."""
    return f"{collection}-current"


class ServerSource(ServerStore):
    """A `streams.vectors.reindex.Source` on a server; reads collections of any embedder."""

    @classmethod
    def beside(cls, store: ServerStore) -> ServerSource:
        """The server of a store, over its connection; to be closed with the store."""
        return cls(store._client, embedder="", retry_delays=store._retry_delays)  # noqa: SLF001 - one class more

    async def embedder_of(self, collection: str) -> str | None:
        """Whose vectors a collection holds; None if there is no such collection."""
        if not await self._call(self._client.collection_exists, collection):
            return None
        described = await self._call(self._client.get_collection, collection)
        return str((described.config.metadata or {}).get("embedder", ""))

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[Stored], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        records, following = await self._call(
            self._client.scroll, collection, limit=limit, offset=after or None, with_payload=True
        )
        hits = [rules.hit(record.payload or {}, 0.0) for record in records]
        return [Stored(hit.key, hit.payload) for hit in hits], "" if following is None else str(following)

    async def switch_aliases(self, collections: Iterable[str], generation: str) -> list[str]:
        """Point the aliases of collections to a generation, all at once; those that it does not have are left out.

        Returns:
            The aliases that point to it now.
        """
        changes: list[models.CreateAliasOperation | models.DeleteAliasOperation] = []
        aliases = []
        for collection in collections:
            name, alias = generation_name(collection, generation), alias_of(collection)
            if await self._call(self._client.collection_exists, name):
                aliases.append(alias)
                # What an alias pointed to before is let go in the same request.
                changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
                changes.append(
                    models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias))
                )
        if changes:
            await self._call(self._client.update_collection_aliases, changes)
        return aliases
