"""A PostgreSQL server of its own on loopback, from the machine's packages.

PostgreSQL refuses to run as root: the server is then the user postgres, which owns its directory.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from integration.harness import Process, free_port

PACKAGES = Path("/usr/lib/postgresql")  # of Debian, a directory for each release
ACCOUNT = "postgres"
START_TIMEOUT_S = 60
# Nothing outlasts the test, so nothing has to reach the disk.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "16MB",
    "log_line_prefix": "%m [%p] ",
}


def programs() -> Path | None:
    """The directory of the newest server, None if there is none."""
    found = [path.parent for path in PACKAGES.glob("*/bin/postgres")]
    on_path = shutil.which("postgres")
    found += [Path(on_path).parent] if on_path else []
    return max(found, key=lambda path: (path.parent.name.isdigit(), path.parent.name), default=None)


def missing() -> str:
    """Why there can be no server; empty when there can."""
    if programs() is None:
        return "PostgreSQL's server is not installed"
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "no setpriv to run PostgreSQL as another user than root"
    return ""


class PostgresServer(Process):
    """``dsn`` is for psycopg: a database in which the user may do everything, without password."""

    def __init__(self) -> None:
        where = programs()
        assert where is not None, missing()
        # The directories of pytest are closed to other users.
        self.home = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))
        self.port = free_port()
        self.dsn = f"host=127.0.0.1 port={self.port} dbname=postgres user={ACCOUNT}"
        self._as = []
        if os.geteuid() == 0:
            shutil.chown(self.home, ACCOUNT, ACCOUNT)
            self._as = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--init-groups"]
        self._data = self.home / "data"
        initdb = [*self._as, str(where / "initdb"), "-D", str(self._data), "-U", ACCOUNT]
        self._initdb = [*initdb, "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]
        command = [*self._as, str(where / "postgres"), "-D", str(self._data), "-p", str(self.port)]
        command += [f"--{name}={value}" for name, value in SETTINGS.items()]
        super().__init__("PostgreSQL", command, self.home / "log")

    def start(self) -> PostgresServer:
        """Until it serves."""
        done = subprocess.run(
            self._initdb, cwd="/", capture_output=True, text=True, timeout=120, check=False
        )
        assert not done.returncode, done.stderr
        self.spawn()
        self.wait_for("ready to accept connections", START_TIMEOUT_S)
        return self

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn) as connection:
            connection.execute(statement)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query).fetchall()

    def close(self) -> None:
        """End it at once for all its clients, and remove its files."""
        self.stop(signal.SIGINT)
        shutil.rmtree(self.home)
