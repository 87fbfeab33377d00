"""A worker's state: tables per partition, written through to a compacted changelog and rebuilt from it."""
