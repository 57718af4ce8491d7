"""`zsntta detect` as it is typed."""

import csv
import hashlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from made import TINY, ZSNTTA, fails, pack
from PIL import Image

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.detection.inputs import DETECTORS

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/verdict.schema.json").read_text())
NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)
# The most suspicious of 54 shapes (in folders of their names) and 6 letters (in x), with margins.
GOLDEN = {
    "x/00004": 2.3486, "circle/00010": 2.3270, "arrow/00018": 2.3025, "x/00003": 2.2276,
    "spiral/00009": 2.1890, "triangle/00012": 1.9944, "x/00000": 1.9699, "circle/00030": 1.9382,
    "x/00001": 1.8639, "cross/00025": 1.2974, "x/00002": 1.2512, "x/00005": 1.0355,
    "star/00043": 0.7171, "arrow/00028": 0.4830, "crescent/00047": 0.1613,
}  # fmt: skip


def rows(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def verdicts(found):
    """Rows but for what they are called."""
    return [{**row, "source": Path(row["source"]).stem} for row in found]


def test_golden_rows_of_built_in_pictures(pictures):
    result = pictures("detect", "pictures", *SHAPES)
    found = rows(result)
    for row in found:
        jsonschema.validate(row, SCHEMA)
    assert len(found) == 60
    assert [row["source"] for row in found] == sorted(row["source"] for row in found)
    by_rank = sorted(found, key=lambda row: row["rank"])[: len(GOLDEN)]
    for row, (name, margin) in zip(by_rank, GOLDEN.items(), strict=True):
        assert row["source"] == f"pictures/{name}.png"
        assert row["margin"] == pytest.approx(margin, abs=0.01)
        assert row["answer"] in ("noise", "unsure")
    assert sum(row["margin"] > 0.1 for row in found) == len(GOLDEN), "and one on the verge"
    right = sum(row["class"] == row["source"].split("/")[1] for row in found)
    assert right == pytest.approx(41, abs=1)
    assert {row["encoder"] for row in found} == {"tiny"}
    assert {row["stage"] for row in found} == {"adapted"}
    answers = [row["answer"] for row in found]
    noise, unsure = answers.count("noise"), answers.count("unsure")
    doubt = f", {unsure} unsure" if unsure else ""
    note, demonstration, first, *others = result.stderr.splitlines()
    assert note == f"note: 10 classes: {NAMES.replace(',', ', ')}."
    assert demonstration.startswith(
        "This is the embedded encoder: its verdicts are a demonstration"
    )
    assert first == f"60 images, {noise} flagged as noise{doubt} (ridge, 10 classes)."
    assert others == [], "of the embedded encoder no evidence is told"
    for row in found:
        assert row["content"] == hashlib.sha256(Path(row["source"]).read_bytes()).hexdigest()


def test_the_same_verdicts_whatever_the_images_come_from(pictures, tmp_path):
    expected = verdicts(rows(pictures("detect", "pictures", *SHAPES)))
    files = sorted(Path("pictures").rglob("*.png"))
    pack(tmp_path / "all.tar", {str(path): path.read_bytes() for path in files})
    pack(tmp_path / "all.zip", {str(path): path.read_bytes() for path in files})
    Path("list.txt").write_text("\n".join(map(str, files)))
    Path("moved").mkdir()
    shutil.copytree("pictures", "moved/pictures")
    for source in ("all.tar", "all.zip", "list.txt", "moved", "pictures/**/*.png"):
        assert verdicts(rows(pictures("detect", source, *SHAPES))) == expected, source
    assert verdicts(rows(pictures("detect", *files, *SHAPES))) == expected


def test_one_by_one_through_a_pipe_each_is_answered_at_once(pictures):
    names = [row["source"] for row in rows(pictures("detect", "pictures", *SHAPES))]
    whole = subprocess.run(
        [ZSNTTA, "detect", "-", *SHAPES], input="\n".join(names), text=True, capture_output=True,
        check=True,
    )  # fmt: skip
    expected = [json.loads(line) for line in whole.stdout.splitlines()]
    assert [row["source"] for row in expected] == names
    process = subprocess.Popen(
        [ZSNTTA, "detect", "-", *SHAPES], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        for row in expected[:12]:
            process.stdin.write(row["source"] + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == row
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


def test_ctrl_c_keeps_what_was_decided_on_arrival(pictures):
    command = [ZSNTTA, "detect", "-", *SHAPES]
    process = subprocess.Popen(
        [*command, "--out", "rows.csv", "--print0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    names = sorted(map(str, Path("pictures").rglob("*.png")))[:3]
    with process:
        process.stdin.write("\n".join([*names, ""]).encode())
        process.stdin.flush()
        assert process.stdout.read(len("".join(names)) + 3).decode().split("\0")[:3] == names
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        said = said.decode()
    assert process.returncode == 130
    assert said.splitlines()[2].startswith("3 images, ")
    assert said.splitlines()[-1].startswith("interrupted")
    with open("rows.csv") as file:
        assert [row["source"] for row in csv.DictReader(file)] == names


def test_from_cached_features(cached):
    found = rows(cached("detect", "--set", "shapes", *TINY))
    assert len(found) == 300
    assert found[0]["source"].startswith("shapes/")
    assert all(len(row["top"]) == 5 for row in found)
    two = rows(cached("detect", "--set", "shapes", *TINY, "--classes", "star,circle"))
    assert {row["class"] for row in two} == {"star", "circle"}
    assert sum(row["noise"] for row in two) > sum(row["noise"] for row in found)
    by_folder = rows(cached("detect", "--set", "shapes", "--encoder", "tiny"))
    assert by_folder == found
    # Class names that are not cached are encoded: by the encoder, which is at hand.
    new = cached("detect", "--set", "shapes", *TINY, "--classes", "hexagon,circle")
    assert {row["class"] for row in rows(new)} == {"hexagon", "circle"}


def test_features_made_elsewhere(zsntta, tmp_path):
    write_set(tmp_path, 50)
    found = rows(zsntta("detect", "--set", "mine", "--encoder", "made", "--classes", "ox,cat"))
    assert {row["class"] for row in found} <= {"ox", "cat"}
    fails(zsntta("detect", "--set", "mine", "--encoder", "made", "--classes", "ox,cow"),
          "what made the features of made is not known")  # fmt: skip
    fails(zsntta("detect", "--set", "mien", "--encoder", "made"), "did you mean 'mine'")
    fails(zsntta("detect", "--set", "cifar10"), "type zsntta extract --dataset cifar10")


def write_set(tmp_path, count):
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((8, 3)))[0].T.astype(np.float32)
    hdf5.write_features(
        tmp_path / "features/made/mine.h5", kind=DATASET, name="mine",
        encoder={"model": "made-up", "logit_scale": 20.0}, source={"images": count},
        blocks=[generator.standard_normal((count, 8)).astype(np.float16)],
        labels=np.full(count, -1, np.int32), sample_ids=[f"{i}.png" for i in range(count)],
        class_names=("cat", "dog", "ox"), texts=[Text("a photo of a {}.", text)],
    )  # fmt: skip


@pytest.mark.slow
def test_a_hundred_thousand_rows_into_head_end_quietly(tmp_path, zsntta):
    write_set(tmp_path, 100_000)
    command = [ZSNTTA, "detect", "--set", "mine", "--encoder", "made", "--method", "zs-clip"]
    for more in ([], ["--print0"], ["--out", "rows.csv", "--print0"]):
        process = subprocess.Popen(
            [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            assert len(process.stdout.read(10)) == 10
            process.stdout.close()
            said = process.stderr.read().decode()
        assert process.returncode == 0, said
        assert "Traceback" not in said
        assert "error" not in said
    assert len(Path("rows.csv").read_text().splitlines()) == 100_001, "the file is whole"


def test_rows_go_to_files_by_their_endings(pictures):
    expected = rows(pictures("detect", "pictures", *SHAPES))
    result = pictures("detect", "pictures", *SHAPES, "--out", "rows.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()] == expected
    pictures("detect", "pictures", *SHAPES, "--out", "rows.csv")
    read = list(csv.DictReader(io.StringIO(Path("rows.csv").read_text())))
    assert [row["source"] for row in read] == [row["source"] for row in expected]
    assert [row["noise"] for row in read] == [str(row["noise"]).lower() for row in expected]
    assert [float(row["margin"]) for row in read] == [row["margin"] for row in expected]
    assert json.loads(read[0]["top"]) == expected[0]["top"]
    assert read[0]["time_s"] == ""
    fails(pictures("detect", "pictures", *SHAPES, "--out", "rows.txt"),
          "must end in one of .jsonl, .csv, .parquet", code=2)  # fmt: skip
    fails(pictures("detect", "pictures", *SHAPES, "--out", "pictures"), "it is a folder")


def test_rows_as_parquet(pictures):
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = rows(pictures("detect", "pictures", *SHAPES))
    result = pictures("detect", "pictures", *SHAPES, "--out", "rows.parquet")
    assert result.exit_code == 0, result.output
    assert parquet.read_table("rows.parquet").to_pylist() == expected


def test_parquet_without_what_writes_it_says_what_to_install(pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    fails(pictures("detect", "pictures", *SHAPES, "--out", "rows.parquet"),
          "rows.parquet is Parquet: pip install 'zsntta[parquet]' reads and writes it")  # fmt: skip


def test_only_some_and_paths_for_xargs(pictures):
    everything = rows(pictures("detect", "pictures", *SHAPES))
    noise = [row for row in everything if row["noise"]]
    assert rows(pictures("detect", "pictures", *SHAPES, "--only", "noise")) == noise
    for answer in ("unsure", "clean"):
        only = [row["source"] for row in everything if row["answer"] == answer]
        paths = pictures("detect", "pictures", *SHAPES, "--only", answer, "--print0")
        assert paths.stdout.split("\0")[:-1] == only
    pictures("detect", "pictures", *SHAPES, "--only", "noise", "--out", "noise.csv")
    assert len(Path("noise.csv").read_text().splitlines()) == 1 + len(noise)


def test_flags_and_exit_codes(pictures):
    def flagged(*options):
        result = pictures("detect", "pictures", *SHAPES, *options)
        return sum(row["noise"] for row in rows(result))

    assert flagged("--flag", "7") == 7
    assert flagged("--flag", "10%") == 6
    for method in ("zs-clip", "adand"):
        assert 0 < flagged("--method", method) < 60
    found = pictures("detect", "pictures", *SHAPES, "--flag", "7", "--fail-on-noise")
    assert found.exit_code == 3
    assert len(found.stdout.splitlines()) == 60
    one = pictures("detect", "pictures/star", *SHAPES, "--flag", "1%", "--fail-on-noise")
    assert one.exit_code == 3, "a share above 0 is of one image at least"
    assert "1 flagged as noise (ridge" in one.stderr
    assert "beyond your classes" not in one.stderr, "one's own flag says nothing of that"
    few = sorted(Path("pictures/star").iterdir())[:3]
    doubt = pictures("detect", *few, *SHAPES, "--fail-on-noise")
    assert doubt.exit_code == 0, "unsure is no noise"
    assert "beyond your classes" not in doubt.stderr


def test_one_class_and_three_images(pictures):
    [*found] = rows(pictures("detect", "pictures", "--classes", "star", *TINY))
    assert {row["class"] for row in found} == {"star"}
    assert len({row["score"] for row in found}) > 30
    few = sorted(Path("pictures/star").iterdir())[:3]
    result = pictures("detect", *few, *SHAPES)
    assert len(rows(result)) == 3
    assert "All by ZS-CLIP's rule: of fewer than 6 images ridge cannot tell" in result.stderr


def test_a_broken_image_is_a_row_and_not_the_end(pictures):
    Path("pictures/star/00003.png").write_bytes(b"no image")
    Path("list.txt").write_text("pictures/star/00003.png\nnone.png\npictures/x/00000.png\n")
    result = pictures("detect", "list.txt", *SHAPES)
    broken, gone, read = rows(result)
    assert broken["error"] == "it is a text"
    assert gone["error"] == "No such file or directory: none.png"
    assert read["error"] is None
    assert "3 images, 0 flagged" in result.stderr or "3 images, 1 flagged" in result.stderr
    assert "(ridge, 10 classes), 2 not read.\n" in result.stderr
    assert "Not read: it is a text (1 file, the first pictures/star/00003.png); " in result.stderr
    assert len(rows(pictures("detect", "list.txt", *SHAPES, "--only", "clean"))) <= 1


def test_copies(pictures):
    before = {p: p.read_bytes() for p in Path("pictures").rglob("*.png")}
    found = rows(pictures("detect", "pictures", *SHAPES, "--copy-to", "out"))
    noise = {Path(row["source"]).name for row in found if row["noise"]}
    assert len(list(Path("out").rglob("*.png"))) == 60
    assert {p.name[:5] + ".png" for p in Path("out/_noise").iterdir()} == noise
    some = pictures("detect", "pictures", *SHAPES, "--copy-to", "some", "--only", "noise")
    assert {p.parent.name for p in Path("some").rglob("*.png")} == {"_noise"}, some.stderr
    assert {p: p.read_bytes() for p in Path("pictures").rglob("*.png")} == before


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (
            ["pictures"],
            "name your classes: --classes cat,dog, --classes-file FILE or --class-photos DIR",
            2,
        ),
        (["pictures", "--classes", "cat", "--classes-file", "x"], "both given", 2),
        (["pictures", "--classes", ""], "--classes is empty: name one class or more", 2),
        (["pictures", "--classes", "cat,dog,cat"], "'cat' is there twice", 2),
        (["pictures", "--classes-file", "none"], "cannot read the class names none", 2),
        (["--classes", "cat"], "say which images", 2),
        (["picture", "--classes", "cat"], "no picture (did you mean 'pictures'?)", 1),
        (["empty", "--classes", "cat"], "no image in empty", 1),
        (["http://a.b/c.png", "--classes", "cat"], "is an address", 2),
        (["pictures", "--classes", "cat", "--flag", "x"], "flag is 'x'", 2),
        (["pictures", "--classes", "cat", "--flag", "fpr=1%"], "--flag fpr= is gone: --flag 5%", 2),
        (["pictures", "--classes", "cat", "--method", "tent"], "method is 'tent'", 2),
        (["pictures", "--classes", "cat", "--encoder", "tiny"], "features are of one encoder", 2),
        (["pictures", "--classes", "cat", "--prompt", "x"], "prompt 'x' is neither", 2),
    ],
)
def test_what_is_wrong_is_one_line(pictures, options, said, code):
    Path("empty").mkdir()
    pack(Path("all.tar"), {"a.png": b""})
    fails(pictures("detect", *options, *TINY), said, code=code)


def test_every_option_is_taken(pictures):
    Path("names.txt").write_text("star\ncircle\n")
    found = pictures(
        "detect", "pictures", "--classes-file", "names.txt", "--prompt", "paper", "--model", "tiny",
        "--pretrained", "embedded", "--precision", "fp32", "--device", "cpu",
        "--features-dir", "elsewhere", "--all-folders", "--max-megapixels", "1",
    )  # fmt: skip
    assert {row["class"] for row in rows(found)} == {"star", "circle"}
    assert Path("elsewhere/tiny/images.sqlite").is_file()


def test_one_name_with_a_space_is_said_to_be_one_class(pictures):
    one = pictures("detect", "pictures", "--classes", "big star", *TINY)
    assert one.stderr.startswith("note: 'big star' is one class: commas separate names.\n")
    assert "note: 1 class: big star.\n" in one.stderr
    assert {row["class"] for row in rows(one)} == {"big star"}
    for names in ("star", "big star,circle"):
        assert (
            "one class: commas"
            not in pictures("detect", "pictures", "--classes", names, *TINY).stderr
        )


def test_classes_that_the_encoder_cannot_tell_apart_are_told(pictures):
    result = pictures("detect", "pictures", "--classes", "cat,dog,star", *TINY)
    assert "warning: to this encoder 'cat' and 'dog' are the same words." in result.stderr


def test_on_a_terminal_there_is_a_table_of_80_columns(pictures, tmp_path):
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
        return text.decode().replace("\r", "")

    Path("list.txt").write_text("\n".join(map(str, sorted(Path("pictures").rglob("*.png")))))
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal("pictures"))
    lines = shown.splitlines()
    table = [line for line in lines if line.split()[2:3] == ["noise"] or line.startswith("rank")]
    assert max(map(len, table)) <= 80
    at = next(i for i, line in enumerate(lines) if line.startswith("rank"))
    assert lines[at].split() == ["rank", "margin", "answer", "nearest", "class", "image"]
    assert lines[at + 1].split()[::4] == ["1", "pictures/x/00004.png"]
    answers = [row["answer"] for row in rows(pictures("detect", "pictures", *SHAPES))]
    shown_rows = len(answers) - answers.count("clean")
    table = [line.split()[2] for line in lines[at + 1 : at + 1 + min(shown_rows, 20)]]
    assert table == sorted(table), "noise, then unsure"
    assert any(f"60 images, {answers.count('noise')} flagged as noise" in line for line in lines)
    live = terminal("-")
    assert "unsure  +0.73  arrow  pictures/arrow/00018.png" in live


def test_the_replay_of_known_features_does_not_load_torch(pictures):
    code = (
        "import sys; from zsntta_cli.cli import app\n"
        f"try: app(['detect', 'pictures', '--classes', {NAMES!r}, '--model', 'tiny'])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules, file=sys.stderr)"
    )
    time.sleep(4.5)  # until the copies' stamps are trusted
    for _ in range(2):  # the first time they are read
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
        assert done.stderr.splitlines()[-1] == "0 False"


def test_names_of_any_bytes(pictures):
    name = os.fsdecode(b"pictures/x/\xff\x1b[31m\n.png")
    shutil.copy("pictures/x/00000.png", name)
    Image.new("RGB", (8, 8)).save("pictures/x/ünï.png")
    found = rows(pictures("detect", "pictures/x", *SHAPES))
    assert name in [row["source"] for row in found]
    result = pictures("detect", "pictures/x", *SHAPES, "--out", "rows.csv")
    assert result.exit_code == 0
    read = csv.DictReader(io.StringIO(Path("rows.csv").read_text(errors="surrogateescape")))
    assert name in [row["source"] for row in read]


def test_methods_that_decide_online_are_those_of_the_help(pictures):
    assert DETECTORS == ("zs-clip", "adand", "ridge")
    assert "zs-clip, adand or ridge" in pictures("detect", "--help").stdout
