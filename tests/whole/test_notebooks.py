"""The notebooks: they are whole, they run in an empty folder, and print what is saved in them."""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

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


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["detect", "results"]


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
def test_it_is_a_notebook(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    for cell in content["cells"]:
        more = {"code": {"execution_count", "outputs"}, "markdown": set()}[cell["cell_type"]]
        assert set(cell) == {"cell_type", "id", "metadata", "source", *more}
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    for number, cell in enumerate(cells(path), 1):
        assert cell["execution_count"] == number
        for output in cell["outputs"]:
            keys = {
                "stream": {"name", "text"},
                "execute_result": {"data", "execution_count", "metadata"},
            }[output["output_type"]]
            assert set(output) == {"output_type", *keys}
            if PICTURE in output.get("data", {}):
                Image.open(io.BytesIO(base64.b64decode(output["data"][PICTURE]))).verify()


@named
def test_it_is_small_and_names_no_machine(path):
    assert path.stat().st_size <= 200_000
    assert sum(len(cell["outputs"]) for cell in cells(path)) >= 8
    assert not re.findall(r"(?<![\w.])/(?:home|root|tmp|usr|work|Users)/", "\n".join(texts(path)))
    for cell in cells(path):
        assert not re.findall(r"^\s*[%!]", "".join(cell["source"]), re.MULTILINE), "plain Python"


@named
def test_its_links_lead_somewhere_and_pages_link_it(path):
    prose = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    targets = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", prose)
    assert len(targets) >= 4
    assert not [target for target in targets if not (path.parent / target).exists()]
    assert f"]({path.name})" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_a_cell_that_raises_fails_and_nothing_is_saved(tmp_path):
    path = tmp_path / "broken.ipynb"
    source = [["x = 2\n", "x + 1"], ["x / 0"]]
    made = [{"cell_type": "code", "source": lines, "outputs": []} for lines in source]
    path.write_text(json.dumps({"cells": made}))
    done = run(path)
    assert done.returncode == 1
    assert done.stderr.startswith("broken.ipynb, cell 2:\n")
    assert "ZeroDivisionError" in done.stderr
    assert cells(path)[0]["outputs"] == []
    path.write_text(json.dumps({"cells": made[:1]}))
    assert run(path).returncode == 0
    assert texts(path) == ["3"]
