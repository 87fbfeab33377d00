"""Which judge the settings name."""

from __future__ import annotations

from models.errors import ConfigurationError
from streams.ports import Judge
from streams.settings.judge import ClassifierSettings, GuardServerSettings, JudgeSettings


def configured_judge(settings: JudgeSettings) -> Judge | None:
    """The judge of alerts; None where it is off.

    Raises:
        ConfigurationError: What it needs is not named, is missing or does not fit.
    """
    if settings.kind == "openai":
        return _guard(settings.openai, settings)
    return _classifier(settings.onnx) if settings.kind == "onnx" else None


def _guard(server: GuardServerSettings, settings: JudgeSettings) -> Judge:
    if not server.base_url or not server.model:
        raise ConfigurationError("judge.kind is openai: name judge.openai.base_url and …model")
    from streams.inference.llm_client import OpenAiLlm  # noqa: PLC0415 - likewise
    from streams.inference.openai_judge import OpenAiJudge  # noqa: PLC0415 - extra `llm`

    llm = OpenAiLlm(
        server.base_url,
        server.model,
        server.api_key,
        settings.timeout,
        json_mode=server.json_mode,
        section="judge.openai",
    )
    return OpenAiJudge(llm, form=server.form, top_logprobs=server.top_logprobs, sure=server.sure)


def _classifier(named: ClassifierSettings) -> Judge:
    if named.model is None:
        raise ConfigurationError("judge.kind is onnx: name judge.onnx.model, an ONNX text classifier")
    from streams.inference.onnx_judge import OnnxJudge  # noqa: PLC0415 - loads weights

    return OnnxJudge(
        named.model,
        named.tokenizer,
        harmful=named.harmful,
        max_tokens=named.max_tokens,
        activation=named.activation,
        batch=named.batch,
    )
