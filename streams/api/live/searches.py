"""Saved searches of alerts: filters under a name, for everybody who may read the app's alerts."""

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, Struct, structs

from models.events import AppMemoriesChanged
from models.events.app import SearchSaved
from models.events.fields import Identifier
from models.events.saved_search import SavedSearch
from streams.api.apps.messages import Pending, now_utc
from streams.api.apps.routes import AskedSpace, OfSpace
from streams.api.commands import SpaceCommands
from streams.api.live.routes import LIVE, OfApp
from streams.http.problems import Problem
from streams.http.route import Accepted
from streams.http.security import caller
from streams.index.app_memory import AppMemoryIndex

MOST_APPS = 1_000


class SaveSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search to keep, in place of one of its title, or to let go."""

    app_id: Identifier
    search: SavedSearch
    kept: Annotated[bool, Meta(description="False: it is let go.")] = True


class SearchOfApp(SavedSearch, frozen=True, kw_only=True):
    """A saved search, and of which app's alerts."""

    app_id: str


class SavedSearches(Struct, frozen=True, kw_only=True):
    """By app and title."""

    searches: list[SearchOfApp]


class SearchRoutes:
    """Reads and writes saved searches, which stand in the memory of their app.

    Args:
        apps: Where they show.
        commands: What writes them.
    """

    def __init__(self, apps: AppMemoryIndex, commands: SpaceCommands) -> None:
        self._apps = apps
        self._commands = commands

    @LIVE.get("/searches", "list_searches")
    async def listed(self, asked: OfApp) -> SavedSearches:
        """Saved searches of an app's alerts, or of all apps that the token reads."""
        app = caller().app_of(asked.app_id)
        return _answer(await self._apps.spaces(MOST_APPS, app, user_id=""))

    @LIVE.put("/searches", "save_search", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def save(self, body: SaveSearch) -> SavedSearches | Accepted[Pending]:
        """Keep a search of an app's alerts under its title, or let it go.

        Raises:
            Problem: 403 another tenant's app; 409 the app has as many as it may; 503 this role takes no commands.
            DeliveryFailed: The log did not confirm it.
        """
        space = AskedSpace(OfSpace(app_id=body.app_id))
        command = SearchSaved(**space.command(now_utc()), search=body.search, kept=body.kept)
        result = await self._commands.carry_out(command)
        if result is None:
            return space.pending(command.request_id)
        if result.outcome == "too_many":
            raise Problem(HTTPStatus.CONFLICT, "too_many", "the app has as many saved searches as it may: let one go")
        return _answer(await self._apps.spaces(1, body.app_id, user_id=""))


def _answer(spaces: list[AppMemoriesChanged]) -> SavedSearches:
    by_app = sorted(spaces, key=lambda space: space.app_id)
    found = [SearchOfApp(app_id=space.app_id, **structs.asdict(each)) for space in by_app for each in space.searches]
    return SavedSearches(searches=found)
