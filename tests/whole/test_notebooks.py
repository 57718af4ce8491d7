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


def cells(path, kind):
    content = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def shown(path):
    """The kinds of what the cells show, and their text; pictures hang on what draws them."""
    outputs = [output for cell in cells(path, "code") for output in cell["outputs"]]
    texts = [
        "".join(output.get("text", []) or output["data"]["text/plain"])
        for output in outputs
        if PICTURE not in output.get("data", {})
    ]
    return [output["output_type"] for output in outputs], "\n".join(texts)


@pytest.mark.slow
@named
def test_it_runs_in_an_empty_folder_and_prints_what_is_saved(path, tmp_path):
    copy = Path(shutil.copy(path, tmp_path))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "run_notebooks.py"), str(copy)], text=True,
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (kinds, saved), (kinds_now, printed) = shown(path), shown(copy)
    stale = f"python tools/run_notebooks.py docs/{path.name}"
    assert kinds_now == kinds, stale
    assert re.sub(NUMBER, "#", printed).split() == re.sub(NUMBER, "#", saved).split(), stale
    # Another processor's sums may turn a decision here and there.
    numbers = [[float(n) for n in re.findall(NUMBER, text)] for text in (printed, saved)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1), stale


@named
def test_its_links_lead_somewhere_and_pages_link_it(path):
    prose = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    targets = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", prose)
    assert len(targets) >= 4
    assert not [target for target in targets if not (path.parent / target).exists()]
    assert f"]({path.name})" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
