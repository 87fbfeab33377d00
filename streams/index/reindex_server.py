"""A Qdrant server as the source of a copy, and its aliases for readers from outside."""

from __future__ import annotations

from collections.abc import Iterable

from qdrant_client import models

from streams.index.generations import generation_name
from streams.index.server import ServerStore


def alias_of(collection: str) -> str:
    """Name under which readers from outside find a collection of the generation that serves."""
    return f"{collection}-current"


class ServerSource(ServerStore):
    """A server whose aliases can be switched."""

    @classmethod
    def beside(cls, store: ServerStore) -> ServerSource:
        """The server of a store, over its connection; to be closed with the store."""
        return cls(store._client, embedder="", retry_delays=store._retry_delays)  # noqa: SLF001 - one class more

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
