"""What is written, where something is already: links, pipes, devices, folders, other writers."""

import os
import stat
import threading

import pytest

from torture.tool import LONG, SETS
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file, write_whole

RUN = ("simulate", "--method=mcm", *SETS, "--format=csv", "--fresh")

KILLS = 50 if LONG else 2


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


@pytest.mark.parametrize("option", ["--output", "--scores"])
@pytest.mark.parametrize("suffix", [".csv", ".h5"])
def test_a_pipe_is_written_straight(zsntta, place, tmp_path, option, suffix):
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert zsntta(*RUN, option, pipe, cwd=place).check().code == 0
    reader.join(10)
    is_hdf5 = (option, suffix) == ("--scores", ".h5")
    assert read[0].startswith(
        b"\x89HDF" if is_hdf5 else b"method," if option[2] == "o" else b"index"
    )
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
        answer = zsntta(*RUN, option, device, cwd=place).check()
        assert answer.code == code
        assert stat.S_ISCHR(device.stat().st_mode)
        assert names(tmp_path) == {"device.csv"}


@pytest.mark.parametrize("option", ["--output", "--scores"])
@pytest.mark.parametrize("path", [".", "/", "features", "none/../..", "in/x", "loop", "x" * 300])
def test_what_cannot_be_a_file(zsntta, place, option, path):
    (place / "in").touch()
    if not (place / "loop").is_symlink():
        (place / "loop").symlink_to("loop")
    before = names(place)
    answer = zsntta(*RUN, option, path, cwd=place).check()
    assert answer.code in (1, 2)
    assert answer.stdout == ""
    assert names(place) - {"none"} == before - {"none"}


def test_a_planted_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / ".out.csv.tmp").symlink_to(victim)
    (folder / ".zsntta-0.tmp").symlink_to(victim)
    write_whole(folder / "out.csv", b"new")
    assert (victim.read_text(), (folder / "out.csv").read_text()) == ("mine", "new")


def test_the_mode_is_what_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "out", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def half(path) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(b"half")
        raise OSError("disk")


def test_a_failing_write_leaves_what_was_there(tmp_path):
    write_whole(tmp_path / "out", b"before")
    with pytest.raises(StoreError, match="disk"):
        half(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"before"
    assert names(tmp_path) == {"out"}
