"""`zsntta detect` as it is typed: its rows, where they go, what is refused."""

import csv
import hashlib
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from detected import NAMES, SHAPES, rows
from made import TINY, ZSNTTA, fails, pack
from sorted_photos import photos_in, tree

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/verdict.schema.json").read_text())
# The most suspicious of 54 shapes (in folders of their names) and 6 letters (in x), with margins.
GOLDEN = {
    "x/00004": 2.3486, "circle/00010": 2.3270, "arrow/00018": 2.3025, "x/00003": 2.2276,
    "spiral/00009": 2.1890, "triangle/00012": 1.9944, "x/00000": 1.9699, "circle/00030": 1.9382,
    "x/00001": 1.8639, "cross/00025": 1.2974, "x/00002": 1.2512, "x/00005": 1.0355,
    "star/00043": 0.7171, "arrow/00028": 0.4830, "crescent/00047": 0.1613,
}  # fmt: skip


def verdicts(found):
    """Rows but for what they are called."""
    return [{**row, "source": Path(row["source"]).stem} for row in found]


def test_golden_rows_of_built_in_pictures(pictures):
    result = pictures("detect", "pictures", *SHAPES)
    found = rows(result)
    for row in found:
        jsonschema.validate(row, SCHEMA)
        assert row["content"] == hashlib.sha256(Path(row["source"]).read_bytes()).hexdigest()
    assert len(found) == 60
    assert [row["source"] for row in found] == sorted(row["source"] for row in found)
    by_rank = sorted(found, key=lambda row: row["rank"])[: len(GOLDEN)]
    for row, (name, margin) in zip(by_rank, GOLDEN.items(), strict=True):
        assert row["source"] == f"pictures/{name}.png"
        assert row["margin"] == pytest.approx(margin, abs=0.01)
        assert row["answer"] == "unsure", "no level of this encoder is known"
    assert sum(row["margin"] > 0.1 for row in found) == len(GOLDEN)
    right = sum(row["class"] == row["source"].split("/")[1] for row in found)
    assert right == pytest.approx(41, abs=1)
    assert {(row["encoder"], row["stage"]) for row in found} == {("tiny", "adapted")}
    answers = [row["answer"] for row in found]
    noise, unsure = answers.count("noise"), answers.count("unsure")
    assert f"60 images, {noise} flagged as noise, {unsure} unsure (cull" in result.stderr


def test_the_same_verdicts_whatever_the_images_come_from(pictures, tmp_path):
    expected = verdicts(rows(pictures("detect", "pictures", *SHAPES)))
    files = sorted(Path("pictures").rglob("*.png"))
    for name in ("all.tar", "all.zip"):
        pack(tmp_path / name, {str(path): path.read_bytes() for path in files})
    Path("list.txt").write_text("\n".join(map(str, files)))
    for sources in (["all.tar"], ["all.zip"], ["list.txt"], ["pictures/**/*.png"], files):
        assert verdicts(rows(pictures("detect", *sources, *SHAPES))) == expected, sources


def test_cached_features_are_judged(cached):
    found = rows(cached("detect", "--cached", "shapes", *TINY))
    assert len(found) == 300
    assert found[0]["source"].startswith("shapes/")
    assert all(len(row["top"]) == 5 for row in found)
    assert rows(cached("detect", "--cached", "shapes", "--encoder", "tiny")) == found
    two = rows(cached("detect", "--cached", "shapes", *TINY, "--classes", "star,circle"))
    assert {row["class"] for row in two} == {"star", "circle"}
    # Class names that are not cached are encoded: by the encoder, which is at hand.
    new = cached("detect", "--cached", "shapes", *TINY, "--classes", "hexagon,circle")
    assert {row["class"] for row in rows(new)} == {"hexagon", "circle"}


def test_a_level_set_for_an_encoder_decides(cached):
    command = ("detect", "--cached", "shapes", *TINY)
    assert {row["level"] for row in rows(cached(*command))} == {None}
    found = rows(cached(*command, "--set", "cull-low=-30", "--set", "cull.cull-high=-20"))
    assert {row["level"] for row in found} == {-30}
    assert all(row["evidence"] > -30 and not row["noise"] for row in found)


# Where rows go


def test_rows_go_to_files_by_their_endings(pictures):
    expected = rows(pictures("detect", "pictures", *SHAPES))
    for ending in ("jsonl", "csv"):
        result = pictures("detect", "pictures", *SHAPES, "--output", f"rows.{ending}")
        assert (result.exit_code, result.stdout) == (0, "")
    assert [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()] == expected
    read = list(csv.DictReader(io.StringIO(Path("rows.csv").read_text())))
    assert [row["source"] for row in read] == [row["source"] for row in expected]
    assert [row["noise"] for row in read] == [str(row["noise"]).lower() for row in expected]
    assert [float(row["margin"]) for row in read] == [row["margin"] for row in expected]
    assert json.loads(read[0]["top"]) == expected[0]["top"]


def test_copies_are_made_once_in_a_new_folder(pictures):
    before, run = photos_in(Path("pictures")), ("detect", "pictures", *SHAPES)
    result = pictures(*run, "--copy-to", "out")
    unsure = {Path(row["source"]).name for row in rows(result) if row["answer"] == "unsure"}
    assert "out: 60 copied." in result.stderr
    there = tree(Path("out"))
    assert sorted(photos_in(Path("out")).values()) == sorted(before.values())
    assert {path.name[:5] + ".png" for path in Path("out/_unsure").iterdir()} == unsure
    fails(pictures(*run, "--copy-to", "out"), "out already exists")
    assert tree(Path("out")) == there
    few = pictures(*run, "--copy-to", "few", "--only", "noise", "--flag", "3")
    assert "few: 3 copied." in few.stderr
    with open("few/verdicts.csv", newline="") as file:
        assert all(row["copy"].startswith("_noise/") for row in csv.DictReader(file))
    assert photos_in(Path("pictures")) == before


def test_on_a_terminal_there_is_a_table_and_on_arrival_a_line_each(pictures):
    def terminal(source):
        pid, fd = pty.fork()
        if not pid:
            os.dup2(os.open("list.txt", os.O_RDONLY), 0)
            os.environ.update(COLUMNS="80", TERM="dumb", NO_COLOR="1")
            os.execv(ZSNTTA, [str(ZSNTTA), "detect", source, *SHAPES])
        text = b""
        while True:
            try:
                piece = os.read(fd, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
        assert os.waitpid(pid, 0)[1] == 0
        os.close(fd)
        return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text.decode().replace("\r", ""))

    Path("list.txt").write_text("\n".join(map(str, sorted(Path("pictures").rglob("*.png")))))
    lines = terminal("pictures").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("rank"))
    assert lines[at].split() == ["rank", "margin", "answer", "nearest", "class", "image"]
    assert lines[at + 1].split()[::4] == ["1", "pictures/x/00004.png"]
    answers = [row["answer"] for row in rows(pictures("detect", "pictures", *SHAPES))]
    shown = min(len(answers) - answers.count("clean"), 20)
    table = lines[at + 1 : at + 1 + shown]
    assert max(map(len, table)) <= 80
    assert [line.split()[2] for line in table] == sorted(line.split()[2] for line in table)
    assert any(f"60 images, {answers.count('noise')} flagged as noise" in line for line in lines)
    assert "unsure  +0.73  arrow  pictures/arrow/00018.png" in terminal("-")


# How it is decided


def test_flags_and_exit_codes(pictures):
    def flagged(*options):
        return sum(row["noise"] for row in rows(pictures("detect", "pictures", *SHAPES, *options)))

    assert (flagged("--flag", "7"), flagged("--flag", "10%")) == (7, 6)
    for method in ("zs-clip", "adand"):
        assert 0 < flagged("--method", method) < 60
    found = pictures("detect", "pictures", *SHAPES, "--flag", "7", "--fail-on-noise")
    assert (found.exit_code, len(found.stdout.splitlines())) == (3, 60)


def test_what_is_known_is_judged_without_torch(pictures):
    """A file that cannot be read is known too."""
    Path("pictures/x/broken.png").write_bytes(b"no image")
    code = (
        "import sys; from zsntta_cli.detection import sources; from zsntta_cli.cli import main\n"
        "sources._SETTLED = 0.0\n"  # the copies were made just now
        f"try: main(['detect', 'pictures', '--classes', {NAMES!r}, '--model', 'tiny'])\n"
        "except SystemExit as end: print(end.code or 0, 'torch' in sys.modules, file=sys.stderr)"
    )
    for _ in range(2):  # the first time they are read
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        *said, last = done.stderr.splitlines()
        assert last == "0 False"
        [not_read] = [line for line in said if line.startswith("Not read: ")]
        assert not_read.endswith("(1 file, the first pictures/x/broken.png).")


def test_only_some_rows_and_paths_for_xargs(pictures):
    everything = rows(pictures("detect", "pictures", *SHAPES))
    noise = [row for row in everything if row["noise"]]
    assert rows(pictures("detect", "pictures", *SHAPES, "--only", "noise")) == noise
    for answer in ("unsure", "clean"):
        only = [row["source"] for row in everything if row["answer"] == answer]
        paths = pictures("detect", "pictures", *SHAPES, "--only", answer, "--print0")
        assert paths.stdout.split("\0")[:-1] == only
    pictures("detect", "pictures", *SHAPES, "--only", "noise", "--output", "noise.csv")
    assert len(Path("noise.csv").read_text().splitlines()) == 1 + len(noise)
