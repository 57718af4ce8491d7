"""Mutation testing: find small changes of a module that the tests of its room do not notice.

    make mutants
    python tools/mutants.py --jobs 8 zsntta_cli/methods/threshold.py

A change is made in memory, never in a file: a forked process imports the changed module and runs
the tests of TESTS until one fails. A change that no test notices either lacks a test or has no
effect, for instance where two numbers are never equal. tests/mutants.toml lists the changes without
effect, and why.
"""

import argparse
import ast
import importlib
import os
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parent.parent
TESTS = {
    "zsntta_cli/methods/detectors/adand.py": [
        "tests/methods/test_methods.py", "tests/methods/test_settings_of_methods.py",
        "tests/whole/test_vectors.py",
    ],
    "zsntta_cli/methods/threshold.py": ["tests/methods/test_threshold.py"],
    "zsntta_cli/simulation/metrics.py": ["tests/simulation/test_metrics.py"],
    "zsntta_cli/simulation/stream.py": ["tests/simulation/test_stream.py"],
    "zsntta_cli/results/frame.py": [
        "tests/results/test_frame.py", "tests/results/test_means.py",
    ],
}  # fmt: skip
KNOWN = ROOT / "tests/mutants.toml"
OPPOSITE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# What has no effect on decisions: types, and the wording of errors.
SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "exc", "cause", "msg"}


@dataclass(frozen=True)
class Change:
    """One small change of a module."""

    line: int
    name: str  # the function, the old and the new code
    make: Callable[[], None]  # changes the module's tree


def changes(tree: ast.Module) -> list[Change]:
    """All changes of a module, in its order."""
    return sorted(_within(tree, ""), key=lambda change: change.line)


def _within(node: ast.AST, place: str) -> Iterator[Change]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}".removeprefix(".")
    for field, value in ast.iter_fields(node):
        if field in SKIPPED or (isinstance(node, ast.JoinedStr) and field == "values"):
            continue
        children = value if isinstance(value, list) else [value]
        for i, child in enumerate(children):
            if not isinstance(
                child, ast.stmt | ast.expr | ast.keyword | ast.arguments | ast.comprehension
            ):
                continue
            for other in _others(child):
                where = (value, i) if isinstance(value, list) else (vars(node), field)
                name = f"{place}: {_text(child)} -> {_text(other)}"
                yield Change(getattr(child, "lineno", 0), name, lambda w=where, o=other: _put(w, o))  # type: ignore[misc]
            yield from _within(child, place)


def _put(where: tuple[Any, Any], node: ast.AST) -> None:
    container, key = where
    container[key] = ast.fix_missing_locations(node)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:100]


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """The alternatives to a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
            yield _with(node, ops=[OPPOSITE[type(op)]()])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OPPOSITE:
            yield _with(node, op=OPPOSITE[type(op)]())
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield _with(node, value=not value)
        case ast.Constant(value=int() | float() as number):
            yield _with(node, value=number + 1)
        case ast.Constant(value=str(text)) if " " not in text:  # others are sentences
            yield _with(node, value=f"{text}X")
        case ast.IfExp(body=body, orelse=orelse):
            yield _with(node, body=orelse, orelse=body)
        case ast.If(test=test) if _text(test) != "TYPE_CHECKING":
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Expr(value=ast.Call()):
            yield ast.copy_location(ast.Pass(), node)
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = deepcopy(node)
    vars(changed).update(fields)
    return changed


class Changed(SourceFileLoader):
    """Loads a module from a tree."""

    tree: ast.Module

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """The code of the tree."""
        return compile(self.tree, self.path, "exec")


def _imports_changed(path: str, tree: ast.Module) -> None:
    """Let this process import a module from a tree."""
    name = path.removesuffix(".py").replace("/", ".")

    class Finder(PathFinder):
        @classmethod
        def find_spec(
            cls, fullname: str, path: Any = None, target: Any = None
        ) -> ModuleSpec | None:
            spec = super().find_spec(fullname, path, target)
            if fullname == name and spec and spec.origin:
                spec.loader = Changed(fullname, spec.origin)
                spec.loader.tree = tree
            return spec

    sys.meta_path.insert(0, Finder)


class Quick:
    """A pytest plug-in: properties have two seconds, and failing examples are not made smaller."""

    def pytest_collection(self, session: Any) -> None:
        """Act once the suite's own profile is loaded."""
        import hypothesis

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases
        )
        hypothesis.settings.load_profile("mutants")
        for conftest in session.config.pluginmanager.get_plugins():
            if hasattr(conftest, "SECONDS"):
                conftest.SECONDS = 2


def _test(path: str, tree: ast.Module, log: Path) -> int:
    """Fork a process that runs the tests of a module; return its id."""
    if process := os.fork():
        return process
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    code = 1
    try:
        import pytest

        _imports_changed(path, tree)
        code = pytest.main(
            ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *TESTS[path]], [Quick()]
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(int(code))


def _ended(process: int, end: float) -> bool | None:
    """Whether a process's tests passed, once it has ended or is killed at `end`; None before."""
    ended, status = os.waitpid(process, os.WNOHANG)
    if ended:
        return os.waitstatus_to_exitcode(status) == 0
    if time.monotonic() < end:
        return None
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def _all(path: str) -> list[Change]:
    return changes(ast.parse((ROOT / path).read_text()))


def survivors(path: str, folder: Path, jobs: int) -> Iterator[tuple[Change, bool]]:
    """Each change of a module, and whether its tests pass with it, several at a time."""
    source = (ROOT / path).read_text()
    start = time.monotonic()
    process = _test(path, ast.parse(source), folder / "log")
    while (passed := _ended(process, start + 600)) is None:
        time.sleep(0.01)
    if not passed:
        sys.exit(f"The tests fail without a change:\n{(folder / 'log').read_text()}")
    seconds = 10 + 5 * (time.monotonic() - start)  # a change that makes them endless is noticed
    waiting, running = list(range(len(_all(path)))), dict[int, tuple[Change, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            tree, i = ast.parse(source), waiting.pop(0)
            change = changes(tree)[i]
            change.make()
            process = _test(path, tree, folder / f"log{i}")
            running[process] = change, time.monotonic() + seconds
        for process, (change, end) in [*running.items()]:
            if (passed := _ended(process, end)) is not None:
                del running[process]
                yield change, passed
        time.sleep(0.01)


def main() -> None:
    """Print the changes that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=[*TESTS], metavar="MODULE")
    parser.add_argument("--jobs", type=int, default=1, help="changes to try at the same time")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    known = tomllib.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    # So that no fork imports them again; none of them is the package's.
    for name in ("pytest", "hypothesis", "numpy", "scipy.stats", "sklearn.metrics", "open_clip"):
        importlib.import_module(name)
    missed = 0
    arguments = parser.parse_args()
    for path in arguments.modules:
        count, alive = 0, list[Change]()
        with tempfile.TemporaryDirectory() as folder:
            for change, survived in survivors(path, Path(folder), arguments.jobs):
                count += 1
                if survived and change.name not in known.get(path, {}):
                    alive.append(change)
                    print(f"{path}:{change.line}: {change.name}", flush=True)
        stale = {*known.get(path, {})} - {one.name for one in _all(path)}
        of_none = known.get(path, {})
        print(f"{path}: {count} changes, {len(alive)} unnoticed, {len(of_none)} are none")
        for name in stale:
            print(f"{KNOWN.name}: {path} has no such change: {name}")
        missed += len(alive) + len(stale)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
