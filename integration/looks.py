"""How a browser is made to look: light or dark, at a desk or on a telephone; and its pictures."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple


class Look(NamedTuple):
    name: str
    width: int
    height: int
    is_dark: bool = False

    def put_on(self, browser: Any) -> None:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": self.width, "height": self.height, "deviceScaleFactor": 1,
             "mobile": self.width < 600},
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.is_dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


LIGHT = Look("light", 1400, 900)
DARK = Look("dark", 1400, 900, True)
TELEPHONE = Look("telephone", 390, 844)
LOOKS = (LIGHT, DARK, TELEPHONE)


def picture(browser: Any, look: Look, height: int | None = None) -> bytes:
    """A PNG of the top of the page."""
    clip = {"x": 0, "y": 0, "width": look.width, "height": height or look.height, "scale": 1}
    found = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
    )
    return base64.b64decode(found["data"])


def overflow(browser: Any) -> int:
    """Pixels that the page is wider than the window."""
    return int(
        browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    )
