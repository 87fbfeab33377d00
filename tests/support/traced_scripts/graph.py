"""A LangGraph application with two threads, traced as the pages of OpenInference and OpenLLMetry say.

Runs in an environment of its own, see `tests.support.traced_apps`. Where spans go it has from
OTEL_EXPORTER_OTLP_ENDPOINT alone.
"""

import os
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
if os.environ["TRACED_BY"] == "openinference":
    from openinference.instrumentation.langchain import LangChainInstrumentor
else:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor as LangChainInstrumentor
LangChainInstrumentor().instrument(tracer_provider=provider)


def track(parcel: str) -> str:
    """Where a parcel is."""
    return f'{{"where": "Lyon", "parcel": "{parcel}"}}'


model = ChatOpenAI(model="scripted").bind_tools([track])


def answer(state: MessagesState) -> dict[str, Any]:
    """Ask the model."""
    return {"messages": [model.invoke([("system", "You help customers of a shop."), *state["messages"]])]}


graph = StateGraph(MessagesState)
graph.add_node("model", answer)
graph.add_node("tools", ToolNode([track]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
app = graph.compile(checkpointer=InMemorySaver())
for thread, said in (
    ("t-1", "Good morning."),
    ("t-2", "Hello from another thread."),
    ("t-1", "Where is my parcel?"),
    ("t-1", "yes"),
    ("t-1", "yes"),
):
    run: Any = {"configurable": {"thread_id": thread}, "metadata": {"user_id": "ana"}}
    app.invoke({"messages": [("user", said)]}, run)
provider.shutdown()
