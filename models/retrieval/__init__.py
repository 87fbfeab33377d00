"""Finding what a conversation said: terms, fusion of rankings, and the texts that go into a prompt."""
