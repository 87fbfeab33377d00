"""Settings of judges: slower models that read the last turns of an alert. Part of `streams.settings`."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

_NONE = timedelta(0)


class ModelServerSettings(BaseModel):
    """A model behind OpenAI's API."""

    base_url: str | None = Field(None, description="Address with version, e.g. http://127.0.0.1:11434/v1.")
    model: str = Field("", description="Name of the model on the server.")
    api_key: SecretStr | None = Field(None, description="API key, if the server needs one.")


class GuardServerSettings(ModelServerSettings):
    """A guard model behind OpenAI's API, where `judge.kind` is `openai` (extra `llm`). Text of turns goes there."""

    form: Literal["instructed", "guard"] = Field(
        "instructed",
        description="`instructed`: any chat model, which gets instructions and answers in JSON. `guard`: Llama "
        "Guard and similar models, whose template has the question; they get the unchanged conversation.",
    )
    json_mode: Literal["json_schema", "json_object", "text"] = Field(
        "json_schema", description="How JSON is requested from an instructed model."
    )
    top_logprobs: int = Field(
        5,
        ge=0,
        le=20,
        description="Number of likely first tokens to request from a guard model, for a probability. 0 for "
        "servers that do not support it.",
    )
    sure: float = Field(0.95, gt=0.5, lt=1, description="Probability of a verdict without one.")


class ClassifierSettings(BaseModel):
    """A text classifier in ONNX, where `judge.kind` is `onnx` (extra `e5`, for onnxruntime)."""

    model: Path | None = Field(None, description="ONNX file of the classifier.")
    tokenizer: Path | None = Field(None, description="Its tokenizer.json. Default: in the model's folder.")
    harmful: str = Field(
        "1", description="Number of the harmful class, or its label in the config.json of the model's folder."
    )
    max_tokens: int = Field(512, ge=8, le=8_192, description="Size of the window; a longer turn needs several.")
    activation: Literal["softmax", "sigmoid"] = Field(
        "softmax", description="Function from logits to probabilities: `sigmoid` if several labels can apply at once."
    )
    batch: int = Field(16, ge=1, description="Windows in one run of the model.")


class JudgeSettings(BaseModel):
    """A slower model that reads the last turns of each alert and updates it with its answer; off unless one is named.

    No alert waits for it: one is raised by the built-in judgement, and changes once the answer is there.
    """

    kind: Literal["off", "openai", "onnx"] = Field("off", description="Kind of judge; its section configures it.")
    timeout: timedelta = Field(timedelta(seconds=10), gt=_NONE, description="Time limit of all tries together.")
    at_once: int = Field(4, ge=1, description="Concurrent judgements.")
    max_age: timedelta = Field(
        timedelta(minutes=10),
        gt=_NONE,
        description="Older requests are skipped: by then somebody has looked at the alert.",
    )
    openai: GuardServerSettings = GuardServerSettings()
    onnx: ClassifierSettings = ClassifierSettings()
