"""Ctrl-C and a closed terminal at random moments of each long command, and a reader that leaves.

No traceback, nothing half-written, and the same command ends what it began.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from web_writer import write_web_set

from torture.conftest import make_sets
from torture.tool import LONG, SETS, command, environment, run
from zsntta_cli.cache.store import problems

MOMENTS = int(os.environ.get("ZSNTTA_MOMENTS", "100" if LONG else "2"))  # of Ctrl-C
TINY = ("--model=tiny", "--device=cpu")
COMMANDS = {
    "extract": ("extract", "--dataset=shapes", "--limit=60", "--batch-size=8", *TINY),
    "simulate": ("simulate", "--method=adand", "--method=cull", *SETS, "--set=warmup=1",
                 "--output=out.csv"),
    "detect": ("detect", "photos", "--classes=cat,dog,ox", *TINY, "--output=out.csv"),
    "paper": ("paper", "10", *TINY, "--output=out.csv"),
    "report": ("report", "theirs.jsonl", "--output=out.html"),
    "cache join": ("cache", "join", "web"),
    "records import": ("records", "import", "theirs.jsonl"),
}  # fmt: skip
PAPER = ("shapes", "glyphs", "textures", "other-shapes", "digits")
ALWAYS = ("simulate", "records import")  # without `make torture`
ENDS = {signal.SIGINT: (0, 130, -signal.SIGINT), signal.SIGHUP: (0, 129, -signal.SIGHUP)}


def done(*words, cwd):
    answer = run(*words, cwd=cwd)
    assert answer.returncode == 0, (words, answer.stderr)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder in which each of the commands has something to do."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("signals")
    make_sets(folder / "features")
    (folder / "photos").mkdir()
    for i in range(30):
        Image.new("RGB", (16, 16), (8 * i, 90, 255 - 8 * i)).save(folder / "photos" / f"{i}.png")
    write_web_set(folder / "web", [i % 3 for i in range(12)], ["cat", "dog", "ox"], a_shard=3)
    if LONG:
        sets = [f"--dataset={name}" for name in PAPER]
        done("extract", *sets, "--limit=60", "--noise=gaussian", *TINY, cwd=folder)
    for part in ("1/2", "2/2") if LONG else ():
        done(
            "extract",
            f"--dataset=web={folder / 'web'}",
            "--part",
            part,
            "--batch-size",
            4,
            *TINY,
            cwd=folder,
        )
    done("simulate", "--method=zs-clip", "--method=mcm", *SETS, cwd=folder)
    done("records", "export", "--output", "theirs.jsonl", cwd=folder)
    for path in (folder / "features").glob("records.sqlite*"):
        path.unlink()
    return folder


def half_written(folder: Path) -> list[str]:
    """What is wrong with what lies there."""
    wrong = [f"{path}: {p}" for path in folder.glob("features/*/*.h5") for p in problems(path)]
    for path in folder.glob("features/records.sqlite"):
        with closing(sqlite3.connect(path)) as store:
            [(said,)] = store.execute("PRAGMA integrity_check").fetchall()
            wrong += [] if said == "ok" else [said]
    for path in folder.glob("out.*"):
        end = "</html>" if path.suffix == ".html" else "\n"
        if not path.read_text().removesuffix("\n" if len(end) > 1 else "").endswith(end):
            wrong.append(f"{path.name} is half-written")
    return wrong


def hit(words, number, moment, cwd) -> list[str]:
    """Send a signal at a moment; what of the answer is bad."""
    process = subprocess.Popen(
        command(*words), cwd=cwd, env=environment(OPENBLAS_NUM_THREADS="1"), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(moment)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    wrong = half_written(cwd)
    if "Traceback" in said and 'zsntta_cli/__main__.py", line' in said:  # in main, or later
        wrong.append(said)
    if process.returncode not in ENDS[number] and "Traceback" not in said:
        wrong.append(f"exit code {process.returncode}: {said}")
    if process.returncode == 130 and "interrupted" not in said:
        wrong.append(f"nothing is said: {said}")
    return [f"after {moment:.3f} s: {one}" for one in wrong]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["INT", "HUP"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment(prepared, tmp_path, name, number):
    if not LONG and (name not in ALWAYS or number == signal.SIGHUP):
        pytest.skip("make torture")
    words, undisturbed = COMMANDS[name], tmp_path / "undisturbed"
    shutil.copytree(prepared, undisturbed)
    started = time.monotonic()
    done(*words, cwd=undisturbed)
    whole = time.monotonic() - started
    folder, bad, moments = tmp_path / "here", [], random.Random(0)
    times = MOMENTS if number == signal.SIGINT else -(-MOMENTS // 5)
    for i in range(times):
        if i % 10 == 0:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(prepared, folder)
        bad += hit(words, number, moments.uniform(0.1, whole), folder)
    done(*words, cwd=folder)
    bad += half_written(folder)
    bad += [f"{path} is left" for path in folder.rglob(".zsntta-*.tmp")]
    if named(folder) != named(undisturbed):
        bad.append(f"{named(folder) ^ named(undisturbed)} differ")
    assert not bad, bad


def named(folder) -> set[str]:
    """The files of a folder, but for locks and those of SQLite."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(p) for p in paths if not p.name.startswith(".") and "sqlite-" not in p.name}
