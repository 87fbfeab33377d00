"""Language models, and what they are asked for. Only `client` and `failures` need the extra `llm`."""
