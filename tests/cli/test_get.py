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
        result = zsntta("datasets", "get", "cub200", "svhn", "--mirror", served.address)
    assert result.stdout.startswith("svhn: data/svhn/test_32x32.mat: 512,000 bytes")
    assert "HTTP Error 404" in result.stderr
    assert result.stderr.endswith("error: 1 of 2 sets are missing or incomplete: cub200.\n")
    assert result.exit_code == 1
