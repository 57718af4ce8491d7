"""A page in a browser that has no network."""


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
