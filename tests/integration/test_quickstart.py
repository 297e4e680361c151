from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integration import quickstart, quickstart_cluster
from kafka08.settings import properties

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("missing", ["box", "localhost"])
def test_a_host_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == missing:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return []

    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert quickstart.taken() == f"the host name {missing} does not resolve"


def test_private_copies_need_no_host_name(tmp_path: Path) -> None:
    setup = quickstart.private_copy(ROOT, tmp_path)
    server = properties.load(setup.server_config)
    assert server["advertised.host.name"] == setup.host == "127.0.0.1"
    assert server["zookeeper.connect"] == f"127.0.0.1:{setup.zookeeper_port}"


def test_children_are_interrupted_where_the_parent_ignores_it() -> None:
    sleep = 'import subprocess\nwith subprocess.Popen(["sleep", "60"]) as child:\n'
    code = f"{sleep}    child.send_signal(2)\n    raise SystemExit(child.wait(30))"
    code = f"from integration.quickstart import heed_interrupts\nheed_interrupts()\n{code}"
    words = ["bash", "-c", 'trap "" INT; exec "$@"', "-", sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == (-signal.SIGINT) & 0xFF


def test_processes_are_found_without_ps() -> None:
    with subprocess.Popen(["cat", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(b"x\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"x\n"  # so it runs
        assert quickstart_cluster.command_lines()[child.pid] == ["cat", "-"]
        child.stdin.close()
