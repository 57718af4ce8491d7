"""The notebooks: they are whole, they run in an empty folder, and print what is saved in them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))
PICTURE, NUMBER = "image/png", r"\d+(?:\.\d+)?"
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def run(path):
    command = [sys.executable, str(ROOT / "tools" / "run_notebooks.py"), str(path)]
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=around)


def cells(path, kind="code"):
    content = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def texts(path):
    """What the cells print and show as text; pictures hang on the libraries that draw them."""
    outputs = [output for cell in cells(path) for output in cell["outputs"]]
    return [
        "".join(output.get("text", []) or output["data"]["text/plain"])
        for output in outputs
        if PICTURE not in output.get("data", {})
    ]


def numbers(text):
    return [float(number) for number in re.findall(NUMBER, text)]


@pytest.mark.slow
@named
def test_it_runs_in_an_empty_folder_and_prints_what_is_saved(path, tmp_path):
    copy = Path(shutil.copy(path, tmp_path))
    done = run(copy)
    assert done.returncode == 0, done.stderr
    saved, printed = "\n".join(texts(path)), "\n".join(texts(copy))
    stale = f"python tools/run_notebooks.py docs/{path.name}"
    assert re.sub(NUMBER, "#", printed).split() == re.sub(NUMBER, "#", saved).split(), stale
    # Another processor's sums may turn a decision here and there.
    assert numbers(printed) == pytest.approx(numbers(saved), abs=1), stale
    kinds = [[output["output_type"] for output in cell["outputs"]] for cell in cells(path)]
    assert [[o["output_type"] for o in cell["outputs"]] for cell in cells(copy)] == kinds


@named
def test_its_links_lead_somewhere_and_pages_link_it(path):
    prose = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    targets = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", prose)
    assert len(targets) >= 4
    assert not [target for target in targets if not (path.parent / target).exists()]
    assert f"]({path.name})" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
