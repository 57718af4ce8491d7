import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import PROMPT, TINY, ZSNTTA, fails, pack
from web_writer import encoded, pictures

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import part_path
from zsntta_cli.cache.parts import is_joined, join_parts
from zsntta_cli.cache.store import problems
from zsntta_cli.datasets import sharding
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.datasets.sharding import ShardedSet
from zsntta_cli.errors import DatasetError, SettingsError, StoreError
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.extraction.sharded import PartChoice, PartMaker, PartsJob, parse_part
from zsntta_cli.settings import EncoderChoice, ExtractSettings

NAMES = ["cat", "dog", "ox"]
SHARDS = 7
SETTINGS = ExtractSettings(batch_size=4, workers=1)


@pytest.fixture(autouse=True)
def short_shards(monkeypatch):
    """Runs of three images: 20 images are seven."""
    monkeypatch.setattr(sharding, "SHARD", 3)


@pytest.fixture
def maker(tmp_path, tiny):
    """Makes parts of a set with an encoder that is loaded already."""

    def make(spec, of, root="features", load=lambda: tiny, **options):
        plan = ExtractPlan((spec,), **options)
        job = PartsJob(spec, of, plan, EncoderChoice("tiny"), "cpu", tmp_path / root, SETTINGS)
        return PartMaker(job, load=load)

    return make


def joined(maker):
    for _ in maker.make_all():
        pass
    maker.join()
    return store.read(maker.path)


def contents(features):
    return np.asarray(features.image_features), features.labels, features.texts[PROMPT].features


def test_the_set_does_not_depend_on_the_number_of_its_parts(maker, pets):
    first = joined(maker(f"pets={pets}", 1, "one"))
    assert (len(first), first.class_names) == (20, tuple(NAMES))
    for of in (2, 3, 7, 9):
        other = joined(maker(f"pets={pets}", of, f"of-{of}"))
        assert other.digest == first.digest
        for one, same in zip(contents(first), contents(other), strict=True):
            assert np.array_equal(one, same)
        assert store.read_sample_ids(other.path) == store.read_sample_ids(first.path)
        assert other.source == first.source


def test_runs_of_images_have_the_bits_of_a_plain_extraction(zsntta, monkeypatch):
    monkeypatch.setattr(sharding, "SHARD", 512)
    shapes = ("--dataset", "shapes", "--limit", 1100, "--no-partners", "--noise", "none", *TINY)
    assert zsntta("extract", *shapes, "--features-dir", "plain").exit_code == 0
    parts = [option for option in shapes if option not in ("--noise", "none", "--no-partners")]
    assert zsntta("extract", *parts, "--parts", 2, "--features-dir", "parts").exit_code == 0
    plain, other = (store.read(_path(name)) for name in ("plain", "parts"))
    assert plain.digest == other.digest
    assert store.read_sample_ids(_path("plain")) == store.read_sample_ids(_path("parts"))
    for method in ("adand", "ridge", "oodd"):
        options = ("--id", "shapes", "--method", method, "--ratio", 0, "--noise", "none", *TINY)
        tables = [zsntta("simulate", *options, "--features-dir", d) for d in ("plain", "parts")]
        assert tables[0].stdout == tables[1].stdout
        assert tables[0].exit_code == 0


def _path(folder):
    return Path(folder) / "tiny" / "shapes.h5"


def test_what_is_whole_is_not_made_again(zsntta, pets):
    options = ("extract", "--dataset", f"pets={pets}", *TINY)
    for index in (3, 1, 2):
        line = zsntta(*options, "--part", f"{index}/3").stdout
        assert line.startswith(f"features/tiny/pets.parts/{index:05d}.h5: ")
        assert "images in" in line
    assert "there already" in zsntta(*options, "--part", "2/3").stdout
    fails(zsntta("cache", "join", "dogs"), "no features of 'dogs'")
    result = zsntta("cache", "join", "pets")
    assert result.stdout.startswith("features/tiny/pets.h5: 20 images, ")
    assert "20 images, there already" in zsntta(*options, "--noise", "none").stdout
    assert "2 images, there" not in zsntta(*options, "--parts", "3").stdout
    assert zsntta("cache", "verify", "pets").stdout == "features/tiny/pets.h5: ok\n"
    listed = zsntta("cache", "list").stdout
    assert "not joined" not in listed
    assert zsntta("cache", "show", "pets").exit_code == 0


def test_more_prompts_are_added_to_a_joined_set(zsntta, pets):
    options = ("extract", "--dataset", f"pets={pets}", "--noise", "none", *TINY)
    assert zsntta(*options[:3], *TINY, "--parts", 2).exit_code == 0
    assert zsntta(*options, "--prompt", "a {}").exit_code == 0
    assert set(store.read(Path("features/tiny/pets.h5")).texts) == {PROMPT, "a {}"}


def test_missing_parts_are_named(zsntta, pets):
    options = ("extract", "--dataset", f"pets={pets}", *TINY)
    zsntta(*options, "--part", "2/4")
    listed = zsntta("cache", "list").stdout
    assert "1 parts, not joined" in listed
    fails(zsntta("cache", "join", "pets"), "3 of 4 parts are missing", "1, 3, 4", "--part 1/4")


def test_parts_of_another_number_encoder_or_set_are_refused(zsntta, pets, maker, tmp_path, tiny):
    assert zsntta("extract", "--dataset", f"pets={pets}", *TINY, "--part", "1/4").exit_code == 0
    result = zsntta("extract", "--dataset", f"pets={pets}", *TINY, "--part", "1/3")
    fails(result, "4 parts, not 3", "pets.parts")
    other = shutil.copytree(pets, tmp_path / "other")
    (other / "classnames.txt").write_text("cat\ncow\nox")
    result = zsntta("extract", "--dataset", f"pets={other}", *TINY, "--part", "2/4")
    fails(result, "other images: digest is", "pets.parts")

    class Other:
        identity: ClassVar = {**tiny.identity, "logit_scale": 50.0}

        def __getattr__(self, name):
            return getattr(tiny, name)

    with pytest.raises(StoreError, match=r"another encoder: logit_scale is .*, not 50\.0"):
        maker(f"pets={pets}", 4, load=Other).make(2)


@pytest.mark.parametrize("how", ["exchanged", "cut", "of another folder", "twice"])
def test_wrong_parts_are_not_joined(maker, pets, tmp_path, how):
    spec, root = f"pets={pets}", tmp_path / "features"
    mine, other = maker(spec, 3), maker(spec, 4, "other")
    joined(mine), joined(other)
    first, second = (part_path(mine.path, index) for index in (1, 2))
    if how == "exchanged":
        first.rename(root / "x"), second.rename(first), (root / "x").rename(second)
    elif how == "cut":
        second.write_bytes(second.read_bytes()[:-4000])
    elif how == "of another folder":
        shutil.copy(part_path(other.path, 2), second)
    else:
        shutil.copy(first, second)
    with pytest.raises(StoreError, match=r"0000[12]\.h5 (is part|is not a whole)"):
        join_parts(mine.path)


def test_a_set_stays_when_its_parts_are_removed(maker, pets):
    mine = maker(f"pets={pets}", 3)
    before = joined(mine)
    shutil.rmtree(mine.path.with_suffix(".parts"))
    assert store.read(mine.path).digest == before.digest
    assert not problems(mine.path)


def test_a_shard_that_is_not_whole_ends_every_part(maker, pets, tmp_path):
    bad = shutil.copytree(pets, tmp_path / "bad")
    shard = bad / "test" / "3.tar"
    shard.write_bytes(shard.read_bytes()[:700])
    with pytest.raises(DatasetError, match=r"3\.tar is no whole"):
        maker(f"bad={bad}", SHARDS)


def test_broken_images_are_left_out_of_their_part(zsntta, tmp_path):
    for shard in range(3):
        files = {f"{shard}-{i}.png": encoded(p, "png") for i, p in enumerate(pictures(3, shard))}
        pack(tmp_path / f"{shard}.tar", files | {f"{shard}-{shard}.png": b"no picture"})
    spec = f"mine={tmp_path}/{{0..2}}.tar"
    broken = zsntta("extract", "--dataset", spec, *TINY, "--parts", 2)
    assert broken.exit_code == 1
    assert "Traceback" not in broken.stderr
    result = zsntta("extract", "--dataset", spec, *TINY, "--parts", 2, "--skip-broken")
    assert result.exit_code == 0, result.stderr
    features = store.read(tmp_path / "features/tiny/mine.h5")
    assert len(features) == 6
    assert features.class_names == ()
    assert [i.split("/")[1] for i in store.read_sample_ids(features.path)] == [
        "0-1", "0-2", "1-0", "1-2", "2-0", "2-1"
    ]  # fmt: skip


def test_more_parts_than_shards(maker, pets):
    mine = maker(f"pets={pets}", 20)
    whole = joined(mine)
    counts = [len(store.read(part_path(mine.path, i), rows=False)) for i in range(1, 21)]
    assert (sum(counts), counts.count(0), len(whole)) == (20, 20 - SHARDS, 20)


@pytest.mark.slow
def test_two_at_work_on_one_part(pets, tmp_path):
    """The second waits for the first, and finds what it made."""
    line = [ZSNTTA, "extract", "--dataset", f"pets={pets}", *TINY, "--part", "1/2"]
    both = [
        subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    lines = sorted(out.decode().split(": ")[1].split(" in ")[0] for out, _ in said)
    assert lines == ["9 images", "9 images, there already\n"]


def test_a_full_disk_loses_nothing(maker, pets, monkeypatch):
    mine = maker(f"pets={pets}", 2)
    mine.make(1)
    write = store.whole_file

    def full(path):
        raise StoreError(f"cannot write {path}: No space left on device.")

    monkeypatch.setattr(store, "whole_file", full)
    with pytest.raises(StoreError, match="No space left"):
        mine.make(2)
    monkeypatch.setattr(store, "whole_file", write)
    assert sorted(p.name for p in mine.path.with_suffix(".parts").glob("*.h5")) == ["00001.h5"]
    assert mine.make(2).encoded == 0  # what was encoded before is kept beside
    mine.join()


@pytest.mark.parametrize(
    ("typed", "meant"), [("1/1", (1, 1)), ("3/64", (3, 64)), ("064/64", (64, 64))]
)
def test_parts_as_they_are_typed(typed, meant):
    assert parse_part(typed) == PartChoice(*meant)


@pytest.mark.parametrize("typed", ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/4/2", "1 / 4"])
def test_what_is_no_part(typed):
    with pytest.raises(SettingsError, match="must be like 3/64"):
        parse_part(typed)


@given(count=st.integers(0, 3000), of=st.integers(1, 70))
@settings(max_examples=50)
def test_parts_are_runs_of_all_shards(count, of):
    images = ImageSet("pets", None, np.full(count, -1, np.int32), numbered(count))
    sharded = ShardedSet(images)
    runs = [sharded.shards_of(index, of) for index in range(1, of + 1)]
    assert [i for run in runs for i in run] == list(range(len(sharded.shards)))
    assert max(map(len, runs)) - min(map(len, runs)) <= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--part", "1/2", "--parts", "2"), "leave one of them out"),
        (("--parts", "0"), "parts is 0"),
        (("--part", "1/2", "--overwrite"), "leave --overwrite out"),
        (("--part", "1/2", "--noise", "gaussian", "--dry-run"), "leave --noise, --dry-run out"),
        (("--part", "x"), "must be like 3/64"),
        (("--parts", "2", "--dataset", "glyphs"), "name one --dataset"),
    ],
)
def test_wrong_options(zsntta, options, words):
    fails(zsntta("extract", "--dataset", "shapes", *TINY, *options), words, code=2)


def test_a_set_that_was_extracted_whole_stays(zsntta, pets):
    options = ("extract", "--dataset", f"pets={pets}", *TINY)
    assert zsntta(*options, "--noise", "none").exit_code == 0
    fails(zsntta(*options, "--parts", 2), "was not made in parts")
    assert not is_joined(_pets())


def _pets():
    return Path("features/tiny/pets.h5")
