from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafka08.spark.old_jobs import worker

ROOT = Path(__file__).parents[3]


def test_it_is_sparks_worker_with_the_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr("runpy.run_module", lambda name, **more: seen.append((name, more)))
    worker.main()
    assert seen == [("pyspark.worker", {"run_name": "__main__", "alter_sys": True})]


def test_it_connects_to_spark() -> None:
    """As an executor starts it: it sends the secret, and its number when that is accepted."""
    heard: list[bytes] = []

    def executor() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as file:
            size = int.from_bytes(file.read(4), "big")
            heard.append(file.read(size))
            connection.sendall(b"\0\0\0\2ok")
            heard.append(file.read(4))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        thread = threading.Thread(target=executor)
        thread.start()
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHON_WORKER_FACTORY_PORT": str(listener.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": "secret",
        }
        with subprocess.Popen(
            [sys.executable, "-m", worker.__name__], env=environment, stderr=subprocess.PIPE
        ) as child:
            thread.join(60)
            child.communicate(timeout=60)
    assert heard == [b"secret", child.pid.to_bytes(4, "big")]
