"""Write one file of each kind that this version writes: what later versions must read for ever.

`python tools/format_fixtures.py tests/formats/0.2.0` is run once for a version, before it is
published. tests/whole/test_formats.py reads the files of all versions.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CLASSES = ["cat", "dog", "ox"]
STREAM = ("--encoder", "made", "--id", "pets", "--ood", "sky", "--limit", "60")


def main(target: Path) -> None:
    """Make all files in a folder of their own, then put them into `target`."""
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_features()
        run("simulate", "--method", "zs-clip,adand,ridge", "--noise", "none", *STREAM, "--seed=0-1")
        run("records", "export", "--output", "runs.jsonl")
        for name in ("features", "runs.jsonl"):
            place = target / name
            shutil.copytree(name, place) if Path(name).is_dir() else shutil.copy(name, place)
    for left in (*target.rglob("*.lock"), *target.rglob("images.sqlite*")):
        left.unlink()


def make_features() -> None:
    """Two sets of 8 dims, as features made elsewhere: pets with texts, and sky."""
    rng = np.random.default_rng(0)
    text = np.linalg.qr(rng.standard_normal((8, 3)))[0].T
    labels = rng.integers(0, 3, 120)
    images = 10 * text[labels] + rng.standard_normal((120, 8))
    np.savez("pets.npz", features=images.astype(np.float16), labels=labels)
    np.savez("text.npz", text_features=text.astype(np.float32), class_names=CLASSES)
    np.save("sky.npy", (5 * rng.standard_normal((90, 8))).astype(np.float16))
    run("cache", "import", "pets", "--features", "pets.npz", "--text", "text.npz", "--encoder",
        "made", "--logit-scale", "100")  # fmt: skip
    run("cache", "import", "sky", "--features", "sky.npy", "--encoder", "made")


def run(*words: str) -> None:
    """Run zsntta."""
    subprocess.run([sys.executable, "-m", "zsntta_cli", *words], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
