"""A page as its elements, without a browser."""

import json
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
    """The rows of the table whose caption begins so, as lists of texts."""
    [table] = re.findall(rf"<caption><div>{re.escape(caption)}.*?</table>", html, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*)", table)
    return [[_cell_text(cell) for cell in re.split(r"(?=<t[hd])", row)[1:]] for row in rows]


def _cell_text(cell):
    """The text of a cell; behind it * of the best, ~ of what cannot be told from it."""
    sign = "*" * cell.startswith('<td class="b">') or "~" * cell.startswith('<td class="u">')
    return re.sub(r"<[^>]*>", "", cell) + sign


def board_rows(html):
    """The leaderboard's data as the script reads it: a mapping a row."""
    [plain] = re.findall(r'id="board-data">(.*?)</script>', html)
    data = json.loads(plain)
    columns = [_expanded(column, data["texts"]) for column in data["columns"].values()]
    rows = [dict(zip(data["columns"], row, strict=True)) for row in zip(*columns, strict=True)]
    assert len(rows) == data["rows"]
    return rows


def _expanded(column, texts):
    counts = column.get("counts", [1] * len(column["values"]))
    values = [v for v, n in zip(column["values"], counts, strict=True) for _ in range(n)]
    return [texts[v] if column.get("is_text") and v is not None else v for v in values]
