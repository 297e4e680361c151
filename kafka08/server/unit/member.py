"""The command ``kafka.server.UnitMember``: one broker of a unit. Only a supervisor starts it.

Standard input is a socket to the supervisor (``launcher.py``). It gives the broker its properties,
takes the word that the broker has started, and ends when the supervisor has died.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time

from kafka08.errors import ConfigError
from kafka08.server.main import serve
from kafka08.server.unit.launcher import STARTED
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import log_overrides

logger = logging.getLogger("kafka.server.KafkaServer")

_SOCKET = 0
# A clean stop hands leaderships over and flushes logs. After this time the logs are recovered
# instead, by the broker that comes after this one.
_PATIENCE_SECONDS = 60.0


def main(argv: list[str]) -> int:
    """The exit status is that of ``kafka.Kafka``."""
    received = _received() if len(argv) == 2 else b""
    if not received.endswith(b"\n"):
        print("USAGE: only kafka.Kafka starts this class, if broker.processes is above 1")
        return 1
    found: dict[str, str] = json.loads(received)
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    try:
        log_overrides(found, BrokerConfig.keys())
        config = BrokerConfig.from_properties(found)
    except ConfigError as error:
        logger.critical("%s", error)
        return 1
    return serve(config, _tell_start)


def _received() -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        piece = os.read(_SOCKET, 65536)
        if not piece:
            break
        received += piece
    return received


def _tell_start() -> None:
    os.write(_SOCKET, STARTED)


def _end_with_supervisor() -> None:
    """Stop cleanly once the supervisor is gone: its successor will start a broker with this id."""
    try:
        while os.read(_SOCKET, 1):
            pass
    except OSError:  # it died before it read everything
        pass
    logger.error("The supervisor of this broker has died, so the broker stops")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE_SECONDS)
    os._exit(1)
