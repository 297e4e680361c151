"""The command ``kafka.Kafka``: runs a broker, or a unit of brokers, until a signal ends it."""

from __future__ import annotations

import logging
import resource
import socket
import sys
from collections.abc import Callable

from kafka08.errors import ConfigError
from kafka08.message.compression import CodecMissingError, check_codecs
from kafka08.runtime import GeventRuntime
from kafka08.server import optional
from kafka08.server.broker import KafkaServer
from kafka08.settings import properties, unit
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.secret_files import warn_of_passwords
from kafka08.settings.settings import log_overrides

logger = logging.getLogger("kafka.server.KafkaServer")
startable_logger = logging.getLogger("kafka.server.KafkaServerStartable")


def main(argv: list[str]) -> int:
    """``kafka.Kafka server.properties``: serve until SIGTERM or SIGINT; the exit status.

    128 + the signal's number after a clean stop, as the JVM's; 1 when the start fails.
    """
    if len(argv) != 1:
        print(f"USAGE: java [options] {KafkaServer.__name__} server.properties")
        return 1
    try:
        check_codecs()
    except CodecMissingError as error:
        logger.critical("%s", error)
        return 1
    try:
        found = properties.load(argv[0])
        log_overrides(found, BrokerConfig.keys())
        warn_of_passwords(argv[0], found)
        base, members = unit.unit_of(found, socket.gethostname())
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        logger.critical("%s: %s", argv[0], reason)
        return 1
    if len(members) == 1:
        return serve(members[0].config)
    return optional.run_unit(argv[0], base, members)


def serve(config: BrokerConfig, started: Callable[[], object] = bool) -> int:
    """Run the broker in this process; the exit status. ``started`` is called once it serves."""
    _raise_file_limit()
    runtime = GeventRuntime(config.background_threads)
    received = runtime.signals()
    server = KafkaServer(config, runtime)
    try:
        server.start()
    except Exception as error:
        startable_logger.critical(
            "Fatal error during KafkaServerStartable startup. Prepare to shutdown: %s",
            error,
            exc_info=not isinstance(error, ConfigError),
        )
        return 1
    started()
    number = received.get()
    server.shutdown()
    runtime.close()
    sys.stdout.flush()
    return 128 + number


def _raise_file_limit() -> None:
    """Raise the limit of descriptors as far as the system allows: connections and segments need
    them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
