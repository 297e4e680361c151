"""A REST proxy as a child process, and requests to it as curl would send them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.harness import HOME, Process, free_port, properties

STARTED = "Server started, listening for requests"
CURL_TIMEOUT_S = 300
MARK = "\n==> "
V1 = "application/vnd.kafka.v1+json"
V2 = "application/vnd.kafka.v2+json"


class Answered(NamedTuple):
    status: int
    body: Any
    content_type: str


class Called(NamedTuple):
    """An answer as curl shows it. ``shown``: its status and type with a blank between."""

    text: str
    shown: str

    @property
    def bodies(self) -> list[Any]:
        """The JSON values, one for each line."""
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def body(self) -> Any:
        """The only JSON value; None without a body."""
        return json.loads(self.text) if self.text else None


def by_curl(script: str, directory: Path) -> list[Called]:
    """Runs a shell script of calls of curl, whose settings are written to ``directory``."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH")
    shown = json.dumps(f"{MARK}%{{http_code}} %{{content_type}}\n")
    (directory / ".curlrc").write_text(f"silent\nshow-error\nwrite-out = {shown}\n")
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        capture_output=True,
        text=True,
        timeout=CURL_TIMEOUT_S,
        env={**os.environ, "HOME": str(directory), "CURL_HOME": str(directory)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = re.findall(f"(.*?){MARK}(.*?)\n", done.stdout, re.DOTALL)
    return [Called(*each) for each in found]


class RestProxy(Process):
    """A proxy for the cluster at ``zookeeper``; ``props`` are added to its settings."""

    def __init__(
        self, directory: Path, zookeeper: str, props: Mapping[str, object] | None = None
    ) -> None:
        self.port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "kafka-rest.properties"
        values = {
            "zookeeper.connect": zookeeper,
            "listeners": f"http://127.0.0.1:{self.port}",
            "shutdown.graceful.ms": 5000,
            **(props or {}),
        }
        config.write_text(properties(values))
        command = [str(HOME / "bin" / "kafka-rest-start.sh"), str(config)]
        super().__init__("REST proxy", command, directory)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> RestProxy:
        begin = time.monotonic()
        self.spawn()
        self.wait_for(STARTED)
        self.started_in_s = time.monotonic() - begin
        return self

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = V1,
        timeout: float = 60,
        **headers: str,
    ) -> Answered:
        """``path`` may be a whole URL, such as a base_uri."""
        data = None if body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.url + path
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = content_type
        request = urllib.request.Request(url, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return _answered(response.status, response)
        except urllib.error.HTTPError as error:
            with error:
                return _answered(error.code, error)


def _answered(status: int, response: Any) -> Answered:
    content_type = response.headers["Content-Type"]
    data = response.read()
    is_json = data and content_type.endswith("json")
    return Answered(status, json.loads(data) if is_json else data or None, content_type)
