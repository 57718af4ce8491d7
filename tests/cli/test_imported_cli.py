"""What a command imports: each in a process of its own, which says what it has loaded."""

import subprocess
import sys

import numpy as np
import pytest
from kept import kept_run

from zsntta_cli.results.store import RecordStore

HEAVY = {"torch", "torchvision", "sklearn", "scipy", "PIL", "jinja2", "numpy.ma", "matplotlib"}
PROGRAM = """
import sys
from zsntta_cli.cli import main
for line in sys.argv[1].splitlines():
    try:
        main(line.split())
    except SystemExit as ended:
        assert not ended.code, line
    finally:
        print("--loaded--", *sys.modules)
"""


def loaded(*lines, cwd):
    """The modules that are loaded after each of some commands in one process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "\n".join(lines)], cwd=cwd, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [
        {*line.split()[1:]} for line in done.stdout.splitlines() if line.startswith("--loaded--")
    ]


def of_methods(modules):
    """Those of methods/, by their names within it."""
    names = {name for name in modules if name.startswith("zsntta_cli.methods.")}
    folders = {"detectors", "classifiers", "words", "live"}
    return {name.removeprefix("zsntta_cli.methods.") for name in names} - folders


def test_help_imports_no_array_and_no_method_and_a_command_no_other(tmp_path):
    asked = ("-h", "methods check -h", "simulate -h", "plot -h")
    for modules in loaded(*asked, cwd=tmp_path):
        assert of_methods(modules) <= {"method"}
        assert not modules & {"numpy", "h5py", *HEAVY}
    [modules] = loaded("cache list", cwd=tmp_path)
    assert "zsntta_cli.cli.cache" in modules
    assert not {f"zsntta_cli.cli.{name}" for name in ("simulate", "extract", "detect")} & modules


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("datasets", {"PIL"}),
        ("cache import pets --features in.npz", {"PIL", "scipy", "numpy.ma", "sklearn"}),
        ("plot ranks --output f.csv", {"scipy", "numpy.ma", "PIL", "sklearn"}),
    ],
)
def test_what_needs_no_torch_and_no_drawing_loads_none(tmp_path, line, allowed):
    np.savez(tmp_path / "in.npz", features=np.eye(5, 8))
    runs = [kept_run(method, known=k) for method, k in (("zs-clip", 5), ("adand", 7))]
    with RecordStore(tmp_path / "features" / "records.sqlite", create=True) as store:
        store.add(runs)
    [modules] = loaded(line, cwd=tmp_path)
    assert not modules & (HEAVY - allowed)


@pytest.mark.parametrize("method", ["adand", "oodd"])
def test_a_replay_imports_its_method_alone_and_nothing_heavy(method, cache, tmp_path):
    run = f"simulate --method {method} --model tiny --features-dir {cache}"
    asked, replayed = loaded(f"{run} -h", f"{run} --records {tmp_path}/kept.sqlite", cwd=tmp_path)
    for modules in (asked, replayed):
        assert {name for name in of_methods(modules) if "." in name} <= {f"detectors.{method}"}
        assert not modules & HEAVY
