"""Tars at addresses: fetched part by part, and nothing of them is left."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from made import TINY, fails
from served import serving_folder
from web_writer import write_web_set

from zsntta_cli import addresses
from zsntta_cli.cache import hdf5
from zsntta_cli.datasets.names import SetName
from zsntta_cli.datasets.sharding import fetched_apart, remote_shards
from zsntta_cli.errors import StoreError

NAMES = ["cat", "dog", "ox"]


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A web data set of five shards, whose texts lie beside the tars."""
    root = tmp_path_factory.mktemp("web") / "pets"
    write_web_set(root, [i % 3 for i in range(15)], NAMES, form="png", a_shard=3)
    (root / "classnames.txt").rename(root / "test" / "classnames.txt")
    return root / "test"


@pytest.fixture
def server(pets):
    """Serves the folder as any web server does; gives its address."""

    with serving_folder(pets) as address:
        yield address


def features(root, name="pets"):
    found = hdf5.read_features(Path(root) / "tiny" / f"{name}.h5")
    return found.image_features[:], found.labels, hdf5.read_sample_ids(found.path), found.digest


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_features_are_those_of_local_tars(zsntta, pets, request, scheme):
    base = request.getfixturevalue("server") if scheme == "http" else f"file://{pets}"
    remote = zsntta("extract", "--dataset", f"pets={base}/{{0..4}}.tar", *TINY, "--parts", 2,
                    "--features-dir", "remote")  # fmt: skip
    assert remote.exit_code == 0, remote.stderr
    local = zsntta("extract", "--dataset", f"pets={pets}/{{0..4}}.tar", *TINY, "--parts", 3,
                   "--features-dir", "local")  # fmt: skip
    assert local.exit_code == 0, local.stderr
    assert_same(features("remote"), features("local"))
    assert not list(Path("data").rglob("*.tar"))
    again = zsntta("extract", "--dataset", f"pets={base}/{{0..4}}.tar", *TINY, "--part", "1/2",
                   "--features-dir", "remote")  # fmt: skip
    assert "there already" in again.stdout


def test_without_parts(zsntta, server):
    result = zsntta("extract", "--dataset", f"pets={server}/{{0..4}}.tar", *TINY)
    fails(result, "fetched part by part", "--parts 8")


def test_a_missing_tar(zsntta, server):
    options = ("extract", "--dataset", f"pets={server}/{{0..5}}.tar", *TINY)
    assert zsntta(*options, "--part", "1/3").exit_code == 0
    fails(zsntta(*options, "--part", "3/3"), f"there is no {server}/5.tar")


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_what_came_of_a_tar_is_kept(zsntta, pets, monkeypatch, request, scheme):
    """A connection that breaks off is taken up again behind what came.

    This server knows no ranges, so from it all comes again.
    """
    monkeypatch.setattr(addresses, "_PAUSE", 0)
    base = request.getfixturevalue("server") if scheme == "http" else f"file://{pets}"
    append, starts = addresses.append, []

    def broken(system, path, target, begun, size, reach):
        starts.append(begun)
        append(system, path, target, begun, size, reach)
        if len(starts) == 1:
            content = target.read_bytes()
            target.write_bytes(content[: len(content) // 2])

    monkeypatch.setattr(addresses, "append", broken)
    options = ("extract", "--dataset", f"pets={base}/{{0..0}}.tar", *TINY, "--part", "1/1")
    size = (pets / "0.tar").stat().st_size
    assert zsntta(*options).exit_code == 0
    assert starts == [0, size // 2]


def test_nobody_answers(zsntta):
    result = zsntta("extract", "--dataset", "pets=http://127.0.0.1:9/{0..1}.tar", *TINY,
                    "--part", "1/2")  # fmt: skip
    fails(result, "cannot read http://127.0.0.1:9/")


def test_what_reads_an_address_is_not_installed(monkeypatch):
    import fsspec.core

    def lacking(address):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    with pytest.raises(StoreError, match=r"s3:// needs .*zsntta\[remote\]"):
        addresses.file_system("s3://bucket/0.tar")


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("a=https://host/x/{00..09}.tar", "https://host/x/{00..09}.tar"),
        ("a=s3://bucket/0.tar", "s3://bucket/0.tar"),
        ("a=hf://datasets/org/name/0.tar", "hf://datasets/org/name/0.tar"),
        ("a=hf:org/name:test", ""),
        ("a=folder/0.tar", ""),
        ("a=https://host/x.zip", ""),
    ],
)
def test_names(typed, address):
    name = SetName.parse(typed)
    assert (name.base, name.address) == ("a", address)
    assert name.says_where
    if address:
        assert name.absolute == typed


def test_a_name_with_a_colon(zsntta, server):
    result = zsntta(
        "extract", "--dataset", f"pets:fog:3={server}/{{0..4}}.tar", *TINY, "--parts", 2
    )
    fails(result, "'pets:fog:3' cannot name a folder of images")


def test_other_class_names_are_other_parts(zsntta, server, pets):
    options = ("extract", "--dataset", f"pets={server}/{{0..4}}.tar", *TINY)
    assert zsntta(*options, "--part", "1/3").exit_code == 0
    names = pets / "classnames.txt"
    before = names.read_text()
    try:
        names.write_text("cat\ncow\nox")
        fails(zsntta(*options, "--part", "2/3"), "other images: digest")
    finally:
        names.write_text(before)


def test_a_set_in_parts_is_exported_whole(zsntta, pets):
    options = ("--dataset", f"pets={pets}/{{0..4}}.tar", *TINY)
    assert zsntta("extract", *options, "--parts", 3).exit_code == 0
    assert zsntta("cache", "export", "pets", "--output", "pets.npz").exit_code == 0
    with np.load("pets.npz") as exported:
        assert np.array_equal(exported["image_features"], features("features")[0])


def test_what_a_killed_command_left_is_no_other_sets(zsntta, pets, tmp_path):
    """Tars of another address, or of another features folder, lie elsewhere."""
    other = shutil.copytree(pets, tmp_path / "other")
    shutil.copy(pets / "4.tar", other / "0.tar")
    left = remote_shards(f"pets=file://{pets}/{{0..0}}.tar", tmp_path / "data")
    fetched_apart(left, tmp_path / "features", "tiny").part(1, 1)  # and it is killed
    spec = f"pets=file://{other}/{{0..0}}.tar"
    assert zsntta("extract", "--dataset", spec, *TINY, "--parts", 1).exit_code == 0
    local = f"pets={other}/{{0..0}}.tar"
    options = ("--parts", 1, "--features-dir", "local")
    assert zsntta("extract", "--dataset", local, *TINY, *options).exit_code == 0
    assert_same(features("features"), features("local"))
    tags = {fetched_apart(left, tmp_path / root, e).folder for root in "ab" for e in ("x", "y")}
    assert len(tags) == 4


def test_a_file_that_was_replaced_while_it_was_fetched(tmp_path):
    source, target = tmp_path / "0.tar", tmp_path / "here" / "0.tar"
    source.write_bytes(b"a" * 3000)
    system, path = addresses.file_system(f"file://{source}")
    target.parent.mkdir()
    begun = f".0.tar.{addresses._version(f'file://{source}', system.info(path))}.begun"
    (target.parent / begun).write_bytes(b"a" * 1200)
    source.write_bytes(b"b" * 3000)
    os.utime(source, (1, 1))
    addresses.fetch_file(f"file://{source}", target)
    assert target.read_bytes() == b"b" * 3000
