"""`turntide ops dlq`: what could not be used, and sending it again once the cause is mended."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from jobs.cli import examples, group
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.sending import send_to_turns
from models.errors import ConfigurationError
from models.events import DeadLetter
from models.events.topics import DEAD_LETTERS, TURNS
from models.session.outputs import TOPICS_STAGE
from streams.kafka.producer import Record
from streams.kafka.records import events_on
from streams.settings import Settings, load_settings

REPLAYED_FROM = "replayed_from"
"""Header of a replayed record: topic-partition-offset of the original."""

Reason = Annotated[str | None, typer.Option(help="Filter by reason, as `list` shows it.")]

app = group("List, show and replay dead letters. Their content is only shown by `show --reveal`.")


@app.command(
    "list",
    epilog=examples("turntide ops dlq list", "turntide ops dlq list --reason invalid_field --limit 20 --output json"),
)
def list_letters(
    *,
    reason: Reason = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number; the latest are listed.")] = 100,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List dead letters: sizes, reason and place."""
    found = asyncio.run(letters(load_settings(), _by_reason(reason)))
    Printer(output).rows("dead letters", [described(letter) for letter in found[-limit:]])


@app.command(
    epilog=examples("turntide ops dlq show 6ba7b810-… ", "turntide ops dlq show 6ba7b810-… --reveal > record.bin")
)
def show(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the dead letter.")],
    *,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Write the record's original value, byte for byte, and nothing else.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show one dead letter."""
    found = asyncio.run(letters(load_settings(), lambda letter: letter.id == letter_id))
    if not found:
        raise _not_found(letter_id)
    if reveal:
        sys.stdout.buffer.write(found[0].value or b"")
    else:
        Printer(output).record(described(found[0]))


@app.command(
    epilog=examples(
        "turntide ops dlq replay --id 6ba7b810-…",
        "turntide ops dlq replay --reason future_timestamp",
        "turntide ops dlq replay --all",
    )
)
def replay(
    *,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Id of a dead letter; may be repeated.")] = None,
    reason: Reason = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Send original bytes, key and headers to turns.v1 again; the dead letters stay.

    Each record goes to its original partition. A turn that was folded in the meantime counts as a duplicate. Letters
    without bytes are left out (the record was too large, or the reason is `turn_conflict`), and so are those of the
    stage `topics`: they hold a damaged part of a topic's history, which is not a record of turns.v1.
    """
    if sum((bool(ids), reason is not None, everything)) != 1:
        raise ConfigurationError("select dead letters with one of --id, --reason or --all")
    wanted = set(ids or ())
    chosen = (lambda letter: letter.id in wanted) if wanted else _by_reason(reason)
    settings = load_settings()
    found = asyncio.run(letters(settings, chosen))
    for missing in sorted(wanted - {letter.id for letter in found}):
        raise _not_found(missing)
    inputs = [letter for letter in found if letter.stage != TOPICS_STAGE]
    whole = [letter for letter in inputs if letter.value is not None]
    asyncio.run(replay_letters(settings, whole))
    Printer(output).record(
        {
            "replayed": len(whole),
            "without_value": len(inputs) - len(whole),
            "no_input": len(found) - len(inputs),
            "topic": TURNS.full_name(settings.topic_prefix),
        }
    )


async def letters(settings: Settings, chosen: Callable[[DeadLetter], bool]) -> list[DeadLetter]:
    """Chosen dead letters, oldest first, each once: a crash may have written one twice under the same id.

    Raises:
        ConfigurationError: The topic is missing.
    """
    found = {letter.id: letter async for letter in events_on(settings, DEAD_LETTERS, DeadLetter) if chosen(letter)}
    return sorted(found.values(), key=lambda letter: letter.appended_at)


async def replay_letters(settings: Settings, found: Sequence[DeadLetter]) -> None:
    """Send the letters' original records to `turns.v1`, in their order, each to the partition that it stood on.

    Raises:
        DeliveryFailed: The broker did not confirm.
    """
    records = []
    for letter in found:
        place = f"{letter.topic}-{letter.partition}-{letter.offset}".encode()
        kept = [(name, value or b"") for name, value in letter.headers if name != REPLAYED_FROM]
        records.append(Record(letter.key, letter.value, [*kept, (REPLAYED_FROM, place)], letter.partition))
    await send_to_turns(settings, records)


def described(letter: DeadLetter) -> dict[str, object]:
    """A dead letter without its content."""
    plain = ("id", "reason", "detail", "stage", "topic", "partition", "offset")
    return {
        **{name: getattr(letter, name) for name in plain},
        "key_bytes": len(letter.key or b""),
        "value_bytes": len(letter.value or b""),
        "appended_at": letter.appended_at.isoformat(),
    }


def _by_reason(reason: str | None) -> Callable[[DeadLetter], bool]:
    return lambda letter: reason is None or letter.reason == reason


def _not_found(letter_id: str) -> ConfigurationError:
    return ConfigurationError(f"no dead letter has the id {letter_id}: `turntide ops dlq list` shows them")
