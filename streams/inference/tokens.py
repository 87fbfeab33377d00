"""Counters of tokens, by name: about four characters each, or as OpenAI's models count (extra `tokens`)."""

from models.errors import ConfigurationError
from models.retrieval.context_window import TokenCounter
from models.text.words import estimate_tokens

ESTIMATE = "estimate"
TIKTOKEN = "tiktoken:"


def token_counter(name: str = ESTIMATE) -> TokenCounter:
    """The counter of a name.

    Args:
        name: `estimate`, or `tiktoken:` and an encoding, for instance `tiktoken:o200k_base`. Tiktoken downloads an
            encoding's vocabulary at its first use and keeps it (`TIKTOKEN_CACHE_DIR`).

    Raises:
        ConfigurationError: There is no such counter, its package is missing, or its vocabulary cannot be had.
    """
    if name == ESTIMATE:
        return estimate_tokens
    if name.startswith(TIKTOKEN):
        return _tiktoken(name.removeprefix(TIKTOKEN))
    raise ConfigurationError(f"no token counter {name!r}: use {ESTIMATE}, or {TIKTOKEN}o200k_base")


def _tiktoken(encoding: str) -> TokenCounter:
    try:
        import tiktoken  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError("tiktoken is not installed: install `turntide[tokens]`") from error
    try:
        loaded = tiktoken.get_encoding(encoding)
    except ValueError as error:
        raise ConfigurationError(f"tiktoken has no encoding {encoding!r}: {error}") from error
    except OSError as error:  # its HTTP client's errors are such
        raise ConfigurationError(
            f"the vocabulary of {encoding!r} cannot be downloaded: put it into TIKTOKEN_CACHE_DIR, or use "
            f"{ESTIMATE!r} ({type(error).__name__})"
        ) from error
    return lambda text: len(loaded.encode_ordinary(text))
