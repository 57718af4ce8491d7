"""What lies on the disk of a known set: not there, as published, or there but with a flaw.

A set is made in the format of its original and damaged in each way of a small grammar. `datasets
show` and `get`, `extract` and its preview give one answer, and nobody asks the network.
"""

import hashlib
import pickle
import shutil
import socket
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torchvision
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.datasets.catalogue import ALIASES, BUILTIN, CATALOGUE
from zsntta_cli.datasets.presence import ABSENT, FLAWED, WHOLE
from zsntta_cli.errors import DatasetError, FlawedSet

ROOT = Path("data")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def picture(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    Image.fromarray(pixels).save(path, "png")


def write_cifar(monkeypatch):
    base, kind = ROOT / "cifar-10-batches-py", torchvision.datasets.CIFAR10
    base.mkdir(parents=True)
    batch = {"data": np.zeros((4, 3072), np.uint8), "labels": [0, 1, 1, 0]}
    (base / "test_batch").write_bytes(pickle.dumps(batch))
    (base / "batches.meta").write_bytes(pickle.dumps({"label_names": ["cat", "dog"]}))
    monkeypatch.setattr(kind, "test_list", [["test_batch", md5(base / "test_batch")]])
    meta = {"filename": "batches.meta", "key": "label_names", "md5": md5(base / "batches.meta")}
    monkeypatch.setattr(kind, "meta", meta)
    return base


def write_svhn(monkeypatch):
    path, kind = ROOT / "svhn" / "test_32x32.mat", torchvision.datasets.SVHN
    path.parent.mkdir(parents=True)
    scipy.io.savemat(
        path, {"X": np.zeros((32, 32, 3, 10), np.uint8), "y": [[i] for i in range(1, 11)]}
    )
    lists = {**kind.split_list, "test": ["url", path.name, md5(path)]}
    monkeypatch.setattr(kind, "split_list", lists)
    return path.parent


def write_dtd(_monkeypatch):
    base = ROOT / "dtd" / "dtd"
    for i, place in enumerate(("banded/1", "banded/2", "dotted/1", "dotted/2")):
        picture(base / "images" / f"{place}.jpg", i)
    return base


def write_inat(_monkeypatch):
    base = ROOT / "iNaturalist"
    for i in range(4):
        picture(base / "images" / f"{i}.jpg", i)
    return base


SETS = {  # how each is written, how many classes it has, a file, where it is put with its parent
    "cifar10": (write_cifar, 2, "test_batch"),
    "svhn": (write_svhn, 10, "test_32x32.mat"),
    "texture": (write_dtd, 2, "images/banded/1.jpg"),
    "inaturalist": (write_inat, 0, "images/1.jpg"),
}


def gone(base, file):
    (base / file).unlink()


def cut(base, file):
    (base / file).write_bytes((base / file).read_bytes()[:40])


def other_bytes(base, file):
    content = bytearray((base / file).read_bytes())
    content[-3] ^= 255
    (base / file).write_bytes(content)


def too_deep(base, _file):
    inner = ROOT / "x" / base.relative_to(ROOT).parts[0]
    inner.parent.mkdir()
    (ROOT / base.relative_to(ROOT).parts[0]).rename(inner)


def twice(base, _file):
    top = ROOT / base.relative_to(ROOT).parts[0]
    top.rename(ROOT / "moved")
    top.mkdir()
    (ROOT / "moved").rename(top / top.name)


def beside(base, file):
    place = (base / file).parent
    for name in (".DS_Store", "._1.jpg", "Thumbs.db"):
        (place / name).write_bytes(b"x")
    for name in ("__MACOSX", ".ipynb_checkpoints", "@eaDir"):
        picture(place.parent / name / "9.jpg")


DAMAGES = (gone, cut, other_bytes, too_deep, twice, beside)


@pytest.fixture(params=SETS)
def known(request, monkeypatch, tmp_path):
    """A set in the format of its original, with the numbers of the catalogue made to fit."""
    monkeypatch.chdir(tmp_path)
    write, classes, file = SETS[request.param]
    entry = replace(CATALOGUE[request.param], images=max(4, classes), classes=classes)
    monkeypatch.setitem(CATALOGUE, request.param, entry)
    return request.param, lambda: write(monkeypatch), file


def all_say(zsntta, name):
    """What the commands say, each in one text, and whether the set was extracted."""
    show = zsntta("datasets", "show", name)
    preview = zsntta("extract", "--dataset", name, "--model", "tiny", "--noise", "none",
                     "--no-partners", "--dry-run")  # fmt: skip
    extract = zsntta("extract", "--dataset", name, "--model", "tiny", "--noise", "none",
                     "--no-partners")  # fmt: skip
    verify = zsntta("datasets", "verify", name)
    texts = [" ".join(r.output.replace("│", " ").split()) for r in (show, preview, extract, verify)]
    return texts, extract


def test_as_published(zsntta, known):
    name, write, _ = known
    write()
    assert datasets.look(name, ROOT) == (WHOLE, "")
    (show, preview, _, verify), extract = all_say(zsntta, name)
    assert WHOLE in show
    assert "in data" in preview
    assert extract.exit_code == 0, extract.output
    assert verify.startswith(f"{name}: {CATALOGUE[name].images} images")
    if name != "svhn":  # whose file is held against the checksum of the original
        assert "already, as published" in zsntta("datasets", "get", name).stdout


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_there_but(zsntta, known, damage):
    """Whatever is wrong is named by all, or nothing is and all of it is read; no one fetches."""
    name, write, file = known
    base = write()
    damage(base, file)
    there = datasets.look(name, ROOT)
    (show, preview, said, verify), extract = all_say(zsntta, name)
    if there.state == ABSENT:
        assert (name, damage) == ("svhn", gone)  # its one file
        assert "not there" in show
        return
    if damage is beside:
        assert there == (WHOLE, "")
        assert extract.exit_code == 0, extract.output
        return
    if there.state == WHOLE:  # a broken image is known when it is opened
        assert damage in (cut, other_bytes)
        assert name in ("texture", "inaturalist")
        return
    key = there.flaw.split(", ")[0].split(":")[0][:60]
    assert "there, but" in show
    assert key.replace(" ", "") in show.replace(" ", "")
    assert key in preview
    if extract.exit_code:
        assert key in said
        assert "cannot download" not in said
    else:  # fewer images are extracted with a note
        assert "is not the published set: it has 3 of 4 images" in said
    assert key in verify or "must be 4" in verify
    assert zsntta("datasets", "get", name).exit_code == 1


def test_not_there(zsntta, known):
    name, _, _ = known
    assert datasets.look(name, ROOT).state == ABSENT
    show = zsntta("datasets", "show", name).stdout
    assert "not there" in show


def test_another_checksum_is_taken_as_it_is(zsntta, known, monkeypatch):
    name, write, file = known
    if name not in ("cifar10", "svhn"):
        pytest.skip("its files have no checksums of their own")
    base = write()
    digest = md5(base / file)
    other = "0" * 32
    if name == "cifar10":
        monkeypatch.setattr(torchvision.datasets.CIFAR10, "test_list", [[file, other]])
    else:
        lists = {**torchvision.datasets.SVHN.split_list, "test": ["url", file, other]}
        monkeypatch.setattr(torchvision.datasets.SVHN, "split_list", lists)
    asked = ("extract", "--dataset", name, "--model", "tiny", "--noise", "none", "--no-partners")
    refused = zsntta(*asked)
    assert refused.exit_code == 1
    assert f"its md5 is {digest}, must be {other}" in refused.stderr
    assert "take it as it is with --as-is" in refused.stderr
    assert zsntta(*asked, "--as-is").exit_code == 0


def test_other_keys_are_named_and_no_program_is_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    base = write_cifar(monkeypatch)
    for content, reason in (
        (pickle.dumps({"images": 1}), "test_batch holds images, must hold data and labels"),
        (pickle.dumps([1]), "holds a list, must hold data"),
        (pickle.dumps(print), "it has a builtins.print, must have arrays and lists"),
    ):
        (base / "test_batch").write_bytes(content)
        with pytest.raises(DatasetError, match=reason):
            datasets.load_images("cifar10", ROOT, as_is=True)


def test_a_packed_set_is_unpacked_without_the_network(monkeypatch, tmp_path, zsntta):
    monkeypatch.chdir(tmp_path)
    write_cifar(monkeypatch)
    archive = ROOT / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(ROOT / "cifar-10-batches-py", "cifar-10-batches-py")
    shutil.rmtree(ROOT / "cifar-10-batches-py")
    with pytest.raises(FlawedSet, match="its md5 is"):
        datasets.load_images("cifar10", ROOT)
    assert datasets.look("cifar10", ROOT).flaw.startswith(f"it is still packed in {archive}")
    [file] = CATALOGUE["cifar10"].files
    entry = replace(CATALOGUE["cifar10"], files=(replace(file, checksum=f"md5:{md5(archive)}"),))
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    assert len(datasets.load_images("cifar10", ROOT)) == 4


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in BUILTIN])
def test_each_set_of_the_catalogue_has_the_three_answers(tmp_path, name):
    """Nothing, an empty folder, and a file that is none of it."""
    entry = CATALOGUE[name]
    spec = f"{name}:fog:1" if entry.parameters else name
    assert datasets.look(spec, tmp_path).state == ABSENT
    place = tmp_path / entry.layout.partition(" with ")[0].partition("<")[0]
    folder = place if entry.layout.partition(" with ")[0].count("/") else place.parent
    folder = folder.parent if folder.suffix or "*" in folder.name else folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.txt").write_text("no image")
    there = datasets.look(spec, tmp_path)
    assert there.state == FLAWED
    assert there.flaw
    assert "\n" not in there.flaw


def test_aliases_are_names_of_no_set_and_lead_to_one(zsntta):
    assert not set(ALIASES) & set(CATALOGUE)
    assert set(ALIASES.values()) <= set(CATALOGUE)
    for alias in ("dtd", "DTD", "sun397", "inat", "places365", "cifar-10", "in1k", "aircraft"):
        result = zsntta("datasets", "show", alias)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(ALIASES[alias.lower()])
