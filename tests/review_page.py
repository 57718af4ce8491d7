"""The review in a browser, as tests see it."""

import json
from pathlib import Path

from PIL import Image
from watched import Watched

from zsntta_cli.report.review.review import small

DOT = small(Image.new("RGB", (300, 200), (200, 30, 40)))


class Review(Watched):
    """The page, and what stands on it."""

    def __init__(self, browser, uri, **context):
        super().__init__(browser, **context)
        self.page.goto(uri)

    def listed(self, key):
        """The places of the images of a section that are shown."""
        return self.page.locator(f"section[aria-labelledby={key}] li .where").all_text_contents()

    def heads(self):
        """What the heads of the three sections count."""
        return self.page.locator("h2:not(#failed) small").all_text_contents()

    def slide(self, value):
        self.page.locator("input[name=flagged]").fill(str(value))

    def moved(self):
        return self.page.locator("#moved").text_content()

    def card(self, i):
        return self.page.locator(f"#i{i}")

    def at(self):
        """The places of the images one is at."""
        return self.page.locator(".at .where").all_text_contents()

    def exported(self):
        with self.page.expect_download() as waiting:
            self.page.get_by_role("button", name="Export corrections").click()
        assert waiting.value.suggested_filename == "corrections.jsonl"
        return Path(waiting.value.path())

    def corrections(self):
        return [json.loads(line) for line in self.exported().read_text().splitlines()]
