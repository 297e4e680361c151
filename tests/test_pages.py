"""What pages must say, and what they must not."""

from __future__ import annotations

import configparser
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_nothing_is_installed_that_no_index_has() -> None:
    """kafka08 is in no package index: it is installed from a checkout, with extras that exist."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = set(setup["options.extras_require"])
    code = [path for name in ("kafka08", "tools", "zk") for path in (ROOT / name).rglob("*.py")]
    wrong = []
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *code]:
        for target in re.findall(r"pip install (?:-e )?['\"]?([^'\"\s`,)]+)", path.read_text()):
            named = re.search(r"^[./].*\[(.*)\]$", target)
            if target.startswith("kafka08") or (named and not {named[1]} <= extras):
                wrong.append(f"{path.relative_to(ROOT)}: {target}")
    assert wrong == []


def test_the_list_of_files_is_what_the_modules_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_files.py"))
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    assert page == made["render"](), "run `make docs`"
    described = re.findall(r"^\| `(\S+)` \| (.*) \|$", page, re.MULTILINE)
    assert [name for name, text in described if not text] == []
    modules = [p for top in made["TREES"] for p in (ROOT / top).rglob("*.py") if p.stat().st_size]
    modules = [path for path in modules if path.name != "__init__.py"]
    assert len(described) >= len(modules) > 300


BENCH_ROW = re.compile(r"^\| [a-z0-9].* \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [\d.]* ?\|$", re.MULTILINE)


def test_the_readme_shows_rows_of_the_benchmark_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = page.partition("<!-- BENCH TABLE BEGIN -->")[2].partition("<!-- BENCH TABLE END -->")[0]
    shown = BENCH_ROW.findall(readme)
    assert len(shown) == 5
    assert set(shown) <= set(BENCH_ROW.findall(table))
