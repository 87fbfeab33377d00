"""What takes longer to load than most tests take: the default embedder, once a process."""

from functools import cache

from streams.inference.wordllama import WordLlamaEmbedder

loaded_embedder = cache(WordLlamaEmbedder)
