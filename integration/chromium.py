"""Debian's chromium, driven by selenium: packages chromium and chromium-driver, PyPI's selenium."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")
NEEDED = pytest.mark.skipif(
    not (DRIVER and CHROMIUM and importlib.util.find_spec("selenium")),
    reason="chromium, chromium-driver or selenium is not installed",
)


@contextmanager
def chromium(directory: Path, scripts: bool = True) -> Iterator[Any]:
    """``scripts``: whether pages may run JavaScript."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument(f"--user-data-dir={directory}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        block = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", block)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def errors(browser: Any) -> list[str]:
    """Messages of the browser, refusals of the content security policy among them."""
    return [
        line["message"]
        for line in browser.get_log("browser")
        if line["level"] == "SEVERE" and "favicon" not in line["message"]
    ]
