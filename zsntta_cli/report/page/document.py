"""A page as a file: it loads nothing, runs only its own script, and is readable without it.

Values from records become text only in the templates, all of which escape.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zsntta_cli import __version__
from zsntta_cli.errors import printable
from zsntta_cli.report.sheet import Best, Close, Labels, SheetRow


class Code(str):
    """A text to be typed, one command per line."""


class Strong(str):
    """A text to be emphasised."""


@dataclass
class PageSheet:
    """A table of a page: bodies of rows below the same heads."""

    title: str
    heads: Labels
    columns: Mapping[str, Labels]  # the heads of each column's values
    bodies: Mapping[str, Sequence[SheetRow]]  # by what heads a body, or nothing
    notes: Sequence[str] = field(default_factory=list)  # sentences that stand below
    kind: str = ""  # its class in the style

    @property
    def metrics(self) -> list[str]:
        """The heads of all values, side by side."""
        return [head for heads in self.columns.values() for head in heads]

    def texts(self, row: SheetRow) -> list[str]:
        """The values of a row, side by side; empty where a column has none."""
        columns = self.columns.items()
        return [t for name, heads in columns for t in row.values.get(name, ("",) * len(heads))]


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
    environment.tests["best"] = lambda value: isinstance(value, Best)
    environment.tests["close"] = lambda value: isinstance(value, Close)
    environment.tests["code"] = lambda value: isinstance(value, Code)
    environment.tests["strong"] = lambda value: isinstance(value, Strong)
    environment.globals["version"] = __version__
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _finalize(value: Any) -> Any:
    """A text with its control characters written out; HTML stays as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
