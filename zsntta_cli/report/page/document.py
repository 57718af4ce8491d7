"""A page as a file: it loads nothing, runs only its own script, and is readable without it.

Values from records become text only in the templates, all of which escape.
"""

import base64
import hashlib
import re
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zsntta_cli import __version__
from zsntta_cli.errors import printable

_LOADER = ChoiceLoader([PackageLoader("zsntta_cli.report", name) for name in ("page", "review")])


def document(package: str, name: str, images: str = "data:", **values: Any) -> str:
    """The HTML file; its policy allows only its own style and script, by their digests.

    `images` are the allowed sources of pictures, in the syntax of the policy. `name` is the name of
    the body's template, style and script; they belong to `package` and follow what all pages share.
    """
    parts = {}
    for ending in ("css", "js"):
        files = [(__package__, f"base.{ending}"), (package, f"{name}.{ending}")]
        texts = [
            resources.files(of).joinpath(file).read_text(encoding="utf-8") for of, file in files
        ]
        parts[ending] = re.sub(r"\n\s+", "\n", "".join(texts))  # without indentation
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
        for part in parts.values()
    )
    policy = (
        f"default-src 'none'; img-src {images}; style-src {style}; script-src {script}; "
        f"base-uri 'none'; form-action 'none'"
    )
    environment = Environment(
        loader=_LOADER, autoescape=True, undefined=StrictUndefined, finalize=_finalize,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template("document.html").render(
        body=f"{name}.html", policy=Markup(policy), style=Markup(parts["css"]),
        script=Markup(parts["js"]), version=__version__, **values,
    )  # fmt: skip


def _finalize(value: Any) -> Any:
    """A text with its control characters written out; HTML stays as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
