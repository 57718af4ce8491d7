"""Methods and data sets from scripts and from installed distributions, as a user has them."""

import json
import os
import subprocess
import sys

import pytest
from made import OWN_SCRIPT, ZSNTTA, fails

CLASSIFIER = """
from dataclasses import dataclass
from zsntta_cli.methods import CLASSIFIERS, Classifier
from zsntta_cli.methods import MethodSettings
from zsntta_cli.settings.options import option

@dataclass(frozen=True)
class LastSettings(MethodSettings):
    back: int = option(1, "Classes from the end.")

class Last(Classifier):
    Settings = LastSettings

    def classify(self, items, offered):
        return items.class_index

CLASSIFIERS["last"] = Last
"""
SET = """
import hashlib
import numpy as np
from PIL import Image
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.images import ImageSet

def read(name, data_root):
    return ImageSet(
        name, lambda i: Image.new("RGB", (32, 32), (40 * i, 0, 0)), np.arange(4, dtype=np.int32),
        tuple("abcd"), ["red", "green", "blue", "grey"], hashlib.sha256(b"reds").hexdigest(),
    )

ENTRY = DatasetEntry("id", 4, 4, "all", read, partners=("glyphs",))
"""
PAIR = ("--encoder", "made", "--id", "pets", "--ood", "sky")


@pytest.fixture
def typed(tmp_path, features):
    """Run zsntta in a process of its own, in a folder with some scripts."""
    (tmp_path / "own.py").write_text(OWN_SCRIPT)
    (tmp_path / "shifts.py").write_text("SHIFT = 0.0\n")

    def run(*words, **environment):
        command = [ZSNTTA, *map(str, words)]
        if "simulate" in words:
            command += ["--features-dir", str(features), "--records", "kept.sqlite"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


def simulated(typed, *words, plugins=("own.py",), **environment):
    given = [word for script in plugins for word in ("--plugin", script)]
    code, stdout, stderr = typed(
        *given, "simulate", *PAIR, "--format", "json", *words, **environment
    )
    assert code == 0, stderr
    return json.loads(stdout)


def test_a_script_adds_a_method_with_its_options(typed, tmp_path):
    (tmp_path / "last.py").write_text("print('this is no result')\n" + CLASSIFIER)
    records = simulated(
        typed, "--method", "own", "--method", "own+last", "--set", "cut=0.25,0.75",
        plugins=("own.py", "last.py"),
    )  # fmt: skip
    assert [record["settings"]["options"] for record in records] == [
        {"cut": 0.25}, {"cut": 0.75}, {"cut": 0.25, "back": 1}, {"cut": 0.75, "back": 1},
    ]  # fmt: skip
    assert [[*record["own"]] for record in records[1:3]] == [["own.py"], ["own.py", "last.py"]]
    assert typed("simulate", *PAIR, "--method", "own")[0] == 2, "without the script there is none"
    both = ("--plugin=own.py", "--plugin=last.py")
    code, listed, _ = typed(*both, "records", "list", "--records", "kept.sqlite")
    assert (code, listed.count("own")) == (0, 4)


def test_so_have_processes_that_begin_anew_and_programs(tmp_path, features, typed):
    (tmp_path / "program.py").write_text(
        "import threading, warnings\n"
        "import zsntta_cli\n"
        "if __name__ == '__main__':\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"  # no fork
        "    warnings.simplefilter('ignore')\n"
        f"    records = zsntta_cli.simulate('own', plugins=['own.py'], jobs=2, seed=range(8),\n"
        f"        encoder='made', id_set='pets', ood_set='sky', features_dir={str(features)!r},\n"
        "        records='kept.sqlite')\n"
        "    print(len(records), {type(record.settings.options).__name__ for record in records})\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("8 {'OwnSettings'}\n", 0), done.stderr


CLASS = "from zsntta_cli.methods import CLASSIFIERS, METHODS, Method\nclass Own(Method):\n"
PUSH = f"{CLASS}    def push(self, items, learn=True): return "
BROKEN = {
    "x = 1\nprint(y)\n": "broken.py, line 2: NameError: name 'y'",
    "raise SystemExit(3)\n": "broken.py, line 1: SystemExit: 3.",
    "from zsntta_cli.cli import main\nmain()\n": "broken.py runs zsntta while it is loaded",
    "from zsntta_cli.methods import METHODS\nMETHODS['x'] = print\n": "write class NAME(Method).",
    f"{CLASS}    Settings = dict\nMETHODS['x'] = Own\n": "Own.Settings has no settings: write ",
    f"{CLASS}    class Settings(Method.Settings):\n        a: int\nMETHODS['x'] = Own\n": "'x': "
    "Own.Settings.a has no default",
    f"{CLASS}    needs = 'words'\nMETHODS['x'] = Own\n": "Own needs words: add words: str = ",
    f"{CLASS}    pass\nclass Set(Method.Settings):\n    a: int = 1\nOwn.Settings = Set\n"
    "METHODS['own'] = Own\n": "Own.Settings has no settings: write ",
    OWN_SCRIPT.replace('"own"', '"adand"'): "'adand', but that name is taken",
    f"{PUSH}3\nMETHODS['zs-clp'] = Own\n": "zs-clp returns int, must return Decisions",
    f"{PUSH}{{}}['no such key']\nMETHODS['zs-clp'] = Own\n": "broken.py, line 3: KeyError: 'no",
}


@pytest.mark.parametrize(("source", "said"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_script_or_method_that_fails_is_one_line(scripted, features, tmp_path, source, said):
    (tmp_path / "broken.py").write_text(source)
    (tmp_path / "shifts.py").write_text("SHIFT = 0.0\n")
    run = ("simulate", *PAIR, "--features-dir", features, "--method", "zs-clp")
    fails(scripted("--plugin", "broken.py", *run), said, code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    {
        "--plugin own.py --plugin second.py simulate --method own": "second.py adds the method",
        "simulate --method cull+own": "zsntta --plugin own.py …",
        "simulate --method shifts": "method is 'shifts'",
    }.items(),
)
def test_scripts_that_do_not_fit_or_lack_are_one_line(scripted, tmp_path, words, said):
    for name, source in {
        "own.py": OWN_SCRIPT, "second.py": OWN_SCRIPT, "shifts.py": "SHIFT = 0.0\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(source)
    fails(scripted(*words.split()), said, code=2)


# Installed distributions


def install(folder, name, modules, **groups):
    """A distribution as pip leaves it in a folder."""
    folder.mkdir(exist_ok=True)
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [line for group, points in groups.items() for line in (f"[zsntta.{group}]", *points)]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def installed(tmp_path):
    folder = tmp_path / "site"
    install(
        folder, "own-things",
        {"own_things": OWN_SCRIPT.replace('METHODS["own"]', "METHOD"), "own_reds": SET,
         "own_last": CLASSIFIER.replace('CLASSIFIERS["last"]', "LAST"), "shifts": "SHIFT = 0.0\n"},
        methods=["installed = own_things:METHOD"], classifiers=["last = own_last:LAST"],
        datasets=["reds = own_reds:ENTRY"],
    )  # fmt: skip
    return folder


def test_what_a_distribution_declares_is_there(typed, installed):
    path = {"PYTHONPATH": str(installed)}
    assert "cut " in typed("methods", "show", "installed", **path)[1]
    chosen = ("--method", "installed", "--method", "installed+last", "--set", "cut=0.25")
    records = simulated(typed, *chosen, plugins=(), **path)
    assert [*records[0]["own"]] == ["own_things.py"]
    assert "reds" in typed("datasets", "list", **path)[1]
    assert typed("simulate", *PAIR, "--method", "installed")[0] == 2, "where it is not installed"


def test_what_cannot_be_had_of_distributions_is_left_out_and_noted(typed, installed):
    declared = {"installed": "other", "adand": "own_things", "three": "other", "lost": "broken"}
    install(
        installed, "other", {"other": "METHOD = 3\n", "broken": "import nothing_there\n"},
        methods=[f"{name} = {module}:METHOD" for name, module in declared.items()],
    )  # fmt: skip
    code, _, stderr = typed("simulate", *PAIR, "--method", "zs-clip", PYTHONPATH=str(installed))
    assert code == 0
    for name in declared:
        assert f"the entry point '{name}' of other " in stderr
