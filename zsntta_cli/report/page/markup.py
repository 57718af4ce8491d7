"""HTML in small pieces, for the review page: what comes from a record becomes text."""

import html
import json
import math
from typing import Any

from zsntta_cli.errors import printable

NOTHING = "–"  # where a metric has no sample


def text(value: object) -> str:
    """A text as HTML has it, in an attribute too: no markup, and nothing that turns a line over."""
    return html.escape(printable(str(value)))


def percent(value: float, digits: int = 2) -> str:
    """A fraction in percent; a dash where there is none."""
    return NOTHING if math.isnan(value) else f"{100 * value:.{digits}f}"


def data(identifier: str, value: Any) -> str:
    """Values for the script, as JSON that cannot end its element."""
    plain = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identifier}">{plain}</script>\n'
