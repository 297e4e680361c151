"""The documentation site is built from a clean copy without a warning, and needs no other host."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from integration.harness import HOME

pytestmark = pytest.mark.slow

TIMEOUT_S = 900
SKIPPED = (".*", "*.egg-info", "*.so", "__pycache__", "artifacts", "build", "dist", "logs")
# Attributes by which a page loads something while it is shown.
LOADING = {
    "audio": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "script": "src",
    "source": "src",
}


class Loaded(HTMLParser):
    """The addresses of all that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = LOADING.get(tag)
        self.addresses += [value for name, value in attrs if name == wanted and value]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "a copy"
    shutil.copytree(HOME, place, ignore=shutil.ignore_patterns(*SKIPPED))
    return place


def build(copy: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command of `make docs` that follows the generated pages."""
    makefile = (copy / "Makefile").read_text(encoding="utf-8")
    (words,) = [line.split() for line in makefile.splitlines() if "-m sphinx" in line]
    return subprocess.run(
        [sys.executable, *words[1:]],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def site(copy: Path) -> Path:
    done = build(copy)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return copy / "build" / "site"


def test_every_page_is_built(copy: Path, site: Path) -> None:
    navigation = runpy.run_path(str(copy / "docs" / "site" / "navigation.py"))
    names = navigation["pages"]()
    assert len(names) > 70
    assert [name for name in names if not (site / f"{name}.html").exists()] == []
    assert "url=README.html" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "searchindex.js").exists()


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    found = []
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        found += [f"{page.name}: {address}" for address in loaded.addresses if "//" in address]
        missing = (address.partition("?")[0].partition("#")[0] for address in loaded.addresses)
        found += [f"{page.name}: {name}" for name in missing if not (page.parent / name).exists()]
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        found += [style.name for sign in ("url(http", "url(//", "@import") if sign in text]
    assert found == []


def test_diagrams_are_pictures(copy: Path, site: Path) -> None:
    for page in copy.rglob("*.md"):
        count = page.read_text(encoding="utf-8").count("\n```mermaid\n")
        built = site / page.relative_to(copy).with_suffix(".html")
        if count:
            html = built.read_text(encoding="utf-8")
            assert html.count('role="img" aria-label="Diagram with arrows from ') == count, page
            assert "stateDiagram" not in html
            assert "flowchart TB" not in html


@pytest.mark.parametrize(
    "broken",
    [
        "See [gone](gone.md).",
        "See [gone](operator.md#gone).",
        "See [gone](#not-a-heading-of-this-page).",
        "```mermaid\nsequenceDiagram\n```",
    ],
)
def test_what_is_broken_fails_the_build(copy: Path, site: Path, broken: str) -> None:
    page = copy / "docs" / "faults.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{text}\n{broken}\n", encoding="utf-8")
        done = build(copy)
    finally:
        page.write_text(text, encoding="utf-8")
    assert done.returncode != 0
    assert "faults.md" in done.stderr


def test_a_page_outside_the_navigation_fails_the_build(copy: Path, site: Path) -> None:
    page = copy / "docs" / "unlisted.md"
    try:
        page.write_text("# Unlisted\n", encoding="utf-8")
        done = build(copy)
    finally:
        page.unlink()
    assert done.returncode != 0
    assert "unlisted.md" in done.stderr
