"""What is written, where something is already: links, pipes, devices, folders, other writers."""

import os
import stat
import threading

import pytest

from torture.tool import SETS
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file, write_whole

RUN = ("simulate", "--method=mcm", *SETS, "--format=csv", "--fresh")


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_links_are_followed_and_stay(zsntta, place, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real").write_text("before")
    (tmp_path / "one").symlink_to("deep/real")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "dangling").symlink_to("deep/new")
    for link, target in (("two", "real"), ("dangling", "new")):
        answer = zsntta(*RUN, "--output", tmp_path / link, cwd=place).check()
        assert answer.code == 0
        assert (tmp_path / link).is_symlink()
        assert (tmp_path / "deep" / target).read_text().startswith("method,")
    assert names(tmp_path) == {"deep", "one", "two", "dangling"}
    assert names(tmp_path / "deep") == {"real", "new"}


@pytest.mark.parametrize(("option", "begins"), [("--output", b"method,"), ("--scores", b"index")])
def test_a_pipe_is_written_straight(zsntta, place, tmp_path, option, begins):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert zsntta(*RUN, option, pipe, cwd=place).check().code == 0
    reader.join(10)
    assert read[0].startswith(begins)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes devices")
@pytest.mark.parametrize(("minor", "code"), [(3, 0), (7, 1)], ids=["null", "full"])
def test_a_device_stays_one(zsntta, place, tmp_path, minor, code):
    device = tmp_path / "device.csv"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        device.open("wb").close()
    except OSError:
        pytest.skip("no devices here")
    for option in ("--output", "--scores"):
        assert zsntta(*RUN, option, device, cwd=place).check().code == code
        assert stat.S_ISCHR(device.stat().st_mode)
        assert names(tmp_path) == {"device.csv"}


@pytest.mark.parametrize("path", [".", "/", "features", "none/../..", "in/x", "loop", "x" * 300])
def test_what_cannot_be_a_file(zsntta, place, path):
    (place / "in").touch()
    if not (place / "loop").is_symlink():
        (place / "loop").symlink_to("loop")
    before = names(place)
    for option in ("--output", "--scores"):
        answer = zsntta(*RUN, option, path, cwd=place).check()
        assert answer.code in (1, 2)
        assert answer.stdout == ""
        assert names(place) - {"none"} == before - {"none"}


def test_a_file_is_written_whole_beside_links_that_somebody_planted(tmp_path):
    (tmp_path / "victim").write_text("mine")
    for name in (".out.csv.tmp", ".zsntta-0.tmp"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    before = names(tmp_path)
    umask = os.umask(0o027)
    try:
        write_whole(tmp_path / "out.csv", b"new")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o640
    with pytest.raises(StoreError), whole_file(tmp_path / "out.csv") as temporary:
        (temporary / "of-a-file").touch()
    assert (tmp_path / "out.csv").read_bytes() == b"new"
    assert (tmp_path / "victim").read_text() == "mine"
    assert names(tmp_path) == before | {"out.csv"}
