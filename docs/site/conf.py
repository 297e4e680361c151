"""Settings of Sphinx: ``sphinx-build -W -c docs/site . build/site``, which `make docs` runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import diagrams  # noqa: E402
import navigation  # noqa: E402

project = "kafka08"
author = project
copyright = "the authors of kafka08"
extensions = ["myst_parser"]
root_doc = navigation.START
include_patterns = ["*.md", "docs/**.md"]
# Pages elsewhere belong to packages that are installed or built.
exclude_patterns = [".*", "*.egg-info", "build", "dist", "logs"]
nitpicky = True
myst_heading_anchors = 6
myst_links_external_new_tab = False

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None


def setup(app: Any) -> None:
    app.connect("source-read", _add_pages_below)
    app.connect("doctree-read", _draw_diagrams)
    app.connect("build-finished", _write_index)


def _add_pages_below(_app: Any, page: str, source: list[str]) -> None:
    source[0] += navigation.toctrees(page)


def _draw_diagrams(_app: Any, page: nodes.document) -> None:
    """Diagrams become pictures; a warning, which ends the build, tells of one that cannot."""
    for block in list(page.findall(nodes.literal_block)):
        if block.get("language") != "mermaid":
            continue
        try:
            drawn = diagrams.picture(block.astext())
        except ValueError as error:
            logging.getLogger(__name__).warning("a diagram: %s", error, location=block)
        else:
            block.replace_self(nodes.raw("", drawn, format="html"))


def _write_index(app: Any, error: Exception | None) -> None:
    """The start page has the name README.html; servers look for index.html."""
    if error is None:
        start = f'<meta http-equiv="refresh" content="0; url={navigation.START}.html">'
        text = f"<!DOCTYPE html>\n<title>{project}</title>\n{start}\n"
        (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")
