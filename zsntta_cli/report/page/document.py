"""A page as a file: it loads nothing, runs its own script alone, and reads without it."""

import base64
import hashlib
import re
from importlib import resources

from zsntta_cli import __version__
from zsntta_cli.report.page.markup import text


def document(title: str, body: str, style: str, script: str) -> str:
    """The file: its policy lets in this style and this script, by their digests, and no more.

    `body` is HTML; `style` and `script` are a page's own, behind what all pages share.
    """
    style = asset(__package__, "base.css") + style
    script = asset(__package__, "base.js") + script
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; "
        f"script-src {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{body}<script>{script}</script>\n</body>\n</html>\n"
    )


def footer() -> str:
    """What made the page."""
    return f"<footer><p>Made by zsntta {text(__version__)}.</p></footer>\n"


def asset(package: str, name: str) -> str:
    """A file of a package, without the spaces that a reader of the code needs."""
    content = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"\n\s+", "\n", content)


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
