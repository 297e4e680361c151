"""The order of the documentation's pages: sections for readers, each with its pages."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
START = "README"

# A name that ends in a slash stands for the README of that directory, with its pages below it.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": (
        "docs/choosing",
        "docs/clients",
        "docs/errors",
        "docs/install",
        "docs/examples/",
    ),
    "Python developers": (
        "docs/guide-python",
        "docs/producer",
        "docs/consumer",
        "docs/groups",
        "docs/transactions",
        "docs/rest",
    ),
    "Operators": (
        "docs/guide-operator",
        "docs/migrating",
        "docs/handover",
        "docs/operator",
        "docs/upgrading",
        "docs/alerts",
        "docs/admin",
        "docs/security",
        "docs/console",
        "docs/console-design",
        "docs/metrics",
        "docs/deploy/",
    ),
    "Data engineers": (
        "docs/guide-data",
        "docs/spark",
        "docs/spark-moving",
        "docs/spark-recipes",
        "docs/spark-connectors",
        "docs/connect",
    ),
    "Reference": (
        "docs/compatibility",
        "docs/terms",
        "docs/settings",
        "docs/protocol",
        "docs/storage",
        "docs/performance",
    ),
    "Project": (
        "docs/architecture",
        "docs/files",
        "docs/faults",
        "docs/adr/",
        "CONTRIBUTING",
        "SECURITY",
        "CHANGELOG",
    ),
}


def pages(root: Path = ROOT) -> list[str]:
    """The names of all pages without suffix, the start page first, in the order of the site."""
    named = [START]
    for names in SECTIONS.values():
        for name in names:
            named += [f"{name}README", *below(name, root)] if name.endswith("/") else [name]
    return named


def below(directory: str, root: Path = ROOT) -> list[str]:
    """The pages of a directory without its README."""
    found = [path.stem for path in sorted((root / directory).glob("*.md"))]
    return [f"{directory}{name}" for name in found if name != "README"]


def toctrees(page: str, root: Path = ROOT) -> str:
    """The lists of pages that belong below a page, in the markup of MyST."""
    if page == START:
        named = {
            section: [f"{name}README" if name.endswith("/") else name for name in names]
            for section, names in SECTIONS.items()
        }
        return "".join(_toctree(names, section) for section, names in named.items())
    directory = page.removesuffix("README")
    listed = directory != page and any(directory in names for names in SECTIONS.values())
    names = below(directory, root) if listed else []
    return _toctree(names, "") if names else ""


def _toctree(names: list[str], caption: str) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    lines = ["```{toctree}", *options, "", *(f"/{name}" for name in names), "```"]
    return "\n\n" + "\n".join(lines) + "\n"
