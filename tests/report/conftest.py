"""The browser that looks at the pages: the system's chromium, driven by Playwright."""

import os
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser():
    """A browser; where there is none, tests skip, or fail where ZSNTTA_BROWSER says so."""
    if CHROMIUM is None:
        missing = "no chromium is installed: apt-get install chromium"
        if os.environ.get("ZSNTTA_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def pytest_collection_modifyitems(items):
    """A browser on a busy machine may miss a click: its tests have two more attempts."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=2))
