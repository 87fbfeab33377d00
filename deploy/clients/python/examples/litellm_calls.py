"""LiteLLM: whatever model is called, what is asked and answered is remembered, and comes back in a later call."""

import sys

import litellm

from turntide import Memory
from turntide.litellm import TurntideLogger

memory = Memory(app="litellm")
litellm.callbacks = [TurntideLogger(memory)]
question = " ".join(sys.argv[1:]) or "I live in Oslo."
known = memory.context(question, user_id="u-1").prompt
answered = litellm.completion(
    "openai/any",
    [{"role": "system", "content": known}, {"role": "user", "content": question}],
    metadata={"user_id": "u-1", "session_id": "s-1"},
    mock_response="You live in Oslo." if "location: Oslo" in known else "Noted.",  # stands in for a language model
)
print(answered.choices[0].message.content)
