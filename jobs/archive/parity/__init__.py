"""Parity: the archived outputs of sessions against those that the stream's own fold makes of the archived inputs."""
