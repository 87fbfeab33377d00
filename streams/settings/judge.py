"""Settings of judges: slower models that read the last turns of an alert. Part of `streams.settings`."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

_NONE = timedelta(0)


class ModelServerSettings(BaseModel):
    """A model behind OpenAI's API."""

    base_url: str | None = Field(None, description="With the version, e.g. http://127.0.0.1:11434/v1.")
    model: str = Field("", description="As the server calls it.")
    api_key: SecretStr | None = Field(None, description="Where the server asks for one.")


class GuardServerSettings(ModelServerSettings):
    """A guard model behind OpenAI's API, where `judge.kind` is `openai` (extra `llm`). Text of turns goes there."""

    form: Literal["instructed", "guard"] = Field(
        "instructed",
        description="`instructed`: any chat model, which is told what to judge and answers in JSON. `guard`: Llama "
        "Guard and its like, whose template has the question; they get the conversation as it is.",
    )
    json_mode: Literal["json_schema", "json_object", "text"] = Field(
        "json_schema", description="How an instructed model is told to answer in JSON."
    )
    top_logprobs: int = Field(
        5,
        ge=0,
        le=20,
        description="Words that a guard model could have begun with, asked for to have a probability. 0 for servers "
        "that refuse to say.",
    )
    sure: float = Field(0.95, gt=0.5, lt=1, description="Probability that a verdict without any counts as.")


class ClassifierSettings(BaseModel):
    """A text classifier in ONNX, where `judge.kind` is `onnx` (extra `e5`, for onnxruntime)."""

    model: Path | None = Field(None, description="The ONNX file.")
    tokenizer: Path | None = Field(None, description="Its tokenizer.json; none: beside the model.")
    harmful: str = Field(
        "1", description="Number of the class that counts, or its label in the config.json beside the model."
    )
    max_tokens: int = Field(512, ge=8, le=8_192, description="Of the classifier's window; a longer turn takes several.")
    activation: Literal["softmax", "sigmoid"] = Field(
        "softmax", description="What makes probabilities of its logits: `sigmoid` where it has several labels at once."
    )
    batch: int = Field(16, ge=1, description="Windows in one run of the model.")


class JudgeSettings(BaseModel):
    """A slower model that reads the last turns of each alert and updates it with its answer; off unless one is named.

    No alert waits for it: one is raised by the built-in judgement, and changes once the answer is there.
    """

    kind: Literal["off", "openai", "onnx"] = Field("off", description="Which judge; its section says the rest.")
    timeout: timedelta = Field(timedelta(seconds=10), gt=_NONE, description="Of a judgement, all tries together.")
    at_once: int = Field(4, ge=1, description="Judgements under way at once.")
    max_age: timedelta = Field(
        timedelta(minutes=10),
        gt=_NONE,
        description="Requests that have waited for longer are passed over: whoever was alerted has looked by then.",
    )
    openai: GuardServerSettings = GuardServerSettings()
    onnx: ClassifierSettings = ClassifierSettings()
