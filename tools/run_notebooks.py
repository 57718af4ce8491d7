"""Run notebooks in an empty folder, and save the outputs of their cells.

    python tools/run_notebooks.py docs/detect.ipynb docs/results.ipynb

Cells run in order in one plain Python process, without Jupyter: a cell's output is what it prints,
then its last expression, as a picture if it is one. Cells therefore use no magic, and tests need no
kernel.
"""

import ast
import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

Cell = dict[str, Any]

_SAME = {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}  # for the same output on every machine


def run(path: Path) -> bool:
    """Run one notebook in a separate process; return whether all of its cells ran."""
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, str(Path(__file__).resolve()), "--here", str(path.resolve())]
        around = {**os.environ, **_SAME, "TMPDIR": empty}
        return subprocess.run(command, cwd=empty, env=around, check=False).returncode == 0


def fill(path: Path) -> None:
    """Run a notebook's cells here and save it with their outputs.

    Raises:
        SystemExit: a cell raised; nothing is saved then.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, 1):
        try:
            cell["outputs"] = outputs_of("".join(cell["source"]), number, names)
        except Exception:
            sys.exit(f"{path.name}, cell {number}:\n{traceback.format_exc()}")
        cell["execution_count"] = number
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def outputs_of(source: str, number: int, names: dict[str, Any]) -> list[Cell]:
    """Run a cell in the namespace of those before it; return its outputs in nbformat 4."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"<cell {number}>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)
    outputs: list[Cell] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": split(text)})
    if value is not None:
        data, kind = shown(value), "execute_result"
        outputs.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": kind}
        )
    return outputs


def shown(value: Any) -> Cell:
    """A value as a notebook shows it: a picture, or its text."""
    if hasattr(value, "_repr_png_"):
        name = f"<{type(value).__name__} {value.size[0]}x{value.size[1]}>"
        picture = base64.b64encode(value._repr_png_()).decode()
        return {"image/png": picture, "text/plain": [name]}
    return {"text/plain": split(repr(value))}


def split(text: str) -> list[str]:
    """Lines as nbformat stores them."""
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        fill(Path(sys.argv[2]))
    else:
        sys.exit(bool([name for name in sys.argv[1:] if not run(Path(name))]))
