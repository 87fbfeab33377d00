"""`turntide ops keys`: the apps' keys of encryption at rest; erasing one erases what it encrypted, copies too."""

from typing import Annotated, Any

import typer

from jobs.cli import examples, group
from jobs.shared.output import OutputFormat, OutputOption, Printer, YesOption
from models.errors import ConfigurationError
from streams.encryption.keyring import ErasedKey, Keyring, WrappedKey, keyring_of
from streams.encryption.wrapping import wrapper_of
from streams.settings import load_settings

app = group("Create, list, rotate and erase the apps' keys of encryption at rest (encryption.keyring).")

_App = Annotated[str, typer.Option("--app", help="Id of the app.")]
_NOBODY = "(no app)"
_OFF = "nothing is encrypted: set encryption.keyring to a file, and encryption.master_key"


@app.command(
    epilog=examples(
        'export TURNTIDE_ENCRYPTION__MASTER_KEY="$(openssl rand -base64 32)"\n'
        "TURNTIDE_ENCRYPTION__KEYRING=/secure/keys.json turntide ops keys init"
    )
)
def init() -> None:
    """Create the keyring; each app gets a key at its first write. Store the master key with your secrets."""
    settings = load_settings().encryption
    if settings.keyring is None:
        raise ConfigurationError(_OFF)
    Keyring.init(settings.keyring, wrapper_of(settings))
    Printer(OutputFormat.TABLE).message(
        f"written: {settings.keyring}. All roles need it and the master key; keep both out of the backups of what they "
        "encrypt. `turntide topics apply` lets topics take the larger records"
    )


@app.command("list", epilog=examples("turntide ops keys list", "turntide ops keys list --output json"))
def list_(output: OutputOption = OutputFormat.TABLE) -> None:
    """List keys, erased ones too; never shows a key itself."""
    ring = _ring()
    Printer(output).rows("keys", [*map(_row, ring.keys), *map(_row, ring.erased)])


@app.command(epilog=examples("turntide ops keys rotate --app shop"))
def rotate(app_id: _App) -> None:
    """Give an app a new key: it encrypts new data; existing data stay readable."""
    _ring().rotate(app_id)
    Printer(OutputFormat.TABLE).message(f"{app_id} has a new key, which roles use within a second")


@app.command(
    epilog=examples(
        'export TURNTIDE_ENCRYPTION__PREVIOUS_MASTER_KEY="$OLD" TURNTIDE_ENCRYPTION__MASTER_KEY="$NEW"\n'
        "turntide ops keys rewrap"
    )
)
def rewrap() -> None:
    """Wrap every key with the present master key; afterwards the previous one is not needed."""
    ring = _ring()
    ring.rewrap()
    Printer(OutputFormat.TABLE).message(f"{len(ring.keys)} keys are wrapped anew")


@app.command(epilog=examples("turntide ops keys erase --app shop", "turntide ops keys erase --lost 6f1a3c505d0e4b7a"))
def erase(
    *,
    app_id: _App = "",
    lost: Annotated[
        str,
        typer.Option(metavar="ID", help="Instead, a key that is lost; roles skip the data it encrypted."),
    ] = "",
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Erase an app's keys. What they encrypted becomes unreadable in every topic, state, index, archive and backup.

    Running roles drop their copies of the keys within seconds. Data that was never encrypted (ids, figures, vectors,
    records of other producers) stays: `turntide memory erase --app` erases it.
    """
    if bool(app_id) == bool(lost):
        raise ConfigurationError("use either --app, or --lost with the id of a key")
    ring = _ring()
    if not yes:
        typer.confirm(f"Make what {lost or app_id} encrypted unreadable, for good?", abort=True, err=True)
    gone = ring.erase(app_id, lost)
    if not gone:
        raise ConfigurationError(f"app {app_id} has no key: its data is not encrypted, or its keys are already erased")
    Printer(output).rows("erased", map(_row, gone))


def _row(key: WrappedKey | ErasedKey) -> dict[str, Any]:
    made = key.made_at.isoformat(timespec="seconds") if isinstance(key, WrappedKey) else ""
    erased = key.erased_at.isoformat(timespec="seconds") if isinstance(key, ErasedKey) else ""
    return {"app": key.app_id or _NOBODY, "key": key.id, "made_at": made, "erased_at": erased}


def _ring() -> Keyring:
    if (ring := keyring_of(load_settings().encryption)) is None:
        raise ConfigurationError(_OFF)
    return ring
