"""Who is let in, and what they may read."""

import pytest
from pydantic import SecretStr, ValidationError

from models.errors import ConfigurationError
from streams.http import security
from streams.http.health import serve
from streams.http.problems import Problem
from streams.http.security import Caller, access_of, digest_of
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_apps import memory
from tests.support.api_doubles import Served, bearer, called, fact, settings_of, token_of
from tests.support.data_files import data_file
from tests.support.http_api import api_of

ASKED = {"user_id": "u", "query": "x"}
ADMIN = "token-of-the-operator"


@pytest.fixture
async def served() -> Served:
    """A role with tokens for two apps."""
    made = Served(settings=settings_of("a", "b"))
    made.users.known_facts += [fact("name", "Alex"), fact("name", "Bo", app="b")]
    return made


@pytest.mark.behaviour("app-27")
@pytest.mark.parametrize(
    "given",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Basic dTpw"],
        [f"Token {token_of('a')}"],
        [token_of("a")],
        ["Bearer x"],
        [f"Bearer {token_of('a')}x"],
        [f"Bearer {token_of('a')[:-1]}"],
        ["Bearer \xff\xfe"],
        [f"Bearer {token_of(app)}" for app in ("a", "b")],  # nobody chooses which of them counts
    ],
)
async def test_nobody_reads_without_a_known_token(served: Served, given: list[str]) -> None:
    """401 with the challenge of RFC 6750, before the body is looked at."""
    async with served.client() as client:
        headers = [(b"Authorization", each.encode("latin-1")) for each in given]
        answer = await client.post("/v1/retrieve", content=b"{", headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"].startswith('Bearer realm="turntide"')
    assert answer.json()["code"] == "unauthorized"


async def test_a_websocket_is_closed() -> None:
    """A route of that kind would otherwise stand open for want of a rule."""
    assert [{"type": "websocket.close", "code": 1008}] == await called(api_of(), type="websocket", path="/v1/live")


async def test_metrics_beyond_loopback_take_an_admin_token() -> None:
    """They count all tenants together."""
    roles = (TokenRole.OPERATOR, TokenRole.ADMIN)
    settings = settings_of("a", host="0.0.0.0")  # noqa: S104 - never listened on
    settings.tokens.extend(ApiToken(token=SecretStr(f"{ADMIN}-{role}"), apps=["ops"], role=role) for role in roles)
    made = Served(settings=settings)
    async with made.client() as client:
        answers = [
            await client.get("/metrics", headers=headers)
            for headers in ({}, bearer("a"), *({"Authorization": f"Bearer {ADMIN}-{role}"} for role in roles))
        ]

    assert [401, 403, 403, 200] == [answer.status_code for answer in answers]


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8702", 200), ("localhost", 200), ("[::1]:8702", 200), ("[::1]", 200), ("evil.example:8702", 421)],
)
async def test_without_tokens_only_this_machine_is_answered(host: str, status: int) -> None:
    """A page elsewhere whose name points here (DNS rebinding) sends its own name as the host."""
    made = Served(settings=HttpSettings())
    async with made.client({"Host": host}) as client:
        answer = await client.post("/v1/retrieve", json=ASKED)

    assert answer.status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.7", "memory.example.org"])  # noqa: S104
def test_a_role_that_others_reach_needs_tokens(host: str) -> None:
    """It does not start, and the message says what to set."""
    with pytest.raises(ConfigurationError, match=r"http\.tokens is empty.*TURNTIDE_HTTP__TOKENS"):
        access_of(HttpSettings(host=host))


async def test_an_app_that_everybody_reads_is_served_on_loopback_only() -> None:
    """Also where whoever made the app forgot to ask who may read it."""
    with pytest.raises(ConfigurationError, match=r"refused to listen on 0\.0\.0\.0"):
        async with serve(api_of(), "0.0.0.0"):  # noqa: S104
            pass


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (["sixteen letters!"], r"http\.tokens\.0"),
        (["ümlaute-are-no-token"], r"http\.tokens\.0"),
        (["tab\tin-the-token!!"], r"http\.tokens\.0"),
        ([ADMIN, ADMIN], r"http\.tokens\.1.*repeats"),
        (["guessable"], "at least 16"),
    ],
)
def test_a_token_that_is_unfit_is_refused(tokens: list[str], told: str) -> None:
    """No header can hold it, somebody else has it, or it can be guessed; without printing it."""
    with pytest.raises((ConfigurationError, ValidationError), match=told) as refused:
        access_of(HttpSettings(tokens=[ApiToken(token=SecretStr(token)) for token in tokens]))

    assert tokens[0] not in str(refused.value)


def test_every_token_is_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of an answer must not tell which token was near, nor how near."""
    compared: list[bytes] = []

    def noting(known: bytes, given: bytes) -> bool:
        compared.append(known)
        return known == given

    monkeypatch.setattr(security, "compare_digest", noting)
    access = access_of(settings_of("a", "b", "c"))
    holders = [access.holder_of(digest_of(token)) for token in (token_of("a"), token_of("c"), "none")]

    assert holders == [Caller(frozenset({"a"})), Caller(frozenset({"c"})), None]
    assert len(compared) == 9


def test_a_caller_of_several_apps_searches_in_all_of_them() -> None:
    """Where a request names none; a look-up then leaves the app open. Outside of a request nobody asks."""
    several, everybody = Caller(frozenset({"b", "a"})), Caller()

    assert (several.app_of(None), several.apps_of(None), several.apps_of("b")) == (None, ("a", "b"), ("b",))
    assert (everybody.app_of(None), everybody.apps_of(None), everybody.app_of("x")) == (None, None, "x")
    with pytest.raises(Problem, match="forbidden_app"):
        several.apps_of("c")
    with pytest.raises(Problem, match="unauthorized"):
        security.caller()


def test_a_token_without_a_name_has_one_in_the_audit() -> None:
    """Its place in the settings: nobody is let in whom the audit cannot tell from others."""
    tokens = [ApiToken(token=SecretStr(f"{ADMIN}-{n}"), name=name) for n, name in enumerate(("desk", ""))]

    assert ["desk", "http.tokens.1"] == [holder.name for _, holder in access_of(HttpSettings(tokens=tokens)).callers]


@pytest.fixture(scope="module")
def guarded() -> Served:
    """A role with a token that is no admin's, one of an admin of app `a`, and one of an admin of all apps."""
    tokens = [ApiToken(token=SecretStr("a-token-of-an-admin-of-all"), role=TokenRole.ADMIN, name="ops")]
    plain, admin = settings_of("a"), settings_of("admin-of-a", admin=True)
    (bound,) = admin.tokens
    tokens += [*plain.tokens, bound.model_copy(update={"apps": ["a", "c"]})]
    made = Served(settings=HttpSettings(tokens=tokens))
    made.apps.known += [memory(1, "secret", app=app) for app in ("a", "b")]
    return made


@pytest.mark.behaviour("app-27")
async def test_an_admin_of_some_apps(guarded: Served) -> None:
    """Its own apps only: to read, to write, and to share with; its name is in the audit."""
    async with guarded.client(bearer("admin-of-a")) as client:
        own = await client.get("/apps/a/memories")
        other = [await client.request(method, "/apps/b/memories") for method in ("GET", "DELETE")]
        shared = [await client.put("/apps/a/memories/1", json={"sharedWith": [app]}) for app in ("b", "c")]

    assert (own.status_code, [each.status_code for each in other]) == (200, [403, 403])
    assert [each.status_code for each in shared] == [403, 200]
    assert [(each.app_id, each.by) for each in guarded.apps.sent] == [("a", "admin-admin-of-a")]


_JSON = {"Content-Type": "application/json"}
_OWN = "http://127.0.0.1:8702"


@pytest.mark.parametrize("settings", [HttpSettings(), settings_of("a", admin=True)], ids=["none", "tokens"])
@pytest.mark.parametrize(
    ("page", "status"),
    [
        ({}, 200),
        ({"Origin": _OWN}, 200),
        ({"Origin": _OWN, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "https://memory.example", "Sec-Fetch-Site": "same-origin"}, 200),  # a proxy renames the host
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:8703"}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "https://127.0.0.1"}, 403),
        ({"Origin": "http://localhost:8702"}, 403),
        ({"Origin": "http://127.0.0.1:8703", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": _OWN, "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_a_page_of_another_site_writes_nothing(settings: HttpSettings, page: dict[str, str], status: int) -> None:
    """A browser would send it without asking; own pages and programs may. Nothing of it is carried out."""
    made = Served(settings=settings)
    made.apps.known.append(memory(1, "kept"))
    headers = {"Host": "127.0.0.1:8702", **bearer("a"), **_JSON, **page}
    async with made.client(headers) as client:
        answer = await client.post("/apps/a/uninstall", content='{"purgeMemories": true}')
        others = [
            (await client.request(method, "/apps/a/memories/1", headers=page)).status_code
            for method in ("PUT", "PATCH", "DELETE")
        ]
        read = await client.get("/apps/a/memories")

    assert (answer.status_code, read.status_code) == (status, 200)
    assert len(made.apps.sent) == (2 if status == 200 else 0)
    assert ([403] * 3 == others) is (status == 403)


@pytest.mark.parametrize(("headers", "status"), data_file("api_security")["bodies"])
async def test_a_body_is_json_by_its_type(served: Served, headers: dict[str, str], status: int) -> None:
    """A page of another site may send forms and plain texts without asking, JSON it may not."""
    async with served.client(bearer("a") | headers) as client:
        answer = await client.post("/v1/retrieve", content=b'{"user_id": "u", "query": "x"}')
    async with served.client(bearer("a")) as client:
        bare = await client.post("/v1/projects/web/consolidate")

    assert answer.status_code == status
    assert bare.status_code == 403  # no admin; without a body there is no type to ask for


@pytest.mark.parametrize("path", ["/v1/retrieve", "/livez", "/v1/nowhere"])
async def test_a_body_has_one_length(served: Served, path: str) -> None:
    """Of two a proxy and this server could take another each, and read another request between."""
    lengths = [(b"content-length", b"3"), (b"transfer-encoding", b"chunked")]
    head, *_ = await called(served.app, method="POST", path=path, headers=[(b"host", b"127.0.0.1"), *lengths])

    assert head["status"] == 400
    assert (b"connection", b"close") in head["headers"]
