"""A scorer's file that is missing, damaged or not meant: refused with what to do, where a role starts and by doctor."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from jobs.operate.doctor import CHECKS
from jobs.operate.doctor.verdict import Status
from models.errors import ConfigurationError
from models.risk.turn_model import FORMAT, ScorerFile, read_model, write_model
from streams.inference.reader_file import read_reader
from streams.inference.trained_scorer import SHIPPED, combined, model_at, shipped_reader
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, run_index, run_sessions, scorer_of, stream_embedder_of

# urllib3, which wordllama imports, probes for IPv6 when it is loaded.
pytestmark = pytest.mark.filterwarnings("ignore:A test tried to use socket.socket")

WHOLE = SHIPPED.read_bytes()
FILE = read_model(WHOLE, "shipped").file
JUDGING = combined(model_at(None), shipped_reader("distilled"))
ADVICE = "`turntide lab train scorer`"


def refused(data: bytes) -> str:
    """What reading says; it must refuse."""
    with pytest.raises(ConfigurationError) as refusal:
        read_model(data, "scorer.file mine.scorer")
    message = str(refusal.value)

    assert message.startswith("scorer.file mine.scorer ")
    assert ADVICE in message
    return message


def envelope(*fields: object) -> bytes:
    """An envelope like the shipped file's, but for the first fields."""
    whole = msgspec.msgpack.decode(WHOLE)
    return msgspec.msgpack.encode([*fields, *whole[len(fields) :]])


def enclosed(body: bytes) -> tuple[bytes, bytes]:
    """A body behind its right digest: made by somebody, not damaged on the way."""
    return sha256(body).digest(), body


def with_turn(**weights: object) -> ScorerFile:
    """The shipped file with other weights of a turn."""
    return replace(FILE, turn=replace(FILE.turn, **weights))


def test_what_is_written_is_read() -> None:
    """The same bytes, so the same name: the shipped one too."""
    assert write_model(FILE) == WHOLE
    assert (read_model(WHOLE, "x").file, read_model(WHOLE, "x").name) == (FILE, model_at(None).name)


@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF], ids=hex)
def test_no_flipped_byte_goes_unnoticed(bits: int) -> None:
    """In the head each one, further on each region."""
    for place in (*range(96), *range(96, len(WHOLE), 211), len(WHOLE) - 1):
        refused(WHOLE[:place] + bytes([WHOLE[place] ^ bits]) + WHOLE[place + 1 :])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (envelope("turntide-scorer", FORMAT + 1), f"has format {FORMAT + 1}, this release reads {FORMAT}"),
        (envelope("turntide-scorer", FORMAT - 1), f"has format {FORMAT - 1}, this release reads {FORMAT}"),
        (envelope("another-kind"), "is not the file of a scorer"),
        (b"PK\x03\x04 some archive", "is damaged or not the file of a scorer"),
        (b"\xc1" * 40, "is damaged or not the file of a scorer"),
        (WHOLE.replace(b"turntide-scorer", b"turntide-\xff\xfe\xfdrer"), "is damaged or not the file of a scorer"),
        (envelope("turntide-scorer", FORMAT, *enclosed(b"\x81\xa1x" + b"\x91" * 100_000)), "cannot be read"),
        (envelope("turntide-scorer", FORMAT, *enclosed(b"\x81\xa7version\xa2\xff\xfe")), "cannot be read"),
        (envelope("turntide-scorer", FORMAT, *enclosed(b"\x80")), "cannot be read"),
    ],
    ids=["newer", "older", "kind", "archive", "rubbish", "letters", "nested", "letters inside", "nothing inside"],
)
def test_another_format_or_no_scorers_file_is_refused(data: bytes, said: str) -> None:
    """It says which of them."""
    assert said in refused(data)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (with_turn(dense=FILE.turn.dense[:-1]), "another size"),
        (with_turn(words=FILE.turn.words * 2), "another size"),
        (with_turn(dense_scale=math.nan), "not a number"),
        (with_turn(words_scale=math.inf), "not a number"),
        (with_turn(rules=-math.inf), "not a number"),
        (with_turn(offset=1e300), "not a number"),
        (replace(FILE, weights=FILE.weights | {"telepathy": 1, "luck": 2}), "luck, telepathy"),
        (replace(FILE, weights={}), "no weight of"),
        (replace(FILE, weights={"level": 0}), "no weight of"),
        (replace(FILE, version=""), "version"),
        (replace(FILE, version="v" * 65), "version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_weights_that_cannot_be_meant_are_refused(file: ScorerFile, said: str) -> None:
    """Though the file is whole: each of them would score rubbish, or nothing, and nobody would notice."""
    assert said in refused(write_model(file))


def naming(file: Path | None, folder: Path, **more: object) -> Settings:
    """Settings with a scorer's file."""
    return load_settings(scorer={"file": file}, data_dir=folder / "data", **more)


async def look(settings: Settings, _stop: asyncio.Event) -> None:
    """As doctor does, before a role is started."""
    CHECKS["scorer"].look(settings)


@pytest.mark.parametrize("wrong", ["damaged.scorer", "missing.scorer", "."])
@pytest.mark.parametrize("run", [run_sessions, run_index, look])
async def test_a_role_does_not_start_with_a_wrong_file(
    tmp_path: Path, wrong: str, run: Callable[[Settings, asyncio.Event], Awaitable[None]]
) -> None:
    """One that is damaged, missing or a folder: no role falls back to other weights, or to rules, by itself."""
    (tmp_path / "damaged.scorer").write_bytes(WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]))
    with pytest.raises(ConfigurationError, match=r"^scorer\.file .*turntide lab train scorer") as refusal:
        await run(naming(tmp_path / wrong, tmp_path), asyncio.Event())

    assert str(tmp_path) not in str(refusal.value)


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ('name = "other"\nbase = 0\nweights = { level = 9 }', Status.WARN),
        ('name = "other"\nbase = 0\nweights = { level = 9, luck = 1 }', Status.FAIL),
        ('name = "other"\nbase = 0\nweights = { level = 9, reader = 1 }', Status.WARN),
        (
            f'name = "{JUDGING.name}"\nbase = 0\nweights = {{ level = 9 }}',
            Status.OK,
        ),
    ],
)
def test_doctor_compares_the_policys_model_with_the_scorer(tmp_path: Path, model: str, status: Status) -> None:
    """A policy file may bring its own; of another scorer it is a guess, of signals unknown here a mistake."""
    policy = tmp_path / "p.toml"
    policy.write_text(f"[escalation.model]\n{model}\n")
    verdict = CHECKS["scorer"].look(load_settings(policy_file=policy))

    assert verdict.status is status
    assert bool(verdict.advice) is (status is not Status.OK)


def test_scorer_and_policy_are_of_one_file(tmp_path: Path) -> None:
    """Whatever a role is started with: alerts name the weights that scored and judged."""
    file = tmp_path / "mine.scorer"
    file.write_bytes(write_model(replace(FILE, version="shop-2", base=-1)))
    settings = naming(file, tmp_path)
    model = policy_of(settings).escalation.model_in_force
    scorer = scorer_of(settings, stream_embedder_of(settings))

    assert model is not None
    assert (model.name, model.base) == (scorer.name, -1 + read_reader(shipped_reader("distilled")).base)
