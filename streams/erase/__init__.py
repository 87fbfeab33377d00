"""Forgetting somebody everywhere: state, topics, vectors and archive, with a proof (design §5)."""
