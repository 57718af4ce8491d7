"""Splits of a cached set: open-set splits of its classes, and parts of its images."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import PROMPT, TINY, fails

from zsntta_cli.cache.features import Text
from zsntta_cli.cache.hdf5 import add_texts, read_features, read_sample_ids
from zsntta_cli.cache.split import drawn_classes, drawn_images
from zsntta_cli.datasets import default_prompt, partners
from zsntta_cli.datasets.names import IMAGENET, SetName, SetParts
from zsntta_cli.errors import SettingsError


def test_the_two_halves_are_the_set(cached):
    result = cached("cache", "split", "shapes", "--id-classes", 6, "--seed", 3)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [
        "features/tiny/shapes-6-s3-id.h5", "features/tiny/shapes-6-s3-ood.h5"
    ]  # fmt: skip
    whole = read_features(Path("features/tiny/shapes.h5"))
    halves = [read_features(Path(line)) for line in result.stdout.split()]
    assert [len(half.class_names) for half in halves] == [6, 4]
    ids = [read_sample_ids(half.path) for half in halves]
    assert sorted(ids[0] + ids[1]) == sorted(read_sample_ids(whole.path))
    rows = {name: i for i, name in enumerate(read_sample_ids(whole.path))}
    for half, names in zip(halves, ids, strict=True):
        of_whole = [rows[name] for name in names]
        assert np.array_equal(half.image_features, whole.image_features[of_whole])
        assert [half.class_names[i] for i in half.labels] == [
            whole.class_names[i] for i in whole.labels[of_whole]
        ]
    [(template, text)] = halves[0].text_features.items()
    kept = [whole.class_names.index(name) for name in halves[0].class_names]
    assert np.array_equal(text, whole.text_features[template][kept])
    assert halves[1].text_features == {}
    assert cached("cache", "verify").exit_code == 0
    assert cached("cache", "split", "shapes", "--id-classes", 6, "--seed", 3).exit_code == 0


def test_a_split_is_an_id_set_with_its_partner(cached):
    cached("cache", "split", "shapes", "--id-classes", 7, "--name", "near")
    result = cached("simulate", "--method", "adand", "--id", "near-id", "--ratio", 0.25,
                    "--format", "json", *TINY)  # fmt: skip
    [record] = json.loads(result.stdout)
    assert record["settings"]["ood_set"] == "near-ood"
    half = read_features(Path("features/tiny/near-id.h5"))
    assert record["counts"]["id"] == len(half) < 300
    live = cached("simulate", "--method", "tent", "--id", "near-id", "--limit", 30, *TINY)
    assert live.exit_code == 0, live.stderr


def test_a_list_of_classes(cached, tmp_path):
    known = read_features(Path("features/tiny/shapes.h5")).class_names
    (tmp_path / "mine.txt").write_text("\n".join(known[2:4]))
    result = cached("cache", "split", "shapes", "--id-classes", "mine.txt")
    assert result.exit_code == 0, result.stderr
    assert read_features(Path("features/tiny/shapes-mine-id.h5")).class_names == known[2:4]
    (tmp_path / "mine.txt").write_text("unheard of\n")
    other = cached("cache", "split", "shapes", "--id-classes", "mine.txt", "--name", "x")
    assert (other.exit_code, "'unheard of' is no class" in other.stderr) == (2, True)


@pytest.mark.parametrize("count", [0, 10, 11])
def test_some_classes_not_all(cached, count):
    result = cached("cache", "split", "shapes", "--id-classes", count)
    assert result.exit_code == 2
    assert f"id-classes is {count}, must be in [1, 9]" in result.stderr


def test_another_split_of_that_name_is_kept(cached):
    assert cached("cache", "split", "shapes", "--id-classes", 6, "--name", "n").exit_code == 0
    other = cached("cache", "split", "shapes", "--id-classes", 5, "--name", "n")
    assert other.exit_code == 1
    assert "holds another split or set: name this one otherwise with --name" in other.stderr


def test_what_has_no_labels_cannot_be_split(cached):
    result = cached("cache", "split", "noise-gaussian", "--id-classes", 2)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.stderr


@given(st.integers(2, 60), st.data(), st.integers(0, 9))
def test_drawn_classes_are_distinct_and_follow_the_seed(total, data, seed):
    count = data.draw(st.integers(1, total - 1))
    drawn = drawn_classes(total, count, seed)
    assert drawn == sorted(set(drawn)) == drawn_classes(total, count, seed)
    assert len(drawn) == count
    assert set(drawn) <= set(range(total))
    with pytest.raises(SettingsError):
        drawn_classes(total, total, seed)


def test_two_parts_of_the_images_are_the_set(cached):
    result = cached("cache", "split", "shapes", "--images", "20%")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [
        "features/tiny/shapes-tune.h5", "features/tiny/shapes-rest.h5"
    ]  # fmt: skip
    whole = read_features(Path("features/tiny/shapes.h5"))
    parts = [read_features(Path(line)) for line in result.stdout.split()]
    assert [len(part) for part in parts] == [60, 240]
    ids = [read_sample_ids(part.path) for part in parts]
    assert not set(ids[0]) & set(ids[1])
    assert set(ids[0]) | set(ids[1]) == set(read_sample_ids(whole.path))
    rows = {name: i for i, name in enumerate(read_sample_ids(whole.path))}
    for part, names in zip(parts, ids, strict=True):
        of_whole = [rows[name] for name in names]
        assert of_whole == sorted(of_whole)
        assert np.array_equal(part.image_features, whole.image_features[of_whole])
        assert np.array_equal(part.labels, whole.labels[of_whole])
        assert part.class_names == whole.class_names
        [(template, text)] = part.text_features.items()
        assert np.array_equal(text, whole.text_features[template])
        assert part.digest != whole.digest
    sizes = np.bincount(whole.labels)
    assert (abs(np.bincount(parts[0].labels) - 0.2 * sizes) < 1).all()
    assert [part.source["split"] for part in parts] == [
        {"of": "shapes", "part": part, "images": "20%", "seed": 0, "digest": whole.digest}
        for part in ("tune", "rest")
    ]
    assert cached("cache", "verify").exit_code == 0


def test_parts_are_drawn_by_the_seed_and_written_once(cached):
    first = cached("cache", "split", "glyphs", "--images", "12.5%")
    parts = [Path(line) for line in first.stdout.split()]
    written = [(part.stat().st_ino, part.stat().st_mtime_ns) for part in parts]
    assert cached("cache", "split", "glyphs", "--images", "12.5%").stdout == first.stdout
    assert [(part.stat().st_ino, part.stat().st_mtime_ns) for part in parts] == written
    other = cached("cache", "split", "glyphs", "--images", "12.5%", "--seed", 1)
    assert other.stdout.split() == [
        "features/tiny/glyphs-tune-s1.h5", "features/tiny/glyphs-rest-s1.h5"
    ]  # fmt: skip
    ids = [read_sample_ids(Path(r.stdout.split()[0])) for r in (first, other)]
    assert len(ids[0]) == len(ids[1]) != len(set(ids[0]) & set(ids[1]))


def test_another_share_under_the_names_of_parts_is_refused(cached):
    assert cached("cache", "split", "shapes", "--images", "20%").exit_code == 0
    fails(
        cached("cache", "split", "shapes", "--images", "30%"),
        "shapes-tune.h5 holds another split or set: draw the images by another --seed",
    )


def test_parts_get_the_texts_that_the_set_has_got_since(cached):
    cached("cache", "split", "shapes", "--images", "20%")
    whole = read_features(Path("features/tiny/shapes.h5"))
    [text] = whole.text_features.values()
    add_texts(whole.path, [Text("a drawing of a {}.", text)])
    result = cached("cache", "split", "shapes", "--images", "20%")
    for line in result.stdout.split():
        assert set(read_features(Path(line)).text_features) == {PROMPT, "a drawing of a {}."}


def test_a_part_has_the_defaults_of_its_set(cached):
    for name in ("shapes", "glyphs"):
        cached("cache", "split", name, "--images", "40%")
    result = cached("simulate", "--method", "adand", "--id", "shapes-tune", "--ratio", 0.25,
                    "--format", "json", *TINY)  # fmt: skip
    [record] = json.loads(result.stdout)
    assert record["settings"]["ood_set"] == "glyphs-tune"
    assert record["counts"]["id"] == 120
    live = cached("simulate", "--method", "tent", "--id", "shapes-tune", "--limit", 30, *TINY)
    assert live.exit_code == 0, live.stderr
    assert default_prompt("cifar10-tune") == default_prompt("cifar10")
    assert partners("cifar10-rest-s2")[0] == "svhn-rest-s2"
    assert partners("mine-tune") == ()
    for name in ("imagenet-r-tune", "imagenet-rest-s1"):
        assert SetName.parse(name).family == IMAGENET
    assert SetName.parse("imagenet-r-tune=here").family == ""


@pytest.mark.parametrize("share", ["20", "0%", "100%", "-5%", "1e1%", "nan%", "twenty%", ""])
def test_what_is_no_share_is_refused(cached, share):
    fails(
        cached("cache", "split", "shapes", f"--images={share}"),
        f"images is '{share}', must be a share such as 20%", code=2,
    )  # fmt: skip


def test_a_split_is_of_classes_or_of_images(cached):
    fails(cached("cache", "split", "shapes"), "--id-classes N, or --images 20%", code=2)
    both = cached("cache", "split", "shapes", "--images", "20%", "--id-classes", 3)
    fails(both, "--id-classes N, or --images 20%", code=2)
    named = cached("cache", "split", "shapes", "--images", "20%", "--name", "mine")
    fails(named, "parts of the images are shapes-tune and shapes-rest", code=2)
    fails(cached("cache", "split", "noise-gaussian", "--images", "20%"), "no data set")
    fails(
        cached("cache", "split", "shapes", "--images", "0.1%"),
        "images is 0.1%, of 300 images: both parts need some", code=2,
    )  # fmt: skip


def test_a_part_that_is_not_there_is_made_by_a_split(cached):
    result = cached("simulate", "--method", "zs-clip", "--id", "shapes-tune-s3", "--ratio", 0,
                    *TINY)  # fmt: skip
    fails(result, "type zsntta cache split shapes --images 20% --seed 3")


def test_texts_that_a_part_lacks_are_made_for_its_set(cached):
    cached("cache", "split", "shapes", "--images", "20%")
    prompt = ("--prompt", "a drawing of a {}.")
    result = cached("simulate", "--method", "zs-clip", "--id", "shapes-tune", "--ratio", 0, *prompt,
                    *TINY)  # fmt: skip
    fails(
        result,
        "type zsntta extract --dataset shapes --model tiny --prompt 'a drawing of a {}.' --limit "
        "300, and split shapes as before",
    )
    made = cached("extract", "--dataset", "shapes", "--limit", 300, "--no-partners", *prompt, *TINY)
    assert made.exit_code == 0, made.stderr
    assert cached("cache", "split", "shapes", "--images", "20%").exit_code == 0
    again = cached("simulate", "--method", "zs-clip", "--id", "shapes-tune", "--ratio", 0, *prompt,
                   *TINY)  # fmt: skip
    assert again.exit_code == 0, again.stderr


@given(
    st.lists(st.integers(-1, 4), min_size=2, max_size=80),
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    st.integers(0, 9),
)
def test_drawn_images_are_the_share_of_each_class(labels, share, seed):
    labels = np.array(labels, np.int32)
    count = math.floor(share * len(labels) + Fraction(1, 2))
    if not 0 < count < len(labels):
        with pytest.raises(SettingsError, match="both parts need some"):
            drawn_images(labels, share, seed)
        return
    drawn = drawn_images(labels, share, seed)
    assert drawn.sum() == count
    assert np.array_equal(drawn, drawn_images(labels, share, seed))
    for label in set(labels.tolist()):
        of_class = labels == label
        assert abs(int(drawn[of_class].sum()) - share * int(of_class.sum())) < 1


@pytest.mark.parametrize(
    ("one", "other", "shares"),
    [
        ("cifar10", "cifar10", True),
        ("cifar10", "svhn", False),
        ("cifar10", "cifar10-tune", True),
        ("cifar10-tune", "cifar10-tune", True),
        ("cifar10-tune", "cifar10-rest", False),
        ("cifar10-tune", "svhn-rest", False),
        ("cifar10-tune-s1", "cifar10-rest-s1", False),
        ("cifar10-tune", "cifar10-rest-s1", True),  # drawn by two seeds
        ("cifar10-rest-tune", "cifar10-tune", False),
        ("cifar10-rest-tune", "cifar10-rest-rest", False),
        ("cifar10-rest-tune", "cifar10-rest", True),
        ("cifar10-c:fog:1-tune", "cifar10-c:fog:1-rest", False),
    ],
)
def test_names_say_which_sets_share_images(one, other, shares):
    sets = SetParts.parse(one), SetParts.parse(other)
    assert sets[0].shares_images(sets[1]) == sets[1].shares_images(sets[0]) == shares
