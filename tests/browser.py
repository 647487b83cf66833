"""A real browser for tests of pages: headless Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips the test where there is none, fails it there in continuous integration."""
    missing = pytest.fail if os.environ.get("CI") else pytest.skip
    program = shutil.which("chromium")
    if program is None:
        missing("chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("playwright is not installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def faults_of_access(view: Any) -> list[Any]:
    """What axe-core finds wrong with a page for those who can not see it or use a mouse."""
    from axe_playwright_python.sync_playwright import Axe

    found: list[Any] = Axe().run(view).response["violations"]
    return found
