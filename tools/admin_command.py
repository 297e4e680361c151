"""Shared by the admin commands: their ZooKeeper session, and failures printed on stdout.

A command that fails exits 0, as 0.8.2.2 does, or 1 with KAFKA_TOOLS_STRICT_EXIT=1 in the
environment, as later releases do.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType

from kafka08.errors import KafkaError
from kafka08.settings.zookeeper import ZooKeeperSecurity
from kafka08.zookeeper import access_of
from tools.options import Arguments
from zk.client import ZkClient

STRICT_EXIT = "KAFKA_TOOLS_STRICT_EXIT"
NOTHING: Mapping[str, str] = MappingProxyType({})
COMMAND_CONFIG = """
--command-config <command config property file>  A file of settings for the connections to brokers:
    security.protocol, ssl.*, sasl.*.
"""
ZK_TLS_CONFIG_FILE = """
--zk-tls-config-file <ZooKeeper TLS configuration>  A file of settings for the connection to
    ZooKeeper: zookeeper.ssl.*, zookeeper.jaas.config and zookeeper.set.acl.
"""
_ZK_TIMEOUT_MS = 30000


def zookeeper(
    urls: str,
    security: ZooKeeperSecurity,
    session_timeout_ms: int = _ZK_TIMEOUT_MS,
    connection_timeout_ms: int = _ZK_TIMEOUT_MS,
) -> ZkClient:
    """A client for ``--zookeeper``, not yet started. Raises ConfigError."""
    return ZkClient(
        urls,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=connection_timeout_ms,
        create_chroot=False,
        access=access_of(security),
    )


def connect(urls: str, security: ZooKeeperSecurity) -> ZkClient:
    """A started client for ``--zookeeper``. Raises ZkConnectionError, ConfigError."""
    return zookeeper(urls, security).start()


@contextmanager
def session(
    args: Arguments, option: str = "zookeeper", given: Mapping[str, str] = NOTHING
) -> Iterator[ZkClient]:
    """With the ZooKeeper that ``option`` names, and the settings of ``zookeeper_config``. Raises
    what that does, and ZkConnectionError."""
    with closing(connect(args.value(option), zookeeper_config(args, given))) as client:
        yield client


def run(work: Callable[[], int | None], failure: str) -> int:
    """The exit status of ``work``. A failure goes to stdout: ``failure`` and the stack trace."""
    try:
        return work() or 0
    except BrokenPipeError:
        raise
    except Exception as error:
        print(failure.format(error=error))
        print(stack_trace(error))
        return failure_status()


def failure_status() -> int:
    return 1 if os.environ.get(STRICT_EXIT) == "1" else 0


def zookeeper_config(args: Arguments, given: Mapping[str, str] = NOTHING) -> ZooKeeperSecurity:
    """The settings of ``--zk-tls-config-file``, over those of ``given``. Raises ConfigError,
    FileNotFoundError."""
    return ZooKeeperSecurity.from_properties({**given, **args.properties("zk-tls-config-file")})


def read_file(path: str) -> bytes:
    """The bytes of a file an option names. Raises OSError in the JVM's words."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise type(error)(f"{path} ({error.strerror})") from None


def stack_trace(error: BaseException) -> str:
    """Like Throwable.printStackTrace: class, message, a frame per line, newline at the end."""
    text = f"{java_class_of(error)}: {error}\n{_frames(error)}"
    if isinstance(error.__cause__, KafkaError):  # others are how Python found out
        text += f"Caused by: {stack_trace(error.__cause__)}"
    return text


def java_class_of(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "java.io.FileNotFoundException"
    return getattr(error, "java_class", type(error).__name__)


def _frames(error: BaseException) -> str:
    return "".join(
        f"\tat {os.path.basename(frame.filename).removesuffix('.py')}.{frame.name}"
        f"({os.path.basename(frame.filename)}:{frame.lineno})\n"
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    )
