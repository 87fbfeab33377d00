"""Apache's own REST catalog, for tests: Iceberg's reference server over JDBC, in a Java that listens here alone."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.operate.broker.jars import cache_dir, kafka_jars

_VERSION = "1.10.0"
_JAR = f"org.apache.iceberg:iceberg-open-api:{_VERSION}"
_SHA256 = "99379edef1a65b51c40a63971ffab46d38966821af26ef6224bd217eeacae8d7"
"""The server with all it needs, 212 MB; its own `main` would listen to every network."""
_INSTALL = "the tests of a REST catalog need PySpark's py4j (`uv sync --group spark`) and a Java from 17 to 23"


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """A server whose tables are in the folder, for the length of a block; its address.

    What is missing fails: it must not pass for tested.
    """
    if shutil.which("java") is None:
        pytest.fail(_INSTALL)
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # noqa: PLC0415 - of a group

    jars = kafka_jars(cache_dir().parents[1] / "iceberg" / _VERSION, pins={_JAR: _SHA256})
    port, token = launch_gateway(
        classpath=":".join(map(str, jars)),
        javaopts=["-Xmx512m"],
        die_on_exit=True,
        enable_auth=True,
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
    )
    java = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        server = _server(java, folder)
        server.start()
        yield f"http://127.0.0.1:{server.getConnectors()[0].getLocalPort()}"
        server.stop()
    finally:
        java.shutdown()


def _server(java: Any, folder: Path) -> Any:
    jvm = java.jvm
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{folder}/catalog.sqlite",
        "jdbc.schema-version": "V1",
        "warehouse": f"file://{folder}/warehouse",
    }
    catalog = jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(
        "rest", properties, jvm.org.apache.hadoop.conf.Configuration()
    )
    servlet = jvm.org.apache.iceberg.rest.RESTCatalogServlet(jvm.org.apache.iceberg.rest.RESTCatalogAdapter(catalog))
    context = jvm.org.eclipse.jetty.servlet.ServletContextHandler()
    context.addServlet(jvm.org.eclipse.jetty.servlet.ServletHolder(servlet), "/*")
    server = jvm.org.eclipse.jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
    server.setHandler(context)
    return server
