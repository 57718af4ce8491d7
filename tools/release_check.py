"""Try out a release before it is published: `make release-check`.

A wheel and an sdist are built, and the wheel must have every file of the package and no other. It
is then installed in clean environments outside the repository, with the newest and the oldest
versions that it permits. In each of them the demo runs, and a program that uses the public names
must pass `mypy --strict`. This needs uv, and a network or a cache of packages.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUST_HAVE = (  # files that a wheel once lacked, or may easily lack
    "zsntta_cli/py.typed",
    "zsntta_cli/encoders/assets/tiny.safetensors",
    "zsntta_cli/datasets/wordnet/words.tsv.gz",
    "zsntta_cli/datasets/wordnet/LICENSE",
    "zsntta_cli/report/page/page.html",
    "zsntta_cli/report/review/review.html",
    "zsntta_cli/report/references.bib",
    "zsntta_cli/paper/published.csv",
    "zsntta_cli/paper/tables.toml",
)
LICENCES = ("LICENSE", "zsntta_cli/datasets/wordnet/LICENSE")
PROGRAM = '''"""What a program does with the public names."""

import numpy as np

import zsntta_cli as z

detector = z.Detector(np.eye(3, 8, dtype=np.float32), 100.0, names=["a", "b", "c"])
verdicts: z.Verdicts = detector.update(np.arange(16, dtype=np.float32).reshape(2, 8))
answers: list[str] = [row["answer"] for row in verdicts.rows()]
for record in z.simulate("zs-clip", model="tiny", limit=60, features_dir="features"):
    accuracy: float = record.accuracies.acc_s
    reveal_type(accuracy)
reveal_type(detector.seen)
reveal_type(z.METHODS["adand"])
try:
    z.extract("shapes", model="tiny", limit=10, features_dir="small")
except z.ZsnttaError as error:
    print(error)
'''
REVEALED = ["float", "int", "Method"]


def main() -> int:
    """Run all checks; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=["3.11", "3.14"], metavar="VERSION|PATH")
    parser.add_argument("--torch-backend", default="cpu", help="uv's option; '' means PyPI's torch")
    arguments = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "dist"
        run(["uv", "build", "--quiet", "--out-dir", str(built), str(ROOT)])
        [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {sdist.name}")
        failures += wrong_content(wheel)
        oldest, newest = arguments.python[0], arguments.python[-1]
        tries = [(oldest, "lowest-direct"), (oldest, "highest"), (newest, "highest")]
        for number, (python, resolution) in enumerate(dict.fromkeys(tries)):
            place = Path(folder) / f"environment-{number}"
            began = time.perf_counter()
            found = tried(place, wheel, python, resolution, arguments.torch_backend)
            seconds = time.perf_counter() - began
            print(f"Python {python}, {resolution}: {found or 'passed'} ({seconds:.0f} s)")
            failures += [found] * bool(found)
    print("release-check:", f"{len(failures)} failed" if failures else "passed")
    return bool(failures)


def wrong_content(wheel: Path) -> list[str]:
    """What is wrong with the wheel's files: files of the package that are missing, or others."""
    package = package_files()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        information = {n.partition(".dist-info/")[2] for n in archive.namelist()} - {""}
    wrong = [f"the wheel lacks {name}" for name in sorted({*package, *MUST_HAVE} - names)]
    wrong += [f"the wheel has {name}, which git does not know" for name in sorted(names - package)]
    licences = {f"licenses/{name}" for name in LICENCES}
    wrong += [f"the wheel lacks {name}" for name in sorted(licences - information)]
    print(f"wheel: {len(names)} files", *wrong, sep="\n  ")
    return wrong


def package_files() -> set[str]:
    """The files of the package that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "zsntta_cli"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def tried(place: Path, wheel: Path, python: str, resolution: str, torch_backend: str) -> str:
    """The command that failed in a clean environment, and the end of its output."""
    backend = [f"--torch-backend={torch_backend}"] if torch_backend else []
    binary = place / "bin"
    inside = {**os.environ, "VIRTUAL_ENV": str(place), "PYTHONPATH": "", "COLUMNS": "120"}
    work = place / "elsewhere"
    steps: list[Sequence[str]] = [
        ["uv", "venv", "--quiet", "--python", python, str(place)],
        ["uv", "pip", "install", "--quiet", "--resolution", resolution, *backend, str(wheel),
         "mypy>=1.10"],
        [f"{binary}/zsntta", "--version"],
        [f"{binary}/zsntta", "demo"],
        [f"{binary}/mypy", "--strict", "program.py"],
        [f"{binary}/python", "-W", "error", "-c", "import zsntta_cli; dir(zsntta_cli)"],
    ]  # fmt: skip
    for step in steps:
        if place.exists():
            work.mkdir(exist_ok=True)
            (work / "program.py").write_text(PROGRAM, encoding="utf-8")
        done = subprocess.run(
            step, cwd=work if work.exists() else place.parent, env=inside, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            end = (done.stdout + done.stderr).strip().splitlines()[-5:]
            return f"{' '.join(step)}: " + "\n    ".join(end)
        if "mypy" in step[0]:
            revealed = re.findall(r'Revealed type is "(?:[\w.]*\.)?(\w+)"', done.stdout)
            if revealed != REVEALED:
                return f"mypy sees {revealed}, not {REVEALED}"
    return ""


def run(command: Sequence[str]) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
