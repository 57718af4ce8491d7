"""`zsntta datasets get` as a user has it."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from served import serving

from zsntta_cli.datasets import CATALOGUE, download

CONTENT = bytes(range(256)) * 2000


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)


def known_as(monkeypatch, name):
    """Let a set's checksum be that of what is served."""
    (file,) = CATALOGUE[name].files
    digest = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    files = (replace(file, checksum=digest),)
    monkeypatch.setitem(CATALOGUE, name, replace(CATALOGUE[name], files=files))


def test_get(zsntta, monkeypatch):
    known_as(monkeypatch, "svhn")
    with serving(content=CONTENT, cuts=[1000]) as served:
        result = zsntta("datasets", "get", "svhn", "--mirror", served.address + "/")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == "svhn: data/svhn/test_32x32.mat: 512,000 bytes, md5 as published\n"
        assert served.paths == ["/test_32x32.mat"] * 2
        again = zsntta("datasets", "get", "svhn", "--mirror", served.address)
        assert again.stdout == result.stdout
    assert Path("data/svhn/test_32x32.mat").read_bytes() == CONTENT
    assert len(served.asked) == 2


def test_one_that_fails_stops_no_other(zsntta, monkeypatch):
    known_as(monkeypatch, "svhn")
    with serving(content=CONTENT, statuses=[404]) as served:
        result = zsntta("datasets", "get", "cub200", "cars196", "svhn", "shapes", "--data-root",
                        "d", "--mirror", served.address)  # fmt: skip
    assert result.stdout.splitlines() == [
        "svhn: d/svhn/test_32x32.mat: 512,000 bytes, md5 as published",
        "shapes: it is built in",
    ]
    assert result.stderr.splitlines() == [
        f"cub200: cannot read {served.address}/CUB_200_2011.tgz (HTTP Error 404: Not Found).",
        "cars196: no plain address is known: download it from a mirror: the official download is "
        "dead (github.com/pytorch/vision/issues/7545) and put stanford_cars/ with "
        "cars_train/*.jpg, cars_test/*.jpg, cars_test_annos_withlabels.mat, "
        "devkit/cars_meta.mat and devkit/cars_train_annos.mat into d.",
        "error: 2 of 4 sets are missing or incomplete: cub200, cars196.",
    ]
    assert result.exit_code == 1
