"""The pictures of the console in its documentation: `python -m integration.console_pictures`.

Starts the demo, waits until its graphs have a few points, and writes PNGs into docs/console. They
have a palette of 256 colours if Pillow is installed, and are larger otherwise. Needs chromium,
chromium-driver and selenium.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from integration.chromium import chromium
from integration.console_demo import Demo, Page, pages_of
from integration.looks import DARK, LIGHT, TELEPHONE, Look, picture

DIRECTORY = Path(__file__).parent.parent / "docs" / "console"
COLOURS = 256
GRAPH_S = 240
MOST_BYTES = 150_000


class Shot(NamedTuple):
    """``page``: its name in the demo. ``opens``: the first text that opens is opened."""

    name: str
    page: str
    look: Look
    height: int
    opens: bool = False


SHOTS = (
    Shot("overview", "overview", LIGHT, 760),
    Shot("overview-dark", "overview", DARK, 760),
    Shot("topic", "topic", LIGHT, 700),
    Shot("messages", "messages-search", LIGHT, 760, True),
    Shot("group", "group", LIGHT, 640),
    Shot("what-if", "what-if", LIGHT, 760),
    Shot("access", "acls-of-one", LIGHT, 620),
    Shot("transactions", "transactions", DARK, 480),
    Shot("messages-telephone", "messages-search", TELEPHONE, 844),
)


def shoot(browser: Any, shot: Shot, url: str, page: Page) -> bytes:
    shot.look.put_on(browser)
    browser.get(url + page.path)
    if shot.opens:
        browser.find_element("css selector", "main summary").click()
    return smaller(picture(browser, shot.look, shot.height))


def smaller(png: bytes) -> bytes:
    if importlib.util.find_spec("PIL") is None:
        return png
    from PIL import Image

    out = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


@contextmanager
def demo(url: str) -> Iterator[tuple[str, dict[str, Page]]]:
    """The address of a demo that runs, or of one that is started, with its pages by name."""
    if url:
        yield url, {page.name: page for page in pages_of(url)}
        return
    with tempfile.TemporaryDirectory() as directory, Demo(Path(directory)) as started:
        print(f"waiting {GRAPH_S} s for the graphs of {started.url}", flush=True)
        time.sleep(GRAPH_S)
        yield started.url, {page.name: page for page in pages_of(started.url)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="of a demo that runs, instead of a new one")
    parser.add_argument("--to", type=Path, default=DIRECTORY, help="the directory of the pictures")
    arguments = parser.parse_args()
    os.environ["SE_OFFLINE"] = "true"
    arguments.to.mkdir(parents=True, exist_ok=True)
    with (
        demo(arguments.url) as (url, pages),
        tempfile.TemporaryDirectory() as profile,
        chromium(Path(profile)) as browser,
    ):
        for shot in SHOTS:
            data = shoot(browser, shot, url, pages[shot.page])
            (arguments.to / f"{shot.name}.png").write_bytes(data)
            note = " TOO LARGE" if len(data) > MOST_BYTES else ""
            print(f"{shot.name}.png {len(data):,} bytes{note}")


if __name__ == "__main__":
    main()
