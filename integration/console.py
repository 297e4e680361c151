"""The web console as a process, and what a browser without JavaScript asks it."""

from __future__ import annotations

import html
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from integration.harness import HOME, Process, free_port, properties
from integration.wire import wait_until


class Console(Process):
    """bin/kafka-console-start.sh on a free port, with short intervals. ``zookeeper`` "": that of
    each cluster is in ``settings``."""

    def __init__(self, zookeeper: str, directory: Path, **settings: object) -> None:
        self.port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "kafka-console.properties"
        values = {
            "zookeeper.connect": zookeeper,
            "http.port": self.port,
            "console.refresh.ms": 500,
            "lag.interval.ms": 500,
            **settings,
        }
        config.write_text(properties(values))
        script = HOME / "bin" / "kafka-console-start.sh"
        super().__init__("console", [str(script), str(config)], directory)

    def begin(self) -> Console:
        self.spawn()
        self.wait_for("The console of")
        return self

    def ask(self, path: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, {"Accept": "text/html", **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def text(self, path: str) -> str:
        """A page without its tags."""
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.ask(path)[1]))

    def wait_until_shown(self, path: str, text: str) -> None:
        wait_until(f"{text!r} on {path}", 30, lambda: text in self.text(path))

    def submit(self, form_on: str, path: str, **fields: object) -> tuple[int, str]:
        """Send a form with the hidden fields of the page that has it."""
        page = self.ask(form_on)[1]
        found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
        hidden = {name: html.unescape(value) for name, value in found}
        data = urllib.parse.urlencode({**hidden, **fields}).encode()
        return self.ask(path, data)
