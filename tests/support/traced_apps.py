"""Applications that are traced by the real instrumentations, each in an environment of its own, with a scripted model.

`python -m tests.support.traced_apps` makes `tests/data/otlp` anew: what they send, as it comes.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.http_server import Request, answering

HERE = Path(__file__).parent / "traced_scripts"
SENT = Path(__file__).parents[1] / "data" / "otlp"
_SDK = ("opentelemetry-distro", "opentelemetry-exporter-otlp-proto-http==1.45.2", "openai==3.57.0", "httpx")
_OLD = ("opentelemetry-distro<0.58b0", "opentelemetry-exporter-otlp-proto-http<1.37", "openai<2")
_GRAPH = ("opentelemetry-exporter-otlp-proto-http==1.45.2", "langgraph==1.2.24", "langchain-openai==1.7.4")
_LATEST = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_V2 = ("opentelemetry-instrumentation-openai-v2==2.4b0", "opentelemetry-util-genai==1.1b0")


class TracedApp(NamedTuple):
    """How one is run.

    Attributes:
        packages: What traces it.
        script: The application.
        environment: How it is told what to trace.
    """

    packages: tuple[str, ...]
    script: str = "chatbot.py"
    environment: Mapping[str, str] = MappingProxyType({})


APPS = {
    "genai-spans": TracedApp((*_V2, *_SDK), environment={**_LATEST, _CONTENT: "span_only"}),
    "genai-details": TracedApp((*_V2, *_SDK), environment={**_LATEST, _CONTENT: "event_only"}),
    "genai-messages": TracedApp(
        ("opentelemetry-instrumentation-openai-v2==2.1b0", *_OLD), environment={_CONTENT: "true"}
    ),
    "openllmetry": TracedApp(("opentelemetry-instrumentation-openai==0.62.4", *_SDK)),
    "openllmetry-numbered": TracedApp(("opentelemetry-instrumentation-openai==0.40.14", *_OLD)),
    "openinference": TracedApp(
        ("openinference-instrumentation-openai==0.1.66", *_SDK), environment={"SESSION": "openinference"}
    ),
    "langgraph-openinference": TracedApp(
        ("openinference-instrumentation-langchain==0.1.80", *_GRAPH), "graph.py", {"TRACED_BY": "openinference"}
    ),
    "langgraph-openllmetry": TracedApp(
        ("opentelemetry-instrumentation-langchain==0.62.4", *_GRAPH), "graph.py", {"TRACED_BY": "openllmetry"}
    ),
}


Said = list[tuple[str, str]]
"""Role and text of each turn."""
_HELP = ("system", "You help customers of a shop.")


def conversations(name: str) -> list[Said]:
    """What is said in each conversation of an application, in the order of their beginnings."""
    where = '{"where": "Lyon", "parcel": "P-7"}' if name.startswith("langgraph") else '{"where": "Lyon"}'
    called = ("tool", '{"name":"track","arguments":{"parcel":"P-7"}}')
    first: Said = [
        *[_HELP, ("user", "Good morning."), ("assistant", "Answer 0 to: Good morning.")],
        *[("user", "Where is my parcel?"), called, ("tool", where), ("assistant", f"Answer 2 to: {where}")],
        *[("user", "yes"), ("assistant", "Answer 3 to: yes"), ("user", "yes"), ("assistant", "Answer 4 to: yes")],
    ]
    other: Said = [
        _HELP,
        ("user", "Hello from another thread."),
        ("assistant", "Answer 0 to: Hello from another thread."),
    ]
    return [first, other] if name.startswith("langgraph") else [first]


def run(app: TracedApp, endpoint: str, model_url: str) -> None:
    """Run an application to its end.

    Args:
        app: Which.
        endpoint: Where it sends what it traced.
        model_url: Where its model answers.
    """
    packages = [word for package in app.packages for word in ("--with", package)]
    launcher = [] if app.script == "graph.py" else ["opentelemetry-instrument"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "VIRTUAL_ENV"))}
    environment |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{model_url}/v1", "OTEL_SERVICE_NAME": "shop"}
    environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **app.environment}
    if launcher:
        environment |= {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_METRICS_EXPORTER": "none"}
    command = ["uv", "run", "--quiet", "--no-project", "--python", sys.executable, *packages, *launcher]
    subprocess.run([*command, "python", HERE / app.script], env=environment, check=True, timeout=280)  # noqa: S603


@contextmanager
def scripted_model() -> Iterator[str]:
    """Address of a model that answers what was said last, and tracks a parcel when it hears of one."""

    def answer(request: Request) -> None:
        asked = json.loads(request.body())
        head = {"id": "chat-1", "created": 1, "model": asked["model"]}
        if asked.get("stream"):
            chunks = [{**head, "object": "chat.completion.chunk", "choices": [each]} for each in _streamed(asked)]
            lines = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks)
            request.reply(200, f"{lines}data: [DONE]\n\n".encode(), {"content-type": "text/event-stream"})
            return
        choice = {"index": 0, "finish_reason": "stop", "message": _message(asked)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        request.reply(200, json.dumps(whole).encode(), {"content-type": "application/json"})

    with answering(answer) as url:
        yield url


def _message(asked: dict[str, Any]) -> dict[str, Any]:
    last, answers = asked["messages"][-1], sum(each["role"] == "assistant" for each in asked["messages"])
    if "parcel?" in last["content"]:
        function = {"name": "track", "arguments": '{"parcel": "P-7"}'}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c-1", "type": "function", "function": function}],
        }
    return {"role": "assistant", "content": f"Answer {answers} to: {last['content']}"}


def _streamed(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for word in _message(asked)["content"].split():
        yield {"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}
    yield {"index": 0, "delta": {}, "finish_reason": "stop"}


def sent_by(name: str) -> Iterator[tuple[str, bytes]]:
    """What an application sent, as it is kept: signal and protobuf, in its order."""
    for path in sorted(SENT.glob(f"{name}.*.pb.gz")):
        yield path.name.split(".")[2], gzip.decompress(path.read_bytes())


def main() -> None:
    """Run all, and keep what each sends of traces and logs."""
    for name, app in APPS.items():
        requests: list[tuple[str, bytes]] = []

        def keep(request: Request, requests: list[tuple[str, bytes]] = requests) -> None:
            requests.append((request.path.removeprefix("/v1/"), request.body()))
            request.reply(200, b"", {"content-type": "application/x-protobuf"})

        with answering(keep) as endpoint, scripted_model() as model_url:
            run(app, endpoint, model_url)
        for old in SENT.glob(f"{name}.*"):
            old.unlink()
        for number, (signal, body) in enumerate(requests):
            (SENT / f"{name}.{number}.{signal}.pb.gz").write_bytes(gzip.compress(body, mtime=0))


if __name__ == "__main__":
    main()
