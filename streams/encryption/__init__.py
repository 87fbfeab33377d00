"""Encryption at rest: what people said, under a key of its app. Why so: `deploy/decisions/0015-encryption.md`."""
