"""Commands of those who run Turntide: broker, topics, workers, doctor, migration, monitoring."""
