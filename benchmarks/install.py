"""The size of an installation, and the time that pip takes, in new environments.

    python benchmarks/install.py

The script installs this checkout twice: as `pip install zsntta` does, and without torch, with the
two commands of docs/questions.md, "How large is it?". The time is that of the installation alone,
and depends on pip's cache and the network. MB count all files of the environment.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = r"pip install --no-deps zsntta\npip install (.*)"


def install(folder: Path, *commands: list[str]) -> tuple[float, float]:
    """The MB of a new environment after some pip commands, and their seconds."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    started = time.monotonic()
    for words in commands:
        subprocess.run([str(folder / "bin/pip"), "install", "--quiet", *words], check=True)
    seconds = time.monotonic() - started
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files) / 1e6, seconds


def main() -> None:
    [named] = re.findall(SMALL, (ROOT / "docs/questions.md").read_text("utf-8"))
    kinds = {
        "everything": [[str(ROOT)]],
        "without torch": [["--no-deps", str(ROOT)], named.split()],
    }
    print("| | MB | seconds |\n|---|---:|---:|")
    for name, commands in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            size, seconds = install(Path(folder) / "env", *commands)
        print(f"| {name} | {size:,.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
