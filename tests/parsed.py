"""A page as its elements, without a browser."""

import base64
import hashlib
import re
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


def cells(html, caption):
    """The rows of the first table whose caption begins so, as lists of texts."""
    [table, *_] = re.findall(rf"<caption>{re.escape(caption)}.*?</table>", html, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*)", table)
    return [[_cell_text(cell) for cell in re.split(r"(?=<t[hd])", row)[1:]] for row in rows]


def _cell_text(cell):
    """The text of a cell; behind it * of the best, ~ of what cannot be told from it."""
    sign = "*" * cell.startswith("<td><b>") or "~" * cell.startswith("<td><u>")
    return re.sub(r"<[^>]*>", "", cell) + sign


def assert_inert(html, images=(), scripts=1):
    """That a page loads nothing but these images, and runs its own style and script alone."""
    parsed = Page(html)
    assert [attributes["src"] for attributes, _ in parsed.named("img")] == [*images]
    for tag, attributes, _ in parsed.elements:
        assert tag not in ("iframe", "object", "embed", "base", "form", "audio", "video"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "srcset", "action"), (tag, name)
            if name in ("src", "href", "xlink:href") and value not in images:
                assert value.startswith(("#", "data:,")), (tag, value)
    assert html.count("</script>") == len(parsed.named("script")) == scripts
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for name, rule in (("style", "style-src"), ("script", "script-src")):
        [content] = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
        assert not re.search(
            r"https?:|url\(|@import|fetch|XMLHttp|import\(|innerHTML|eval", content
        )
        assert "insertAdjacent" not in content
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert html.index("Content-Security-Policy") < html.index("<style>")
    return rules["img-src"]
