"""Starts the process of a broker of a unit, and talks with it.

The process has one end of a socket as its standard input. The other end is the supervisor's alone:
when the supervisor dies, however it dies, the process sees the end of its input.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

from kafka08.log4j import PROCESS
from kafka08.settings.unit import UnitMember

STARTED = b"started\n"
_CLASS = "kafka.server.UnitMember"


def command(launcher: str, path: str, broker_id: int) -> list[str]:
    """The command of a broker. It does not name kafka.Kafka: scripts that stop brokers find the
    supervisor by that name, and it alone is to get their signal."""
    return [sys.executable, "-u", launcher, _CLASS, path, str(broker_id)]


def environment(environ: Mapping[str, str], broker_id: int) -> dict[str, str]:
    """That of the supervisor, and what keeps the log files of brokers apart."""
    return {**environ, PROCESS: str(broker_id)}


class MemberProcess:
    """A process that was started with these properties. Its output goes where the supervisor's
    does. Raises OSError if it cannot be started."""

    def __init__(
        self, words: list[str], environ: Mapping[str, str], properties: Mapping[str, str]
    ) -> None:
        self._socket, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                words,
                stdin=theirs.fileno(),
                env=environ,
                start_new_session=True,  # Ctrl-C in a terminal is for the supervisor
            )
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._job = json.dumps(properties).encode() + b"\n"
        self.pid = self._process.pid

    def wait_for_start(self) -> bool:
        """Hand over the properties. Whether the broker serves then; False: it has ended."""
        with suppress(OSError):
            self._socket.sendall(self._job)
            return self._socket.recv(len(STARTED)) == STARTED
        return False

    def wait(self) -> int:
        """The exit status, negative for a signal, once the process has ended."""
        status = self._process.wait()
        self._socket.close()
        return status

    def terminate(self) -> None:
        self._process.terminate()


def launched(path: str, member: UnitMember) -> MemberProcess:
    """The process of a broker of the unit of the file ``path``. Raises OSError."""
    broker_id = member.config.broker_id
    words = command(os.path.abspath(sys.argv[0]), path, broker_id)
    return MemberProcess(words, environment(os.environ, broker_id), member.properties)
