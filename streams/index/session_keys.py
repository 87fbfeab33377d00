"""Keys of points that releases up to 0.2.0 made of a session's id alone get the session's app.

| what | rule |
|---|---|
| a point of a turn or topic under another key than it has now | is renamed: its payload says the app |
| a collection that was gone through | is noted, and not looked at again |
| a run that is cut short | goes on with the page that it was at; a point may stand under both keys meanwhile |

Points of all other collections were always named by an app.
"""

from collections.abc import Callable
from types import SimpleNamespace

import structlog

from streams.index.collections import OF_SESSIONS
from streams.index.generations import PAGE_POINTS, CopyProgress, StoreNotes
from streams.ports import VectorStore

log = structlog.get_logger(__name__)

RECORD = "session_keys"
"""Collection that notes what was gone through."""


async def bind_to_apps(
    store: VectorStore, *, stir: Callable[[], None] = lambda: None, page_points: int = PAGE_POINTS
) -> int:
    """Give every point of a session the key of its session and app; returns how many had another one.

    Args:
        store: Of the generation that serves.
        stir: Called after each page: there is progress.
        page_points: Looked at, and renamed, at once.

    Raises:
        StoreUnavailable: The store does not answer; what was done stays done.
    """
    notes, renamed = StoreNotes(store, RECORD), 0
    noted = {each.name: await notes.progress(each.name) for each in OF_SESSIONS}
    for collection in OF_SESSIONS:
        progress = noted[collection.name]
        while not progress.done:
            stored, after = await store.page(collection.name, progress.after, page_points)
            keys = {each.key: collection.key(SimpleNamespace(**each.payload)) for each in stored}
            old = {key: new for key, new in keys.items() if key != new}
            await store.rename(collection.name, old)
            renamed += len(old)
            progress = CopyProgress(after=after, copied=progress.copied + len(old), done=not after)
            if old or progress.done:
                await notes.write(collection.name, progress)
            stir()
    if renamed:
        log.info("session_keys_bound", points=renamed)
    return renamed
