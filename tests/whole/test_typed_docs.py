"""The programs of the pages pass `mypy --strict`, as one who copies them would run it."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def is_whole(program):
    """Whether the packages of other makers that a program is for are installed here."""
    return all(find_spec(name) for name in re.findall(r"^(?:from|import) (\w+)", program, re.M))


def test_programs_of_the_pages_are_typed(tmp_path):
    programs = {
        tmp_path / f"{page.stem.replace('-', '_')}_{number}.py": program
        for page in PAGES
        for number, program in enumerate(
            re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
        )
        if is_whole(program)
    }
    assert len(programs) >= 8
    for path, program in programs.items():
        path.write_text(program, encoding="utf-8")
    # Packages without types, as scikit-learn, are no fault of a program.
    command = (sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
               "--allow-subclassing-any", "--follow-imports", "silent")  # fmt: skip
    done = subprocess.run(
        [*command, *map(str, programs)], cwd=tmp_path, env={"MYPYPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
