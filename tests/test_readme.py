"""README's commands and its example method, run."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.methods import METHODS
from zsntta_cli.simulation.runs import PRESETS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def commands():
    """All `zsntta simulate` commands of the README, one line each, comments cut."""
    text = re.sub(r"\s*#.*", "", README.replace("\\\n", " "))
    found = re.findall(r"zsntta simulate [^`\n]*", text)
    return [
        c for c in dict.fromkeys(c.strip() for c in found) if "…" not in c and "record" not in c
    ]


@pytest.fixture
def everything(zsntta, cache, tmp_path):
    """The cached built-in sets with all noise types and a word list."""
    shutil.copytree(cache, tmp_path / "features")
    (tmp_path / "nouns.txt").write_text("apple\nboat\ncloud\n")
    noise = [x for n in ("uniform", "salt-and-pepper", "poisson") for x in ("--noise", n)]
    result = zsntta(
        "extract", "--dataset", "shapes", "--limit", 300, "--noise-count", 40, *noise,
        "--words", "nouns.txt", "--no-partners", "--model", "tiny",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return zsntta


def is_live(command):
    return any(f"--method {name}" in command for name in ("tent", "sotta", "tpt", "adand+tent"))


def test_the_readme_has_commands():
    assert len(commands()) >= 20


def test_every_command_of_the_readme_runs(everything):
    for command in commands():
        if "--encoder" in command or "--id mine" in command:
            continue  # import and a folder of one's own have tests of their own
        own = () if "--model" in command else ("--model", "tiny")
        command = re.sub(r" --id cifar\d+", "", command)  # the walk-through's sets
        few = () if not is_live(command) else ("--limit", 48, "--views", 2, "--ood", "glyphs")
        result = everything(*shlex.split(command)[1:], *own, *few)
        assert result.exit_code == 0, f"{command}: {result.output}"
        assert "ID: shapes" in result.stdout


def test_the_import_recipe(zsntta, tmp_path):
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((8, 3)))[0].T
    labels = generator.integers(0, 3, 200)
    features = 10 * text[labels] + generator.standard_normal((200, 8))
    np.savez(tmp_path / "features.npz", features=features, labels=labels)
    np.savez(tmp_path / "text.npz", text_features=text, class_names=["cat", "dog", "ox"])
    np.save(tmp_path / "sky.npy", 5 * generator.standard_normal((150, 8)))
    [recipe] = re.findall(r"```sh\n(zsntta cache import.*?)```", README, re.DOTALL)
    for command in recipe.splitlines():
        result = zsntta(*shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}: {result.output}"
    assert "ID: pets" in result.stdout


def test_the_readmes_method_runs_beside_the_others(cache, tmp_path):
    [source] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "margin.py").write_text(source)
    command = [sys.executable, "margin.py", "simulate", "--model", "tiny", "--method", "zs-clip",
               "--method", "margin", "--jobs", "2", "--features-dir", cache]  # fmt: skip
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "margin" in result.stdout
    assert "zs-clip" in result.stdout


def test_the_tables_name_everything_there_is():
    for name in (*METHODS, *PRESETS, *CATALOGUE):
        assert f"`{name}`" in README, name


def test_figures_are_filled_in():
    assert not re.findall(r"^[A-Z]{4,}$", README, re.MULTILINE)
