"""A page as a file: it loads nothing, runs only its own script, and is readable without it.

Values from records become text only in the templates, all of which escape.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zsntta_cli import __version__
from zsntta_cli.errors import printable


def render(template: str, **values: Any) -> Markup:
    """Fill a template with values; texts are escaped as HTML."""
    return Markup(_environment().get_template(template).render(**values))


def document(
    package: str, name: str, scripts: Sequence[str], images: str = "data:", **values: Any
) -> str:
    """The HTML file; its policy allows only its own style and script, by their digests.

    `images` are the allowed sources of pictures, in the syntax of the policy. `name` is the name of
    the body's template and style; they and `scripts` belong to `package` and follow what all pages
    share.
    """
    style = _asset(__package__, "base.css") + _asset(package, f"{name}.css")
    script = "".join([_asset(__package__, "base.js"), *(_asset(package, s) for s in scripts)])
    policy = (
        f"default-src 'none'; img-src {images}; style-src {_digest(style)}; "
        f"script-src {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    html = render(
        "document.html", body=f"{name}.html", policy=Markup(policy), style=Markup(style),
        script=Markup(script), **values,
    )  # fmt: skip
    return str(html)


def _asset(package: str, name: str) -> str:
    """A file of a package, without its indentation."""
    content = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"\n\s+", "\n", content)


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@functools.cache
def _environment() -> Environment:
    """The templates of the report and of the review."""
    folders = [PackageLoader("zsntta_cli.report", folder) for folder in ("page", "review")]
    environment = Environment(
        loader=ChoiceLoader(folders), autoescape=True, undefined=StrictUndefined,
        finalize=_finalize, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.globals["version"] = __version__
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _finalize(value: Any) -> Any:
    """A text with its control characters written out; HTML stays as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
