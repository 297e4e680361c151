"""What pages and messages must not say."""

from __future__ import annotations

import configparser
import re
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
