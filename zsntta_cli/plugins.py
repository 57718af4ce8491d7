"""Plugins: methods, classifiers and data sets from scripts and installed distributions.

The tables METHODS, CLASSIFIERS and CATALOGUE are watched. `load_script` executes a script, which
adds lines to them. `load_declared` adds the entry points of installed distributions, one line for
each. No line replaces another one.
"""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, ZsnttaError, first_line, short


@dataclass
class _Table:
    """A table that may be added to."""

    what: str  # what a line is, in words
    lines: dict[str, Any]
    fault: Callable[[Any], str]  # what keeps a value from being a line, in words; "": nothing
    group: str  # of the entry points that become its lines
    complete: Callable[[], None]  # called after lines were added
    before: dict[str, Any] = field(default_factory=dict)  # the lines that must stay as they are
    is_asked: bool = False  # whether its entry points were searched

    def check(self, whose: str) -> None:
        """Refuse new lines of a wrong type, and lines that replace others.

        Raises:
            SettingsError: a line is refused; the message names it and says why.
        """
        for name, line in self.lines.items():
            if self.before.get(name) is line:
                continue
            if name in self.before:
                raise SettingsError(
                    f"{whose} adds the {self.what} '{short(name)}', and there is one of this name: "
                    f"give it another one."
                )
            if fault := self.fault(line):
                raise SettingsError(f"{whose} adds the {self.what} '{short(name)}': {fault}.")


_tables: dict[str, _Table] = {}
_added: dict[Path, Mapping[str, list[str]]] = {}  # the results of `load_script`, by script
_loading: list[Path] = []


def watch(
    what: str,
    lines: dict[str, Any],
    fault: Callable[[Any], str],
    group: str,
    complete: Callable[[], None] = lambda: None,
) -> None:
    """Let scripts and entry points of a group add lines to a table, and call `complete` after.

    `fault` says what keeps a value from being a line, and "" if it is one.
    """
    _tables[what] = _Table(what, lines, fault, group, complete, dict(lines))


@contextmanager
def _adding(whose: str) -> Iterator[None]:
    """Check what is added to the tables within; if something fails, nothing is added.

    Raises:
        SettingsError: a line is refused.
    """
    for table in _tables.values():
        table.before = dict(table.lines)
    try:
        yield
        for table in _tables.values():
            table.check(whose)
    except BaseException:
        for table in _tables.values():
            table.lines.clear()
            table.lines.update(table.before)
        raise
    for table in _tables.values():
        table.complete()


def load_script(script: Path) -> Mapping[str, list[str]]:
    """Execute a script once, as a module, and return the names that it adds to each table.

    It imports from its own folder first. Afterwards the folder stays at the end of sys.path, as the
    script's functions may import later.

    Raises:
        SettingsError: the script fails, or adds a wrong line; the message says where.
    """
    path = script.resolve()
    if _loading:
        raise SettingsError(
            f"{_loading[-1].name} runs zsntta while it is loaded: put main() at its end under "
            f"if __name__ == '__main__'."
        )
    if path in _added:
        return _added[path]
    if path.suffix != ".py" or not path.is_file():
        raise SettingsError(f"plugin is {short(str(script))}, must be a Python file that is there.")
    name = f"zsntta_plugin_{len(_added)}_{re.sub(r'[^a-zA-Z0-9]', '_', path.stem)}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    sys.path.insert(0, folder := str(path.parent))
    _loading.append(path)
    try:
        with _adding(path.name):
            spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, SettingsError) or not isinstance(error, Exception | SystemExit):
            raise
        raise SettingsError(f"{path.name}{_place(error, path)}: {_words(error)}.") from error
    finally:
        _loading.clear()
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    _added[path] = {
        what: [name for name in table.lines if name not in table.before]
        for what, table in _tables.items()
    }
    return _added[path]


def _place(error: BaseException, path: Path) -> str:
    """The line of a script at which an error was raised."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def _words(error: BaseException) -> str:
    kind, words = type(error).__name__, first_line(error).removesuffix(".")
    return kind if words == kind else f"{kind}: {words}"


@contextmanager
def worded_errors() -> Iterator[None]:
    """Turn what a script's method raises into one line; errors of other code stay as they are.

    Raises:
        SettingsError: an error was raised in or below a loaded script.
    """
    try:
        yield
    except (ZsnttaError, MemoryError):
        raise
    except Exception as error:
        for path in _added:
            if place := _place(error, path):
                where = f"{path.name}{place}"
                raise SettingsError(
                    f"{where}: {_words(error)}; zsntta --debug shows the traceback."
                ) from error
        raise


def is_loading() -> bool:
    """Whether a script is being executed now."""
    return bool(_loading)


class LoadedScripts:
    """The loaded scripts, which another process loads when it unpickles this object.

    It must be unpickled before any object whose class is from a script.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_all, (tuple(map(str, _added)),)


def _load_all(paths: tuple[str, ...]) -> LoadedScripts:
    for path in paths:
        load_script(Path(path))
    return LoadedScripts()


def script_with(method: str) -> str:
    """The script of this folder that names a method, or a part of A+B; nothing where none does."""
    parts = "|".join(map(re.escape, method.split("+")))
    names = re.compile(rf"""["'](?:{parts})["']""")
    for script in sorted(Path().glob("*.py")):
        with contextlib.suppress(OSError):
            text = script.read_text("utf-8", "replace")
            if "zsntta_cli" in text and names.search(text):
                return script.name
    return ""


def load_declared(tell: Callable[[str], object] = warnings.warn) -> None:
    """Add the lines that installed distributions declare, once; `tell` why some are left out."""
    waiting = [table for table in _tables.values() if not table.is_asked]
    for table in waiting:
        table.is_asked = True  # before any of them loads what may ask again
    if not waiting:
        return
    from importlib.metadata import entry_points

    declared = entry_points()  # of all distributions: it takes 4 ms
    for table in waiting:
        for point in declared.select(group=table.group):
            by = f" of {point.dist.name}" if point.dist else ""
            whose = f"the entry point '{short(point.name)}'{by}"
            try:
                with _adding(whose):
                    table.lines[point.name] = point.load()
            except SettingsError as error:
                tell(f"left out: {error}")
            except Exception as error:  # of a stranger's module
                tell(f"{whose} is left out ({_words(error)}).")
