"""The navigation of the documentation site: every page of docs/ once."""

from __future__ import annotations

import configparser
import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / "docs" / "site" / "navigation.py"))


def test_every_page_is_in_the_navigation_once() -> None:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    names = {str(path.relative_to(ROOT).with_suffix("")) for path in found}
    listed = Counter(SITE["pages"]())
    assert {name: number for name, number in listed.items() if number != 1} == {}
    assert set(listed) == names, "docs/site/navigation.py"


def test_readers_come_before_the_reference() -> None:
    sections = list(SITE["SECTIONS"])
    readers = ["Python developers", "Operators", "Data engineers", "Reference"]
    assert [name for name in sections if name in readers] == readers
    first = [SITE["SECTIONS"][name][0] for name in readers[:3]]
    assert first == ["docs/guide-python", "docs/guide-operator", "docs/guide-data"]


def test_a_directory_lists_the_pages_below_it(tmp_path: Path) -> None:
    directory = tmp_path / "docs" / "adr"
    directory.mkdir(parents=True)
    for name in ("README", "0002-b", "0001-a"):
        (directory / f"{name}.md").touch()
    assert SITE["below"]("docs/adr/", tmp_path) == ["docs/adr/0001-a", "docs/adr/0002-b"]
    text = SITE["toctrees"]("docs/adr/README", tmp_path)
    assert text == "\n\n```{toctree}\n:hidden:\n\n/docs/adr/0001-a\n/docs/adr/0002-b\n```\n"


@pytest.mark.parametrize("page", ["docs/operator", "docs/adr/0001-schemas", "CHANGELOG"])
def test_other_pages_stay_as_they_are(page: str) -> None:
    assert SITE["toctrees"](page) == ""


def test_the_start_page_lists_each_section() -> None:
    text = SITE["toctrees"]("README")
    assert all(f":caption: {section}\n" in text for section in SITE["SECTIONS"])
    assert "\n/docs/adr/README\n" in text


def test_the_quick_start_does_not_install_the_packages_of_the_site() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    users = [name for name, text in setup["options.extras_require"].items() if "sphinx" in text]
    assert users == ["docs"]
    assert "sphinx" not in setup["options"]["install_requires"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    targets = [line.partition(":")[0] for line in makefile if "$(SETUP_DOCS)" in line]
    assert targets == ["$(SETUP_DOCS)", "integration", "docs"]
