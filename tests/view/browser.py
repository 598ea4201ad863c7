"""A real Chromium for tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-ipc-flooding-protection",  # tests change the address more often than people do
    "--force-device-scale-factor=1",
    "--window-size=1500,1400",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def start(profile: Path) -> Iterator[Any]:
    """A Chromium with a fresh profile; the test is skipped, with the reason, where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (the extra `test`)")
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        missing = "Chromium" if binary is None else "chromedriver"
        pytest.skip(f"{missing} is not installed (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    try:
        yield browser
    finally:
        browser.quit()
