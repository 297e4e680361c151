"""Tags the checkout as the release that setup.cfg and CHANGELOG.md name. Pushes nothing.

``--check`` only checks: the work tree is clean, the changelog's first release is the version of
setup.cfg and has a date, nothing is listed as unreleased, and the tag does not exist.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?\n(.*?)(?=^## |\Z)", re.M | re.S)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def version() -> str:
    setup = configparser.ConfigParser()
    setup.read("setup.cfg")
    return setup["metadata"]["version"]


def refusals(number: str) -> list[str]:
    """The reasons why the checkout is not release ``number``."""
    (unreleased, _, pending), (released, date, _), *_ = [
        *SECTION.findall(Path("CHANGELOG.md").read_text(encoding="utf-8")),
        ("", "", ""),
        ("", "", ""),
    ]
    reasons = []
    if git("status", "--porcelain"):
        reasons.append("the work tree has changes that are not committed")
    if unreleased != "Unreleased" or pending.strip():
        reasons.append("CHANGELOG.md does not begin with an empty section [Unreleased]")
    if released != number or not date:
        reasons.append(f"CHANGELOG.md does not have [{number}] with a date as its first release")
    if git("tag", "--list", f"v{number}"):
        reasons.append(f"the tag v{number} exists")
    return reasons


def main(argv: list[str]) -> int:
    number = version()
    reasons = refusals(number)
    if reasons:
        print("\n".join(f"Not released: {reason}." for reason in reasons), file=sys.stderr)
        return 1
    if "--check" not in argv:
        git("tag", "--annotate", f"v{number}", "--message", f"kafka08 {number}")
        print(f"Tagged v{number}. To publish it: git push origin v{number}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
