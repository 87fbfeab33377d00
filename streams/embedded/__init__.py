"""A project's memory within one process, without Kafka."""
