"""HTML in small pieces, for drawings and the review page: what comes from a record becomes text."""

import html
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from zsntta_cli.errors import printable

NOTHING = "–"  # where a metric has no sample


def text(value: object) -> str:
    """A text as HTML has it, in an attribute too: no markup, and nothing that turns a line over."""
    return html.escape(printable(str(value)))


def table(caption: str, head: str, bodies: Iterable[str]) -> str:
    """A table that scrolls within itself; `caption` is HTML, `head` and `bodies` are rows of it.

    The region that scrolls can be reached by the keyboard, and is named as the table is.
    """
    name = re.sub(r"<small>.*|<[^>]*>", "", caption)
    inner = "".join(f"<tbody>{body}</tbody>\n" for body in bodies)
    return (
        f'<div class="scroll" role="group" tabindex="0" aria-label="{name}">'
        f"<table><caption><div>{caption}</div></caption>\n"
        f"<thead>{head}</thead>\n{inner}</table></div>\n"
    )


def row(head: str, *cells: str) -> str:
    """A row: cells are whole ones, and need no end (HTML says so), of which there are thousands."""
    return f"<tr>{head}{''.join(cells)}\n"


def number(value: str) -> str:
    """A cell with a number, which most are, or what stands where there is none."""
    return f"<td>{value}"


def percent(value: float, digits: int = 2) -> str:
    """A fraction in percent; a dash where there is none."""
    return NOTHING if math.isnan(value) else f"{100 * value:.{digits}f}"


def details(summary: str, content: str) -> str:
    """What is shown when it is asked for; `summary` is HTML."""
    return f"<details><summary>{summary}</summary>\n{content}</details>\n"


def data(identifier: str, value: Any) -> str:
    """Values for the script, as JSON that cannot end its element."""
    plain = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identifier}">{plain}</script>\n'
