"""The revision of the code that determines a run's numbers: other revisions are never shown.

The revision of a user's own method includes the digests of its source: of the script and of what it
imports from its own folder. They are computed from the syntax tree, so comments, docstrings, line
breaks and the version of Python do not matter.
"""

import ast
import functools
import hashlib
import inspect
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from zsntta_cli.methods import METHODS

RULES = 1  # of streams, scores and thresholds: goes up where a number changes or a metric comes
_PACKAGE = Path(__file__).parents[1]
_INSTALLED = frozenset(Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib"))
_NOTHING: Mapping[str, str] = MappingProxyType({})


def revision(method: str) -> str | None:
    """The revision of all code that determines a method's numbers, as "RULES.METHOD".

    A method in a user's script also has a digest of its source; it is None if no files have the
    source, so that nothing can be kept.
    """
    chosen = METHODS[method]
    numbers = f"{RULES}.{chosen.revision}"
    if not chosen.own_code:
        return numbers
    files = source_digests(method)
    digest = hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()
    return f"{numbers}+{digest[:16]}" if files else None


def source_digests(method: str) -> Mapping[str, str]:
    """SHA-256 (hex) of the source of a user's own method, by file name, the script first.

    Names are relative to the script's folder, or to the folder of its package. It is empty for a
    method of this package, and if no files have the source.
    """
    try:
        return _digests(METHODS[method].own_code)
    except (OSError, TypeError, SyntaxError, ValueError, LookupError, RecursionError):
        return _NOTHING


@functools.lru_cache(maxsize=256)  # as it was loaded: asked for each of thousands of runs
def _digests(own_code: tuple[Any, ...]) -> Mapping[str, str]:
    files = _source_files(own_code)
    return MappingProxyType({n: syntax_digest(path.read_bytes()) for n, path in files.items()})


def _source_files(own_code: tuple[Any, ...]) -> dict[str, Path]:
    files = dict[str, Path]()
    scripts = dict.fromkeys(Path(inspect.getsourcefile(part) or "") for part in own_code)
    for name, path in dict.fromkeys(source for script in scripts for source in _sources(script)):
        name = f"{path.parent.name}/{name}" if name in files else name  # another's of that name
        files[name] = path
    return files


def syntax_digest(source: bytes) -> str:
    """SHA-256 (hex) of a source's syntax tree, without its docstrings."""
    return hashlib.sha256(_dump(ast.parse(source)).encode()).hexdigest()


def _dump(node: Any) -> str:
    """A syntax tree as a text; unlike `ast.dump` it does not depend on the version of Python."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(node, ast.Constant):  # None is a value of it
        fields = {"value": node.value}
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return f"{type(node).__name__}({', '.join(f'{k}={_dump(v)}' for k, v in fields.items())})"


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _sources(path: Path) -> Iterator[tuple[str, Path]]:
    """A user's file and the user's files that it imports, with their names."""
    path = path.resolve(strict=True)
    top, own_folder = _folders(path)
    waiting, met = [path], set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path not in met:
            met.add(path)
            yield path.relative_to(top).as_posix(), path
            imported = (file for base, name in _imports(path, top) for file in _files(base, name))
            waiting += [file for file in imported if own_folder and file.is_relative_to(own_folder)]


def _folders(path: Path) -> tuple[Path, Path | None]:
    """The folder in which a file's module names begin, and the folder of the user's own modules.

    The latter is the file's package, or else its folder; None for installed files, and for files of
    this package, which its revision covers.
    """
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    if path.is_relative_to(_PACKAGE):
        return top, None
    if path.parent == top:
        return top, None if top in _INSTALLED else top
    return top, top / path.relative_to(top).parts[0]


def _imports(path: Path, top: Path) -> Iterator[tuple[Path, str]]:
    """The modules that a file imports, each with the folder in which its name begins."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((top, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):  # the names may be modules, too
            base = path.parents[node.level - 1] if node.level else top
            for alias in node.names:
                yield base, ".".join(filter(None, (node.module, alias.name)))


def _files(base: Path, module: str) -> Iterator[Path]:
    """The files of a module and of the packages around it, if they are below a folder."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        place = base.joinpath(*parts[:count])
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if file.is_file():
                yield file
