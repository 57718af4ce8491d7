"""What is left out of folders and archives is said, by kind, in one line."""

import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.detection.sources import Scan, batches, images_below
from zsntta_cli.errors import DatasetError

WORDS = {
    "video": (".mp4", ".MOV", ".mkv"),
    "archive": (".zip", ".tar", ".tar.gz"),
    "RAW photo": (".CR2", ".nef"),
    "picture": (".psd", ".svg"),
}
OTHERS = (".txt", ".json", "", ".py", ".xmp")
WORDS["file"] = OTHERS
ENDINGS = [*sum(WORDS.values(), ())]


def counts(line):
    """Counts by kind that a line has."""
    pattern = r"([\d,]+) (video|archive|RAW photo|picture|file)s?"
    return {kind: int(number.replace(",", "")) for number, kind in re.findall(pattern, line)}


@given(st.lists(st.tuples(st.sampled_from(["", "a/", "a/b/"]), st.sampled_from(ENDINGS))))
def test_every_file_is_counted_by_its_kind(files):
    left_out = LeftOut()
    for number, (folder, ending) in enumerate(files):
        left_out.add(f"{folder}x{number}{ending}")
    expected = Counter(
        kind for _, ending in files for kind, endings in WORDS.items() if ending in endings
    )
    line = left_out.words()
    assert counts(line) == expected
    assert left_out.files == len(files)
    assert bool(line) == bool(expected)
    assert len(re.findall(r"x\d+", line)) == sum(min(3, count) for count in expected.values())
    assert line.count("…") == sum(count > 3 for count in expected.values())


def test_folders_are_looked_through_without_what_is_hidden(tmp_path):
    for name in ("a.png", "b.mp4", ".c.mp4", "x/d.mov", "@eaDir/f.mp4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    left_out = LeftOut()
    scan = Scan(left_out=left_out)
    assert [item.source for item in images_below(tmp_path, scan)] == [str(tmp_path / "a.png")]
    assert left_out.words() == (
        "2 videos (b.mp4, d.mov), read only if you name them; 1 hidden file (.c.mp4); "
        "1 hidden folder (@eaDir)"
    )


def test_it_is_said_below_the_verdicts(pictures, tmp_path):
    for name in ("holiday.MP4", "old.zip", "raw.NEF", "notes.txt"):
        Path("pictures", name).touch()
    result = pictures("detect", "pictures", "--classes", "circle,square", "--model", "tiny")
    said = [line for line in result.stderr.splitlines() if line.startswith("Left out")]
    assert said == [
        "Left out: 1 video (holiday.MP4) and 1 archive (old.zip), read only if you name them; "
        "1 RAW photo (raw.NEF), which cannot be read; 1 file that is no picture (notes.txt)."
    ]
    assert result.stderr.endswith("\n64 files: 60 judged, 4 left out.\n")
    assert "holiday" not in result.stdout


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_folder_of_videos_alone_says_what_to_do(tmp_path, zsntta, is_packed):
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "a.mp4").touch()
    source = tmp_path / "clips"
    if is_packed:
        source = tmp_path / "clips.zip"
        with zipfile.ZipFile(source, "w") as packed:
            packed.write(tmp_path / "clips" / "a.mp4", "clips/a.mp4")
    result = zsntta("detect", source, "--classes", "cat", "--model", "tiny")
    assert result.exit_code == 1
    assert "left out: 1 video (a.mp4), read only if you name them." in " ".join(
        result.stderr.split()
    )


def test_scans_share_no_count(tmp_path):
    (tmp_path / "b.mp4").touch()
    for _ in range(2):
        with pytest.raises(DatasetError, match=r"left out: 1 video \(b.mp4\), read only"):
            list(batches([str(tmp_path)]))
