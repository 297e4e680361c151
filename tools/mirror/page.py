"""Serves the metrics of a process of threads to Prometheus."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from kafka08.metrics.clients import ClientCollector
from kafka08.network.http import HttpServer
from kafka08.runtime import GeventRuntime

_HOST = "127.0.0.1"


def serve(port: int, clients: ClientCollector, option: str) -> int:
    """Until the process ends, on this machine alone. Returns the port. Raises KafkaError if it
    cannot be had. ``option`` is for the message."""
    bound: Future[int] = Future()
    # A daemon with an event loop of its own.
    threading.Thread(
        target=_serve, name="metrics", args=(port, clients, option, bound), daemon=True
    ).start()
    return bound.result()


def _serve(port: int, clients: ClientCollector, option: str, bound: Future[int]) -> None:
    from prometheus_client import REGISTRY, make_wsgi_app

    try:
        server = HttpServer(_HOST, port, make_wsgi_app(REGISTRY), name=option)
        REGISTRY.register(clients)
        server.start()
    except BaseException as error:
        bound.set_exception(error)
        return
    bound.set_result(server.port)
    GeventRuntime().event().wait()
