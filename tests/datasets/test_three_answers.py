"""What lies on the disk of a known set: not there, as published, or there but with a flaw.

Each set of the catalogue is made in the format of its original and damaged in each way of a small
grammar. One function tells what there is, `datasets show`, `verify`, `get` and `extract`
say so, and nobody asks the network.
"""

import pickle
import shutil
import socket
import tarfile
from dataclasses import replace
from pathlib import Path

import originals
import pytest

from zsntta_cli import datasets
from zsntta_cli.datasets import status
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.presence import ABSENT, FLAWED, WHOLE
from zsntta_cli.datasets.readers import imagenet
from zsntta_cli.datasets.readers.originals import CHECKSUMS
from zsntta_cli.errors import DatasetError, FlawedSet

ROOT = Path("data")


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """The hosts that were asked for, which must be none."""
    hosts = []

    def refuse(host, *_args, **_kwargs):
        hosts.append(host)
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield hosts
    imagenet.classes.cache_clear()


def states_of(name, damage, what, tree):
    """The answers that a damage may have: what is not looked into can be damaged unseen."""
    if not tree or (damage is originals.missing and not originals.is_needed(what)):
        return (WHOLE,) if tree else (ABSENT,)
    if damage in (originals.packed_and_unpacked, originals.beside):
        return (WHOLE,)
    is_of_picture = damage is originals.damaged and originals.is_picture(what)
    if is_of_picture or damage in (
        originals.still_packed, originals.in_upper_case, originals.doubled,
        originals.as_kaggle_has_it,
    ):  # fmt: skip
        return WHOLE, FLAWED
    return (WHOLE,) if (name, what) == ("ninco", "below NINCO") else (FLAWED,)


@pytest.mark.parametrize("name", originals.NAMES)
def test_each_damage_of_each_set_has_one_of_three_answers(name, monkeypatch, tmp_path, asked):
    """What `look` says is what reading meets; the set as it is, is as many images or a reason."""
    tree = originals.made(name, monkeypatch, tmp_path / "whole")
    spec = originals.spec_of(name)
    assert datasets.look(spec, tmp_path / "whole") == (WHOLE, None)
    for number, (damage, what, damaged) in enumerate(originals.damaged_trees(name, tree)):
        root = tmp_path / str(number)
        root.mkdir()
        originals.write(root, damaged)
        case = f"{name}, {damage.__name__}, {what}"
        there = datasets.look(spec, root)
        assert there.state in states_of(name, damage, what, damaged), f"{case}: {there}"
        if there.state == ABSENT:
            continue
        assert bool(there.flaw) == (there.state == FLAWED), case
        assert "\n" not in there.flaw, case
        assert "data set" not in there.flaw, f"{case}: {there}"
        try:
            read = datasets.load_images(spec, root)
            flaw = "; ".join(status.problems(read, CATALOGUE[name]))
        except FlawedSet as error:
            flaw = error.flaw
            if error.is_usable and damage is originals.missing:
                assert len(datasets.load_images(spec, root, as_is=True)) > 0, case
        if damage is not originals.still_packed:  # which reading unpacks
            assert flaw == there.flaw, case
        if there.state == WHOLE:
            assert len(datasets.load_images(spec, root, as_is=True)) == len(read), case
    assert not asked


@pytest.fixture(params=["cifar10", "svhn", "texture", "inaturalist", "imagenet"])
def known(request, monkeypatch, tmp_path):
    """A set in the format of its original, below the working folder."""
    monkeypatch.chdir(tmp_path)
    tree = originals.made(request.param, monkeypatch, ROOT.absolute())
    return request.param, tree


def put(tree):
    shutil.rmtree(ROOT)
    ROOT.mkdir()
    originals.write(ROOT, tree)


def extraction(name):
    return "extract", "--dataset", name, "--model", "tiny", "--noise", "none", "--no-partners"


def all_say(zsntta, name):
    """What the commands say, each in one text, and whether the set was extracted."""
    show = zsntta("datasets", "show", name)
    extract = zsntta(*extraction(name))
    verify = zsntta("datasets", "verify", name)
    texts = [" ".join(r.output.replace("│", " ").split()) for r in (show, extract, verify)]
    return texts, extract


def test_as_published(zsntta, known, asked):
    name, _ = known
    assert datasets.look(name, ROOT) == (WHOLE, None)
    (show, _, verify), extract = all_say(zsntta, name)
    assert WHOLE in show
    assert extract.exit_code == 0, extract.output
    assert verify.startswith(f"{name}: {CATALOGUE[name].images} images")
    assert "as published" in zsntta("datasets", "get", name).stdout
    assert not asked


@pytest.mark.parametrize(
    "damage",
    [originals.missing, originals.damaged, originals.nested, originals.with_other_keys],
    ids=lambda damage: damage.__name__,
)
def test_all_commands_say_what_is_wrong_and_none_fetches(zsntta, known, damage, asked):
    name, tree = known
    for what, damaged in list(damage(name, tree))[:2]:
        put(damaged)
        there = datasets.look(name, ROOT)
        if there.state != FLAWED:
            continue
        (show, said, verify), extract = all_say(zsntta, name)
        key = there.flaw.split(", ")[0].split(":")[0][:60]
        assert "there, but" in show
        assert f"use another folder as my-{name}=PATH" in show
        assert key.replace(" ", "") in show.replace(" ", "")
        if extract.exit_code:
            assert key in said
            assert "cannot be fetched" not in said
        else:  # fewer images are extracted with a note
            assert f"is not the published set: it has {CATALOGUE[name].images - 1} of" in said
        assert key in verify, what
        assert zsntta("datasets", "get", name).exit_code == 1
        shutil.rmtree("features", ignore_errors=True)
    assert not asked


def test_not_there(zsntta, known):
    name, _ = known
    put({})
    assert datasets.look(name, ROOT).state == ABSENT
    assert "not there" in zsntta("datasets", "show", name).stdout


@pytest.mark.parametrize("known", ["cifar10", "svhn"], indirect=True)
def test_another_checksum_is_taken_as_it_is(zsntta, known, monkeypatch):
    name, tree = known
    path, other = next(iter(tree)), "0" * 32
    digest = originals.md5(tree[path])
    if name == "cifar10":
        monkeypatch.setitem(CHECKSUMS, path, other)
    else:
        [file] = CATALOGUE[name].files
        entry = replace(CATALOGUE[name], files=(replace(file, checksum=f"md5:{other}"),))
        monkeypatch.setitem(CATALOGUE, name, entry)
    refused = zsntta(*extraction(name))
    assert refused.exit_code == 1
    assert f"its md5 is {digest}, must be {other}" in refused.stderr
    assert "take it as it is with --as-is" in refused.stderr
    assert zsntta(*extraction(name), "--as-is").exit_code == 0


@pytest.mark.parametrize("known", ["cifar10", "cub200"], indirect=True)
def test_live_methods_find_again_what_was_taken_as_it_is(zsntta, known, monkeypatch):
    """A set with another checksum, and one without a listed image: the same images, or a line."""
    name, tree = known
    if name == "cifar10":
        monkeypatch.setitem(CHECKSUMS, next(iter(tree)), "0" * 32)
    else:
        put(next(iter(originals.missing(name, tree)))[1])
    assert zsntta(*extraction(name)).exit_code == 1
    assert zsntta(*extraction(name), "--as-is").exit_code == 0
    shapes = ("extract", "--dataset", "glyphs", "--limit", "4", "--model", "tiny")
    assert zsntta(*shapes).exit_code == 0
    live = ("simulate", "--method", "tent", "--model", "tiny", "--id", name, "--ood", "glyphs")
    done = zsntta(*live)
    assert done.exit_code == 0, done.output
    put(tree if name == "cub200" else {**tree, "cifar-10-batches-py/test_batch": b"?"})
    assert zsntta(*live, "--fresh").exit_code == 1


def test_other_keys_are_named_and_no_program_is_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    originals.made("cifar10", monkeypatch, ROOT.absolute())
    base = ROOT / "cifar-10-batches-py"
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
    originals.made("cifar10", monkeypatch, ROOT.absolute())
    archive = ROOT / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(ROOT / "cifar-10-batches-py", "cifar-10-batches-py")
    shutil.rmtree(ROOT / "cifar-10-batches-py")
    with pytest.raises(FlawedSet, match="its md5 is"):
        datasets.load_images("cifar10", ROOT)
    assert datasets.look("cifar10", ROOT).flaw.startswith(f"it is still packed in {archive}")
    [file] = CATALOGUE["cifar10"].files
    entry = replace(
        CATALOGUE["cifar10"],
        files=(replace(file, checksum=f"md5:{originals.md5(archive.read_bytes())}"),),
    )
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    assert len(datasets.load_images("cifar10", ROOT)) == 4


@pytest.mark.parametrize("name", originals.NAMES)
def test_each_set_of_the_catalogue_has_the_three_answers(tmp_path, name):
    """Nothing, an empty folder, and a file that is none of it."""
    entry = CATALOGUE[name]
    spec = originals.spec_of(name)
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
