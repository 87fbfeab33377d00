"""What is said is remembered."""

from turntide import Memory

memory = Memory(app="shop")
memory.add("My name is Alex, and I prefer short answers.", user_id="u-1", wait="visible")
print(memory.context("What is my name?", user_id="u-1").prompt)
