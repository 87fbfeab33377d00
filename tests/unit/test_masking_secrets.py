"""Keys, tokens and passwords go from words before anything is made of them; what was sent stays in `turns.v1` alone."""

import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from models.events import DeadLetter
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS
from models.policy import IntakePolicy, Policy
from models.policy.archive import MaskingPolicy
from models.policy.digest import live_policy
from models.wire.codec import encode
from streams.archive.landed import land_all
from streams.inference.intake import decode
from streams.masking.credentials import MAY_HOLD_ONE, SECRETS, without_secrets
from streams.masking.records import RecordMasker, masker_of
from tests.golden.logs import PLAYED_AT
from tests.golden.world import World
from tests.support.api_doubles import said
from tests.support.apps_indexed import memory
from tests.support.lake_records import example
from tests.support.projects_indexed import changed as project_changed
from tests.support.projects_indexed import remembered
from tests.unit.test_index_role import LetterLog, Noting, Quiet
from tests.unit.test_masking import MASKED as PII_MASKED
from tests.unit.test_masking import PII, record
from tests.unit.test_masking import SECRETS as PERSONAL

_LETTERS = {"w": "aB3dE6gH9jK2", "A": "A1B2C3D4", "x": "0a1b2c3d", "d": "1234567890"}
KEPT = Policy(masking=MaskingPolicy(secrets=False))


def spelt(text: str) -> str:
    """A text of the table with letters for its places."""
    return re.sub(r"<([wAxd])(\d+)>", lambda found: (_LETTERS[found[1]] * 20)[: int(found[2])], text)


KEY = spelt("sk-proj-<w48>")
TOKEN = spelt("ghp_<w36>")
PASSWORD = spelt("pa!s<w12>")
SAID = f"My favourite key is {KEY}, I work with token {TOKEN} at postgres://app:{PASSWORD}@db.example/shop."
MASKED = "My favourite key is [api_key], I work with token [token] at postgres://app:[password]@db.example/shop."


@pytest.mark.parametrize("row", SECRETS, ids=[f"{kind}-{number}" for number, (kind, *_) in enumerate(SECRETS)])
@pytest.mark.parametrize("line_break", ["\\n", "\n"])
def test_each_row_masks_its_secret_and_not_its_neighbour(row: list[str], line_break: str) -> None:
    """Masked once it is found no more; a record of it is looked at, also where JSON is spelt as HTML likes it."""
    kind, secret, other, *_ = row
    text = f"Please use {spelt(secret)} here.".replace("\\n", line_break)
    kinds: list[str] = []
    masked = without_secrets(text, kinds.append)
    escaped = encode(said(1, text, app="a", user="u", session="s")).replace(b"=", rb"\u003d").replace(b"/", rb"\/")

    assert kinds == [kind]
    assert f"[{kind}]" in masked
    assert not any(part in masked for part in re.findall(r"[\w!$]*B3dE6gH9[\w!$]*|[0-9a]{20,}", spelt(secret)))
    assert (masked.startswith("Please use "), masked.endswith(" here.")) == (True, True)
    assert without_secrets(masked, kinds.append) == masked
    assert kinds == [kind]
    assert without_secrets(spelt(other), kinds.append) == spelt(other)
    assert MAY_HOLD_ONE.search(encode(said(1, text, app="a", user="u", session="s")))
    assert MAY_HOLD_ONE.search(escaped)


@pytest.mark.timeout(60)
def test_no_text_takes_long() -> None:
    """The largest content of what begins like each secret, again and again: none takes quadratic time."""
    for _, secret, *_ in SECRETS:
        for part in {spelt(secret)[:length] for length in (5, 12, 30)}:
            text = part * (262_144 // len(part))
            MAY_HOLD_ONE.search(text.encode())
            without_secrets(text, lambda _: None)


def test_turns_are_decoded_without_secrets_unless_the_policy_keeps_them() -> None:
    """Content, metadata, added fields; ids, figures and a refused record's own bytes stay."""
    turn = msgspec.structs.replace(said(1, SAID, app="a", user=TOKEN, session="s"), metadata={"note": KEY})
    refused = encode(turn).replace(b'"turn":1', b'"turn":"one"')
    taken = decode([record(TURNS, encode(turn)), record(TURNS, refused)], Policy())
    (event,) = [each.event for each in taken.arrivals]

    assert event == msgspec.structs.replace(turn, content=MASKED, metadata={"note": "[api_key]"})
    assert [letter.value for letter in taken.dead] == [refused]
    assert [each.event for each in decode([record(TURNS, encode(turn))], KEPT).arrivals] == [turn]


def test_a_record_without_a_secret_is_not_touched() -> None:
    """The very same bytes: its risk and all that is made of it cannot change."""
    value = encode(said(1, "See https://example.org/a?b=c, it costs 5-6 €.", app="a", user="u", session="s"))

    assert RecordMasker(MaskingPolicy(), personal=False).value(TURNS, value) is value
    assert masker_of(KEPT.masking) is None


async def test_nothing_that_is_made_of_a_turn_has_its_secret(tmp_path: Path) -> None:
    """Outputs, forwarded turns, facts, episodes, memories, projects and all state, through all folds."""
    world = World(tmp_path, PLAYED_AT)
    whose = {"role": "user", "app_id": "a", "user_id": "u", "project_id": "p"}
    for turn in range(12):
        world.now += timedelta(seconds=20)
        text = f"We decided to use {KEY} for payments." if turn % 2 else SAID
        world.say(TURNS.name, "s", "turn", session_id="s", turn=turn, content=text, **whose)
    world.say(TURNS.name, "s", "session_ended", session_id="s", reason="bye", app_id="a")
    await world.fold()
    made = world.written(TURNS.name)
    words = "\n".join(line for lines in made.values() for line in lines)

    assert {"topics/commands.v1", "topics/facts.v1", "topics/profiles.v1", "topics/projects.v1"} <= made.keys()
    assert "[api_key]" in words
    assert [secret for secret in (KEY, TOKEN, PASSWORD) if secret in words] == []


def test_the_archive_lands_no_secret() -> None:
    """Turns, bytes of dead letters and of records that are no JSON; all else of these stays, unlike personal data."""
    mask = RecordMasker(MaskingPolicy(), personal=False)
    letter = msgspec.structs.replace(example(DeadLetter), value=f"ann@example.org {SAID}".encode())
    turn = encode(said(1, SAID, app="a", user="u", session="s"))
    landed = []
    for topic, value in ((TURNS, turn), (DEAD_LETTERS, encode(letter)), (PROFILES, b"{\xff" + SAID.encode())):
        landing = land_all(topic, topic.name, mask.records(topic, [record(topic, value)]), IntakePolicy())
        landed += [*landing.rows.values(), *landing.skipped]
    kept = repr(landed)

    assert all("[api_key]" in repr(each) for each in landed)
    assert f"ann@example.org {MASKED}" in kept
    assert [secret for secret in (KEY, TOKEN, PASSWORD) if secret in kept] == []


@pytest.mark.parametrize(
    ("policy", "text", "hidden", "masked"),
    [
        (MaskingPolicy(secrets=True), SAID, (KEY, TOKEN, PASSWORD), MASKED),
        (MaskingPolicy(at_index=True), PII, PERSONAL, PII_MASKED),
    ],
    ids=["secrets", "personal data"],
)
@pytest.mark.parametrize("asked_for", [True, False])
async def test_the_index_holds_what_is_masked_only_where_the_policy_asks_for_it(
    tmp_path: Path, policy: MaskingPolicy, text: str, hidden: tuple[str, ...], masked: str, *, asked_for: bool
) -> None:
    """Turns, memories of apps, items of projects, also of what an earlier release wrote: in payloads and by words."""
    store = Noting()
    wanted = policy if asked_for else MaskingPolicy(secrets=False)
    role = Quiet(store, tmp_path, Policy(masking=wanted))
    turn = said(1, text, app="a", user="u", session="s")
    await role.take(turn, memory(1, text), project_changed(remembered(1, text)))
    collections = (await store._client.get_collections()).collections
    held = ""
    for each in collections:
        points, _ = await store._client.scroll(each.name, limit=100, with_payload=True, with_vectors=True)
        held += "".join(f"{point.payload}{point.vector}" for point in points)
    await store.close()

    assert len(collections) >= 3
    assert [each in held for each in (*hidden, masked)] == [not asked_for] * len(hidden) + [asked_for]


async def test_a_text_that_was_kept_unmasked_is_the_same_as_its_masked_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands may be older than the rule by which texts are kept by now: no number is used twice."""
    store, letters = Noting(), LetterLog()
    for masks in (False, True):
        role = Quiet(store, tmp_path, Policy(masking=MaskingPolicy(secrets=masks)))
        monkeypatch.setattr(role, "_producer", letters)
        await role.take(said(1, SAID, app="a", user="u", session="s"), first=3 + masks)
    await store.close()

    assert letters.written == []


def test_secrets_count_for_the_digest_only_where_they_are_kept() -> None:
    """Policies of earlier releases keep their digests; a fold that keeps secrets is another fold."""
    assert b"masking" not in live_policy(Policy())
    assert b'"masking":{"secrets":false}' in live_policy(KEPT)
