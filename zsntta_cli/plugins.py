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
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import SettingsError, ZsnttaError, first_line, short

Added = Mapping[str, list[str]]  # names, by what they are the names of


class _Table(NamedTuple):
    lines: dict[str, Any]
    fault: Callable[[Any], str]
    group: str
    complete: Callable[[], None]


_tables: dict[str, _Table] = {}  # by what a line is, in words
_asked: set[str] = set()  # groups whose entry points were searched
_added: dict[Path, Added] = {}  # the results of `load_script`, by script
_loading: list[Path] = []


def watch(
    what: str,
    lines: dict[str, Any],
    fault: Callable[[Any], str],
    group: str,
    complete: Callable[[], None] = lambda: None,
) -> None:
    """Let scripts and entry points of a group add lines to a table, and then call `complete`.

    `fault` says why a value cannot be a line, and returns "" if it can.
    """
    _tables[what] = _Table(lines, fault, group, complete)


@contextlib.contextmanager
def _adding(whose: str) -> Iterator[dict[str, list[str]]]:
    """Check what is added to the tables within, and give its names at the end.

    If something fails, nothing is added.

    Raises:
        SettingsError: a line is of a wrong type, or replaces another one.
    """
    before = {what: dict(table.lines) for what, table in _tables.items()}
    added: dict[str, list[str]] = {}
    try:
        yield added
        for what, table in _tables.items():
            changed = [n for n, line in table.lines.items() if before[what].get(n) is not line]
            for name in changed:
                adds = f"{whose} adds the {what} '{short(name)}'"
                if name in before[what]:
                    raise SettingsError(f"{adds}, but that name is taken: choose another one.")
                if fault := table.fault(table.lines[name]):
                    raise SettingsError(f"{adds}: {fault}.")
            added[what] = changed
    except BaseException:
        for what, table in _tables.items():
            table.lines.clear()
            table.lines.update(before[what])
        raise
    for table in _tables.values():
        table.complete()


def load_script(script: Path) -> Added:
    """Execute a script once, as a module, and return the names that it adds to each table.

    It imports from its own folder first. Afterwards the folder stays at the end of sys.path, as the
    script's functions may import later.

    Raises:
        SettingsError: the script fails, or adds a wrong line; the message says where.
    """
    refuse_while_loading()
    path = script.resolve()
    if path in _added:
        return _added[path]
    if path.suffix != ".py" or not path.is_file():
        raise SettingsError(f"plugin is {short(str(script))}, must be an existing Python file.")
    name = f"zsntta_plugin_{len(_added)}_{re.sub(r'[^a-zA-Z0-9]', '_', path.stem)}"
    spec = spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = sys.modules[name] = module_from_spec(spec)
    sys.path.insert(0, folder := str(path.parent))
    _loading.append(path)
    try:
        # What it prints is not a result.
        with _adding(path.name) as added, contextlib.redirect_stdout(sys.stderr):
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
    _added[path] = added
    return added


def refuse_while_loading() -> None:
    """Refuse to continue while a script is being loaded.

    Raises:
        SettingsError: a script is being loaded.
    """
    if _loading:
        raise SettingsError(
            f"{_loading[-1].name} runs zsntta while it is loaded: put its call of main() under "
            f"if __name__ == '__main__'."
        )


def _place(error: BaseException, path: Path) -> str:
    """The line of a script at which an error was raised; empty if it was raised elsewhere."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def _words(error: BaseException) -> str:
    kind, words = type(error).__name__, first_line(error).removesuffix(".")
    return kind if words == kind else f"{kind}: {words}"


@contextlib.contextmanager
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
                raise SettingsError(
                    f"{path.name}{place}: {_words(error)}; zsntta --debug shows the traceback."
                ) from error
        raise


class LoadedScripts:
    """The loaded scripts, which another process loads when it unpickles this object.

    It must be unpickled before any object whose class is from a script.
    """

    def __getstate__(self) -> tuple[Path, ...]:
        return tuple(_added)

    def __setstate__(self, paths: tuple[Path, ...]) -> None:
        for path in paths:
            load_script(path)


def script_with(method: str) -> str:
    """The script in this folder that names a method or a part of A+B, or "" if there is none."""
    names = re.compile(rf"""["'](?:{"|".join(map(re.escape, method.split("+")))})["']""")
    for script in sorted(Path().glob("*.py")):
        with contextlib.suppress(OSError):
            text = script.read_text("utf-8", "replace")
            if "zsntta_cli" in text and names.search(text):
                return script.name
    return ""


def load_declared(tell: Callable[[str], object] = warnings.warn) -> None:
    """Add the lines that installed distributions declare, once; `tell` reports omitted ones."""
    waiting = []
    for table in _tables.values():
        if table.group not in _asked:
            _asked.add(table.group)  # before any of them loads what may ask again
            waiting.append(table)
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
