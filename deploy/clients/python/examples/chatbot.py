"""A chatbot that remembers its user from one run to the next: tell it your name, then ask for it."""

import sys

from turntide import Memory


def scripted(prompt: str, question: str) -> str:
    """Stands in for a language model."""
    return "You are Alex." if "name: Alex" in prompt and "?" in question else "Nice to meet you!"


memory = Memory(app="chatbot")
question = " ".join(sys.argv[1:]) or "Hi, my name is Alex."
known = memory.context(question, user_id="u-1")
answer = scripted(known.prompt, question)
said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
memory.add(said, user_id="u-1", wait="visible")
print(answer)
