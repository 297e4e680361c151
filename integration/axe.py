"""axe-core of npm: what a page has against the rules of accessibility."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from integration.cached import once

VERSION = "4.10.3"
CACHE = Path.home() / ".cache" / "kafka08" / f"axe-core-{VERSION}"
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  (found) => done(found.violations.map((each) =>
    each.id + ": " + each.nodes.map((node) => node.target.join(" ")).slice(0, 5).join(" | "))),
  (error) => done([String(error)]));
"""


def script() -> str:
    """Its text; the test is skipped where npm cannot get it."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on PATH to get axe-core")
    try:
        directory = once(CACHE, _get)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm could not get axe-core: {error.stderr[-200:]}")
    return (directory / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def _get(directory: Path) -> None:
    command = ["npm", "install", "--prefix", str(directory), f"axe-core@{VERSION}"]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)


def violations(browser: Any, text: str) -> list[str]:
    """Of all rules, each with the first places; ``text``: the script's."""
    browser.execute_script(text)
    return list(browser.execute_async_script(_RUN))
