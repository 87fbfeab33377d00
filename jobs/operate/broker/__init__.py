"""A real Apache Kafka on this machine, without Docker or an installed Java: start reading at `local_kafka.py`."""
