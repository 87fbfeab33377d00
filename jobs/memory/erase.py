"""`turntide memory erase`: have a user, a session or an app forgotten everywhere, and see the proof."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from jobs.cli import with_examples
from jobs.shared.output import OutputFormat, OutputOption, Printer, YesOption, status_line
from jobs.shared.role_groups import RoleGroup, role_groups
from jobs.shared.session_app import session_meant
from models.errors import ConfigurationError
from models.events import ErasedStore, EraseRequested, EraseScope, ErasureProved
from streams.erase.concerned import checked
from streams.erase.record import ErasureRecords, KafkaEraseRequests
from streams.erase.residual import CHANGELOGS, names_of
from streams.settings import Settings, load_settings

_EXIT_REMAINS = 1
_EXIT_INTERRUPTED = 130
_LOOK_EVERY_S = 0.5
_LASTING = {names_of(changelog)[2] for changelog in CHANGELOGS}
"""Lines of a proof that --purge-logs leaves: keys of what is gone, see `streams.erase.purge`."""
_ROLES = ("archive", "sessions", "memory", "enrich", "judge", "index")
"""The first carries it out, the others are waited for."""


@with_examples(
    "turntide memory erase --user anna",
    "turntide memory erase --user anna --app shop --purge-logs",
    "turntide memory erase --session order-4711 --app shop --yes --output json",
    "turntide memory erase --status 6f1a3c50…",
)
def erase(
    *,
    user: Annotated[str, typer.Option(help="The user: with --app in that app, else in all apps.")] = "",
    session: Annotated[
        str,
        typer.Option(
            help="One session; with --app of that app, else of the default app, or of the only app with such a session."
        ),
    ] = "",
    app: Annotated[str, typer.Option(help="An app: alone, everything of it.")] = "",
    purge_logs: Annotated[
        bool,
        typer.Option(
            "--purge-logs",
            help="Also delete the data from Kafka's files now instead of by retention; keys of deleted state remain. "
            "Older records of everybody on the same partitions are deleted too: the archive keeps them, but a replay "
            "or reset from the log starts after them.",
        ),
    ] = False,
    by: Annotated[str, typer.Option(help="Who requests it; recorded in the proof.")] = "",
    status: Annotated[str, typer.Option(metavar="ID", help="Only show the proof of an earlier erasure.")] = "",
    yes: YesOption = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the proof.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Forget a user, a session or an app: state, topics, vectors and archive, with a proof of what was removed.

    The archive role does the work and waits for every role that holds data of the subject. While such a role is down,
    the erasure waits; it continues when the role is back, also after a restart. Data that only retention removes
    (topics kept for some days) is listed with its date. Exit code 1 if data remains that nothing will remove.
    """
    settings, printed = load_settings(), Printer(output)
    if status:
        found = asyncio.run(_proof_of(settings, status))
        if isinstance(found, str):
            printed.record({"request_id": status, "proved": False, "waits_for": found})
            raise typer.Exit(_EXIT_REMAINS)
        _finish(found, printed)
        return
    request = _request(user=user, session=session, app=app, purge_logs=purge_logs, by=by)
    if request.scope == "session" and not request.app_id:
        apps = asyncio.run(KafkaEraseRequests(settings).apps_of(session))
        request = msgspec.structs.replace(request, app_id=session_meant(session, "", apps).app_id)
    if not yes:
        typer.confirm(f"Erase {described(request)} everywhere, for good?", abort=True, err=True)
    asyncio.run(KafkaEraseRequests(settings).request(request))
    again = f"turntide memory erase --status {request.request_id}"
    printed.message(f"requested as {request.request_id}")
    if no_wait:
        printed.record({"request_id": request.request_id, "proved": False})
        printed.message(f"`{again}` shows the proof")
        return
    try:
        with status_line("erasing (Ctrl-C ends only the waiting)", shown=output is not OutputFormat.JSON) as say:
            proof = asyncio.run(_proved(settings, request.request_id, say))
    except KeyboardInterrupt:
        printed.message(f"the erasure continues; `{again}` shows the proof")
        raise typer.Exit(_EXIT_INTERRUPTED) from None
    _finish(proof, printed)


def _request(*, user: str, session: str, app: str, purge_logs: bool, by: str) -> EraseRequested:
    """The request that the options ask for; of a session it may still lack the app.

    Raises:
        ConfigurationError: They name nobody, or two.
    """
    if not (user or session or app):
        raise ConfigurationError("nothing is selected: use --user, --session or --app")
    scope: EraseScope = "session" if session else "user" if user else "app"
    return checked(
        EraseRequested(
            request_id=uuid.uuid4().hex,
            timestamp=datetime.now(UTC),
            scope=scope,
            app_id=app,
            user_id=user,
            session_id=session,
            by=by,
            purge_logs=purge_logs,
        )
    )


def described(request: EraseRequested) -> str:
    """Whom a request names, in words.

    >>> now = datetime.now(UTC)
    >>> described(EraseRequested(request_id="r", timestamp=now, scope="user", user_id="anna"))
    'user anna of all apps'
    """
    if request.scope == "app":
        return f"app {request.app_id} with all its users"
    name = request.user_id or request.session_id
    return f"{request.scope} {name} of {f'app {request.app_id}' if request.app_id else 'all apps'}"


# --- waiting


async def _proof_of(settings: Settings, request_id: str) -> ErasureProved | str:
    """The proof, or what is waited for.

    Raises:
        ConfigurationError: Nobody asked for it.
    """
    async with aclosing(KafkaEraseRequests(settings).watched(_LOOK_EVERY_S)) as watched:
        records = await anext(watched)
    if request_id in records.proved:
        return records.proved[request_id]
    if request_id not in records.requested:
        raise ConfigurationError(f"no erasure has the id {request_id}; a request for an erasure prints its id")
    return waits_for(records, request_id, await role_groups(settings, _ROLES))


async def _proved(settings: Settings, request_id: str, say: Callable[[str], None]) -> ErasureProved:
    async with aclosing(KafkaEraseRequests(settings).watched(_LOOK_EVERY_S)) as watched:
        async for records in watched:
            if request_id in records.proved:
                break
            say(waits_for(records, request_id, await role_groups(settings, _ROLES)))
    return records.proved[request_id]


def waits_for(records: ErasureRecords, request_id: str, groups: Mapping[str, RoleGroup]) -> str:
    """Render what an erasure waits for as a sentence."""
    if not groups["archive"].members:
        return "no archive worker is running: start `turntide worker archive`"
    away = [role for role in _ROLES if groups[role].known and not groups[role].members]
    if away:
        return f"role {away[0]} holds data to erase and is not running: start `turntide worker {away[0]}`"
    if request_id in records.vectors:
        return "archive, logs and a final check of all stores"
    return "the index removes vectors" if request_id in records.due else "sessions, users and topics"


# --- the proof


def _finish(proof: ErasureProved, printed: Printer) -> None:
    """Print the proof; the exit code says whether anything stays."""
    if printed.form is OutputFormat.TABLE:
        shown = [store for store in proof.stores if store.removed or store.remaining or store.looked_at]
        printed.rows(f"erasure {proof.request_id}", list(map(_row, shown)))
        printed.message(summary(proof))
    else:
        printed.record(msgspec.to_builtins(proof))
    if any(store.remaining and store.expires_at is None for store in proof.stores):
        raise typer.Exit(_EXIT_REMAINS)


def _row(store: ErasedStore) -> dict[str, Any]:
    return {
        "store": store.store,
        "looked at": store.looked_at,
        "removed": store.removed,
        "remaining": store.remaining,
        "gone by": None if store.expires_at is None else store.expires_at.replace(microsecond=0),
    }


def summary(proof: ErasureProved) -> str:
    """A proof in a sentence."""
    removed = sum(store.removed for store in proof.stores)
    if proof.complete:
        return f"complete: {removed} entries removed, nothing remains in {len(proof.stores)} stores"
    left = [store for store in proof.stores if store.remaining]
    stay = sorted(store.store for store in left if store.expires_at is None)
    if stay:
        return (
            f"{removed} entries removed; in {', '.join(stay)} something remains that nothing removes by itself: "
            "--purge-logs does"
        )
    last = max(store.expires_at for store in left if store.expires_at is not None)
    if lasting := sorted(store.store for store in left if store.store in _LASTING):
        also = "" if len(lasting) == len(left) else ", the rest likewise or now with --purge-logs"
        return f"{removed} entries removed; {', '.join(lasting)} go by themselves until {last:%Y-%m-%d}{also}"
    return f"{removed} entries removed; what remains goes by itself until {last:%Y-%m-%d}, or now with --purge-logs"
