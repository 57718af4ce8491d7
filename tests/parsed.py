"""A page as its elements, without a browser."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page: (name, attributes, text up to the next tag)."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2] += data

    def named(self, name, **wanted):
        return [
            (attributes, text.strip())
            for tag, attributes, text in self.elements
            if tag == name and wanted.items() <= attributes.items()
        ]
