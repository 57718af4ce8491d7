"""A page in a browser that has no network."""

from pathlib import Path

import pytest


class Watched:
    """A page without a network, and what it asked for or said."""

    def __init__(self, browser, **context):
        self.context = browser.new_context(**context)
        self.context.set_offline(True)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.asked, self.said = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self._hear(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))

    def _hear(self, text):
        """Keep what is said, but for what Chromium says by chance of a dialog that takes focus."""
        if not text.startswith("Autofocus processing was blocked"):
            self.said.append(text)

    def unfold(self):
        """Open all that is folded."""
        self.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = 1")

    def assert_accessible(self, *passed):
        """That axe finds nothing, and that it looked for all of `passed`."""
        axe = pytest.importorskip("axe_playwright_python")
        source = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
        self.page.evaluate(source)
        found = self.page.evaluate("axe.run()")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert {*passed} <= {one["id"] for one in found["passes"]}

    def assert_guarded(self):
        """That the page's policy stops what would run if a name were markup all the same."""
        self.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')"
        )
        self.page.wait_for_timeout(200)
        assert any("Content Security Policy" in line for line in self.said)
        assert "1" not in self.said

    def width(self):
        """How wide the page is: more than the window if it scrolls sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth")
