"""Pages of the site that are not in docs/: files from elsewhere, and pages generated from the code.

This is a hook of MkDocs (mkdocs.yml). README is the first page. The page of the command line is
generated from the commands' help, and the Python reference from the public names. Notebooks become
pages.
"""

import contextlib
import io
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

# Pages of the site, by the file from which they are made.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/service/README.md": "service.md",
    "docs/detect.ipynb": "detect-notebook.md",
    "docs/results.ipynb": "results-notebook.md",
}
# Files to which pages link, and which are not pages.
FILES = (
    "LICENSE",
    "CITATION.cff",
    "zsntta_cli/datasets/wordnet/LICENSE",
    "examples/adapters/ood_noise.py",
    "examples/adapters/river_noise.py",
    "examples/adapters/sklearn_noise.py",
)

_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)((?:#[^)]*)?)\)")
_PICTURE = re.compile(r'(<img src=")([^"]+)"')


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = notebook_text(json.loads(text)) if source.endswith(".ipynb") else text
        files.append(File.generated(config, page, content=text))
    for source in FILES:
        place = f"{source}.txt"
        files.append(File.generated(config, place, content=(ROOT / source).read_bytes()))
    files.append(File.generated(config, "commands.md", content=commands_page()))
    files.append(File.generated(config, "python.md", content=python_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make links between files of the project lead to the site's pages."""
    del config, files
    here = page.file.src_uri
    source = next((source for source, of in PAGES.items() if of == here), f"docs/{here}")

    def placed(path: str) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target in PAGES:
            place = PAGES[target]
        elif target in FILES:
            place = f"{target}.txt"
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            raise PluginError(f"{source} links to {target}, which is not on the site")
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    markdown = _PICTURE.sub(lambda picture: picture[1] + placed(picture[2]) + '"', markdown)
    return _LINK.sub(lambda link: f"]({placed(link[1])}{link[2]})", markdown)


def commands_page() -> str:
    """Every command with all of its options, as in its help."""
    return "\n".join(["# Command line", "", *_command_lines()])


def _command_lines() -> Iterator[str]:
    from zsntta_cli.cli import main, program

    yield "Every command prints its help page with `-h`."
    yield ""
    for name, command in program().commands.items():
        subcommands = getattr(command, "commands", {})
        for words in [[name, sub] for sub in subcommands] or [[name]]:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
                main([*words, "-h"])
            yield f"## zsntta {' '.join(words)}\n\n```text\n{printed.getvalue().rstrip()}\n```\n"


def python_page() -> str:
    """The reference of what `import zsntta_cli` provides, from the docstrings."""
    import zsntta_cli

    names = [name for name in zsntta_cli.__all__ if name != "__version__"]
    head = "# Python reference\n\n[In Python](api.md) shows how these are used.\n\n"
    return head + "\n".join(f"::: zsntta_cli.{name}\n" for name in names)


def notebook_text(notebook: Any) -> str:
    """A notebook as a page: its prose, its code and its output."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                parts.append("".join(data["text/html"]))
            elif "image/png" in data:
                parts.append(
                    f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
                )
            elif text := "".join(output.get("text", data.get("text/plain", ""))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts)
