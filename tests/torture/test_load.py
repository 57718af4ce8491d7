"""Much of all: records, items of a stream, images. What is large goes, in bounded memory."""

import json
import os
import subprocess
import tarfile
import threading
from io import BytesIO

import pytest

from torture.conftest import make_sets
from torture.tool import LONG, SETS, command, count, environment

RECORDS = 50_000
ITEMS = (1_000_000, 5_000_000)
IMAGES = 100_000
GIB = 1 << 30
pytestmark = pytest.mark.skipif(not LONG, reason="make torture")


def run(*words, cwd):
    """Its answer; and its peak memory in bytes."""
    process = subprocess.Popen(
        command(*words), cwd=cwd, env=environment(OPENBLAS_NUM_THREADS="1"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
    reader.start()
    answer = process.stdout.read()
    reader.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    return process.returncode, answer, said[0], usage.ru_maxrss * 1024


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """A folder with 50,000 records, of one that was made and of other seeds, in a file."""
    folder = tmp_path_factory.mktemp("records")
    make_sets(folder / "features")
    words = ("simulate", "--method=zs-clip", *SETS)
    assert run(*words, cwd=folder)[0] == 0
    code, answer, said, _ = run("records", "export", cwd=folder)
    assert code == 0, said
    kept = json.loads(answer.splitlines()[0])
    del kept["key"]  # is computed
    with open(folder / "many.jsonl", "w") as file:
        for seed in range(RECORDS):
            kept["record"]["settings"]["stream"]["seed"] = seed
            file.write(json.dumps(kept) + "\n")
    return folder


def test_fifty_thousand_records(export):
    lines = (
        ("records", "import", "many.jsonl"), ("records", "list"),
        ("records", "export", "--output=again.jsonl"),
        ("report", "--output=page.html"),
    )  # fmt: skip
    bad = []
    for words in lines:
        code, _, said, peak = run(*words, cwd=export)
        if code or "Traceback" in said or peak > 4 * GIB:
            bad.append((words, code, said, peak))
    again = (export / "again.jsonl").read_bytes().count(b"\n")
    if again < RECORDS:
        bad.append(f"{again} records of {RECORDS}")
    count("commands on 50,000 records", len(lines), bad)


@pytest.mark.parametrize("items", ITEMS)
def test_streams_of_millions(tmp_path, items):
    make_sets(tmp_path / "features", items // 2, 1000)
    bad, methods = [], ("zs-clip", "adand", "ridge")
    for method in methods:
        code, answer, said, peak = run(
            "simulate", f"--method={method}", *SETS, "--format=json", cwd=tmp_path
        )
        if code or "Traceback" in said or peak > 12 * GIB:
            bad.append((method, code, said, peak))
        elif not sum(json.loads(answer)[0]["counts"].values()) >= items:
            bad.append((method, json.loads(answer)[0]["counts"]))
    count(f"streams of {items:,} items", len(methods), bad)


def test_a_hundred_thousand_images(tmp_path):
    """A hundred pictures, each a thousand times under its own name, in a tar."""
    from PIL import Image

    pictures = []
    for i in range(100):
        file = BytesIO()
        Image.new("RGB", (8, 8), (2 * i, 100, 255 - 2 * i)).save(file, "png")
        pictures.append(file.getvalue())
    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        for i in range(IMAGES):
            member = tarfile.TarInfo(f"{i:06}.png")
            member.size = len(pictures[i % 100])
            tar.addfile(member, BytesIO(pictures[i % 100]))
    code, _, said, peak = run(
        "detect", "photos.tar", "--classes=cat,dog,ox", "--model=tiny", "--device=cpu",
        "--out=out.csv", cwd=tmp_path,
    )  # fmt: skip
    bad = [] if code == 0 and "Traceback" not in said and peak < 8 * GIB else [(code, said, peak)]
    rows = (tmp_path / "out.csv").read_text().count("\n") - 1 if not code else 0
    count("images of one `detect`", IMAGES, bad or ([] if rows == IMAGES else [f"{rows} rows"]))
