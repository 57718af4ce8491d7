"""`extract --paper`, and extractions of which one set fails."""

import dataclasses

import pytest
from made import TINY, fails
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache.folder import folder_name
from zsntta_cli.datasets import download
from zsntta_cli.encoders import weights
from zsntta_cli.errors import DatasetError, EncoderError
from zsntta_cli.extraction import extractor
from zsntta_cli.paper.reproduction import runs_of_paper
from zsntta_cli.paper.runs import Wishes, paper_extractions
from zsntta_cli.settings import PAPER_ENCODERS

RANDOM = ("--model", "RN50", "--pretrained", "none")


@pytest.fixture
def offline(monkeypatch):
    """No set is fetched by itself."""
    for name, entry in datasets.CATALOGUE.items():
        monkeypatch.setitem(datasets.CATALOGUE, name, dataclasses.replace(entry, downloads=False))


def pictures(folder, count):
    folder.mkdir(parents=True)
    for i in range(count):
        Image.new("RGB", (40, 40), (i * 40, 100, 50)).save(folder / f"{i}.png")


def test_built_in_sets_stand_in_and_all_of_the_paper_is_foreseen(zsntta, tmp_path):
    result = zsntta("extract", "--paper", *TINY, "--limit", "40")
    assert result.exit_code == 0, result.output
    there = {path.stem for path in (tmp_path / "features" / "tiny").glob("*.h5")}
    assert there == {
        "shapes", "glyphs", "textures", "other-shapes", "digits", "noise-gaussian",
        "noise-uniform", "noise-salt-and-pepper", "noise-poisson",
    }  # fmt: skip
    again = zsntta("extract", "--paper", *TINY, "--limit", "40")
    assert again.stdout.count("already extracted") == len(there)
    missing = zsntta("paper", "17", *TINY).stderr
    assert "missing" not in missing


@pytest.mark.usefixtures("offline")
def test_what_lies_there_is_extracted_and_the_rest_is_named(zsntta, tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(extractor, "load_encoder", lambda *_: tiny)  # for RN50, which takes 400 MB
    pictures(tmp_path / "data" / "lsun", 5)
    pictures(tmp_path / "data" / "Places" / "images", 2)
    (tmp_path / "data" / "Places" / "images" / "z.jpg").write_bytes(b"no picture")
    result = zsntta("extract", "--paper", *RANDOM)
    assert result.exit_code == 1
    assert "1 failed: RN50-none/places" in result.stderr.splitlines()[-1]
    assert "not extracted: places: " in result.stderr
    first, *_, command, file = result.stdout.splitlines()
    assert first == "Sets that are not available:"
    assert command.startswith("zsntta datasets get ")
    assert {"ninco", "cifar10-c"} <= set(command.split())
    assert not {"imagenet", "places"} & set(command.split())
    assert file.startswith("features/RN50-none/lsun.h5: 5 images"), "what is missing comes before"
    assert not list((tmp_path / "features").glob("*/places.h5"))


@pytest.mark.usefixtures("offline")
def test_an_encoder_that_cannot_be_had_ends_its_own_sets(zsntta, tmp_path, tiny, monkeypatch):
    def load_all_but_one(choice, _device):
        if choice == PAPER_ENCODERS[0]:
            raise EncoderError("no weights")
        return tiny

    monkeypatch.setattr(extractor, "load_encoder", load_all_but_one)
    monkeypatch.setattr(weights, "fetch", lambda _: None)
    pictures(tmp_path / "data" / "lsun", 5)
    result = zsntta("extract", "--paper")
    assert result.exit_code == 1
    first, *others = [folder_name(choice) for choice in PAPER_ENCODERS]
    there = [path.parent.name for path in (tmp_path / "features").glob("*/lsun.h5")]
    assert sorted(there) == sorted(others)
    assert f"not extracted: all of {first}: no weights" in result.stderr


@pytest.mark.usefixtures("offline")
def test_each_encoder_has_the_sets_of_its_tables(tmp_path):
    every = paper_extractions(Wishes(tmp_path), runs_of_paper(Wishes(tmp_path)), tmp_path)
    assert [extraction.choice for extraction in every] == [*PAPER_ENCODERS]
    counts = [len(extraction.absent) for extraction in every]
    assert counts == [11 + 7 + 45, 5, 5]
    assert [extraction.pools for extraction in every] == [()] * 3, "nothing to inject noise into"
    for name in ("cifar-10-batches-py", "svhn", "dtd/dtd/images/x", "lsun"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cifar-10-batches-py" / "test_batch").touch()
    (tmp_path / "svhn" / "test_32x32.mat").touch()
    (tmp_path / "lsun" / "a.png").touch()
    first, second, _ = paper_extractions(
        Wishes(tmp_path), runs_of_paper(Wishes(tmp_path)), tmp_path
    )
    assert {"cifar10", "svhn", "lsun"} <= set(first.sets)
    # 75 % noise of 10,000 ID samples is 40,000 samples, and every eighth is followed by noise;
    # every second of table 18's 20,000.
    assert dict(first.pools)["gaussian"] == 10_000
    assert dict(second.pools)["gaussian"] == 2_500


def test_what_is_missing_is_told_before_anything_is_encoded(zsntta, tmp_path, tiny, monkeypatch):
    def no_network(of, *_):
        if of != PAPER_ENCODERS[0]:
            raise (EncoderError if of in PAPER_ENCODERS else DatasetError)(f"no network: {of}")

    monkeypatch.setattr(weights, "fetch", no_network)
    monkeypatch.setattr(download, "fetch", no_network)
    monkeypatch.setattr(extractor, "load_encoder", lambda *_: tiny)
    pictures(tmp_path / "data" / "lsun", 5)
    result = zsntta("extract", "--paper")
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if "not extracted: " in line]
    folders = [folder_name(choice) for choice in PAPER_ENCODERS]
    assert [line.split(": ")[1] for line in told[:2]] == [f"all of {name}" for name in folders[1:]]
    assert "not extracted: cifar10: " in result.stderr.partition("note: lsun: ")[0]
    (tmp_path / "data" / "lsun").rename(tmp_path / "data" / "gone")
    result = zsntta("paper", "10", "--extract", "--model", "RN50", "--pretrained", "none")
    assert "not extracted: cifar10: " in result.stderr
    assert not (tmp_path / "features" / "RN50-none").exists(), "noise into what?"


def test_one_set_that_fails_ends_itself_and_unknown_names_all(zsntta, tmp_path):
    fails(zsntta("extract", "--dataset", "shapes", "--dataset", "nonsense", *TINY), "'nonsense'")
    assert not (tmp_path / "features").exists()
    pictures(tmp_path / "good", 4)
    pictures(tmp_path / "other", 4)
    specs = ("--dataset", f"a={tmp_path / 'good'}", "--dataset", f"b={tmp_path / 'gone'}",
             "--dataset", f"c={tmp_path / 'other'}", "--dataset", "cifar10-c:mist:1")  # fmt: skip
    (tmp_path / "CIFAR-10-C.tar").touch()  # it is there, and yet told before anything is encoded
    result = zsntta("extract", *specs, *TINY, "--data-root", tmp_path)
    assert result.exit_code == 1
    assert [line.split(":")[0][-4:] for line in result.stdout.splitlines()] == ["a.h5", "c.h5"]
    told = result.stderr.partition("note: a: ")[0]
    assert "not extracted: b: " in told
    assert "not extracted: cifar10-c:mist:1: " in told
    assert "2 of 4 sets were not extracted: b, cifar10-c" in result.stderr.splitlines()[-1]


@pytest.mark.usefixtures("offline")
def test_a_table_encodes_what_it_needs_and_goes_on(zsntta, tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(extractor, "load_encoder", lambda *_: tiny)
    dry = zsntta("paper", "10", "--extract", *RANDOM, "--dry-run").stdout
    assert "zsntta datasets show lsun" in dry
    assert "cub200" not in dry, "table 10 has no birds"
    assert not (tmp_path / "features").exists()
    pictures(tmp_path / "data" / "lsun", 5)
    result = zsntta("paper", "10", "--extract", *RANDOM)
    assert result.exit_code == 1
    assert "lsun.h5: 5 images" in result.stdout
    assert "error: feature files missing in features/: 6 by RN50-none" in result.stderr
