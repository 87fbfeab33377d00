"""Further listeners of a local broker, on which it asks who somebody is."""

from collections.abc import Mapping

from jobs.shared.role_process import HOST, free_port

SASL = "org.apache.kafka.common.security"


class Listeners:
    """A plain listener, the controller's, and one for each name.

    Args:
        protocols: Kafka's protocol of each name.

    Attributes:
        plain: Port of the plain listener.
        ports: Port of each name.
        properties: What the broker is told of them.
    """

    def __init__(self, protocols: Mapping[str, str]) -> None:
        controller, self.plain = free_port(), free_port()
        self.ports = {name: free_port() for name in protocols}
        places = {"PLAINTEXT": self.plain, **self.ports, "CONTROLLER": controller}
        listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in places.items())
        mapped = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **protocols}
        self.properties: dict[str, str | int] = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in mapped.items()),
        }


def scram(name: str) -> dict[str, str | int]:
    """What lets a listener take SCRAM-SHA-512."""
    listener = f"listener.name.{name.lower()}"
    return {
        f"{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{listener}.scram-sha-512.sasl.jaas.config": f"{SASL}.scram.ScramLoginModule required;",
    }
