"""Sets as other tools leave them: labels that are there are used or named, nothing goes unsaid."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import pack
from PIL import Image
from web_writer import encoded, pictures

from zsntta_cli import datasets
from zsntta_cli.datasets.class_names import twins, with_class_names, without_numbers
from zsntta_cli.datasets.images import account
from zsntta_cli.errors import DatasetError

NAMES = ("cat", "dog", "owl")
PNG = encoded(pictures(1)[0], "png")


def load(path, label=""):
    return datasets.load_images(f"own={path}{f'?label={label}' if label else ''}", Path())


def place(base, *names):
    for name in names:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PNG)
    return base


def said(images):
    return " ".join([account(images), *images.notes])


TOLD = {  # how a label is written, by where it is and what has to be said to find it
    ".cls": (lambda label: str(label).encode(), ""),
    ".txt": (lambda label: NAMES[label].encode(), ""),
    ".json": (lambda label: json.dumps({"caption": "x", "label": NAMES[label]}).encode(), ""),
    ".fine.json": (lambda label: json.dumps({"width": 9, "fine_label": label}).encode(),
                   "fine_label"),
    ".species": (lambda label: NAMES[label].encode(), ".species"),
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(TOLD)), st.sampled_from([".tar", ".tar.gz", ".zip"]),
    st.sampled_from(["{:05d}", "a/{:05d}", "img.{}", "x.y.{}"]), st.booleans(), st.data(),
)  # fmt: skip
def test_labels_of_a_shard_are_used_or_named(tmp_path_factory, ending, kind, key, by_type, data):
    """However it is packed, whatever its keys: labels come, or the option that has them come."""
    labels = data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=9))
    labels[:3] = [0, 1, 2]
    write, asked = TOLD[ending]
    suffix = ending.replace(".fine", "")
    files = [(f"{key.format(i)}.png", PNG) for i in range(len(labels))]
    texts = [(f"{key.format(i)}{suffix}", write(label)) for i, label in enumerate(labels)]
    pairs = zip(files, texts, strict=True)
    every = files + texts if by_type else [file for pair in pairs for file in pair]
    path = pack(tmp_path_factory.mktemp("shard") / f"s{kind}", dict(every))
    images = load(path)
    assert len(images) == len(labels)
    if asked:
        assert images.labels.max() < 0
        assert f"--label {asked}" in said(images)
        images = load(path, asked)
    by_key = dict(zip(images.sample_ids, images.labels.tolist(), strict=True))
    assert by_key == {f"s/{key.format(i)}": label for i, label in enumerate(labels)}
    assert suffix in images.labels_from


def test_a_label_that_is_not_there_is_refused_with_what_is(tmp_path):
    told = json.dumps({"fine": 1, "breed": "x"}).encode()
    files = {f"{i}{end}": content for i in range(3)
             for end, content in ((".png", PNG), (".json", told))}  # fmt: skip
    path = pack(tmp_path / "s.tar", files)
    with pytest.raises(DatasetError, match=r"no sample of .* 'wrong': .* have 'breed', 'fine'"):
        load(path, "wrong")


def test_images_that_are_no_sample_are_counted(tmp_path):
    files = {}
    for i in range(4):
        files |= {f"{i}.jpg": PNG, f"{i}.mask.png": PNG, f"{i}.cls": b"1"}
    assert "4 further images of samples (0.mask.png, 1.mask.png, 2.mask.png, …)" in said(
        load(pack(tmp_path / "s.tar", files))
    )
    only = {f"{i}{end}": content for i in range(2)
            for end, content in ((".input.jpg", PNG), (".cls", b"1"))}  # fmt: skip
    images = load(pack(tmp_path / "t.tar", only))
    assert (images.labels.tolist(), images.left_out) == ([1, 1], "")


def test_captions_are_said_to_be_no_labels(tmp_path):
    files = {f"{i}{end}": content for i in range(4)
             for end, content in ((".png", PNG), (".txt", f"a cat no. {i}".encode()))}  # fmt: skip
    assert "captions and no classes: 4 of 4 differ" in said(load(pack(tmp_path / "s.tar", files)))


@pytest.mark.parametrize("kind", ["folder", ".tar", ".zip"])
def test_folders_with_files_beside_images_keep_their_classes(tmp_path, kind):
    files = {f"{c}/{i}{end}": content for c in NAMES for i in range(2)
             for end, content in ((".png", PNG), (".json", b'{"label": 7}'))}  # fmt: skip
    path = tmp_path / "set"
    if kind == "folder":
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    else:
        path = pack(tmp_path / f"set{kind}", files)
    images = load(path)
    assert list(images.class_names) == list(NAMES)
    assert ".json" in said(images)


def test_a_folder_of_shards_says_how_to_name_them(tmp_path):
    for i in range(3):
        pack(tmp_path / f"{i:05d}.tar", {"a.png": PNG})
    with pytest.raises(DatasetError, match=r"name them: own='?.*\{00000\.\.00002\}\.tar"):
        load(tmp_path)


@pytest.mark.parametrize(("folders", "names"), [
    (("001.Black_footed_Albatross", "002.Crow"), ("Black footed Albatross", "Crow")),
    (("00_cat", "01_dog"), ("cat", "dog")),
    (("AnnualCrop", "Forest", "SeaLake"), ("Annual Crop", "Forest", "Sea Lake")),
    (("n02085620-Chihuahua", "n02085782-Japanese_spaniel"), ("Chihuahua", "Japanese spaniel")),
    (("n01440764", "n01443537"), ("tench", "goldfish")),
    (("2_door", "4_door"), ("2_door", "4_door")),  # without the numbers they are one
    (("McDonalds", "iPhone"), ("McDonalds", "iPhone")),
    (("big_cat", "dog"), ("big_cat", "dog")),
])  # fmt: skip
def test_folders_are_read_as_words_and_it_is_said(tmp_path, folders, names):
    images = load(place(tmp_path, *(f"{folder}/1.png" for folder in folders)))
    assert list(images.class_names) == list(names)
    assert bool(images.notes) == (folders != names)
    (tmp_path / "n.txt").write_text("\n".join(f"{f} {f}" for f in folders))
    assert list(with_class_names(images, tmp_path / "n.txt").class_names) == list(folders)


@pytest.mark.parametrize("form", ["{}", "class_{}", "{}.th", "c{:03d}"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("counted", ["{name}", "{i} {name}", "{i}: {name}"])
def test_a_list_is_in_the_order_of_numbers(tmp_path, form, first, counted):
    words = [f"word{chr(97 + i)}" for i in range(12)]
    place(tmp_path, *(f"set/{form.format(first + i)}/1.png" for i in range(12)))
    lines = [counted.format(i=i + first, name=name) for i, name in enumerate(words)]
    (tmp_path / "n.txt").write_text("\n".join(lines))
    images = load(tmp_path / "set")
    assert "prompts have them as they are" in said(images)
    named = with_class_names(images, tmp_path / "n.txt")
    folders = [sample_id.partition("/")[0] for sample_id in images.sample_ids]
    of = dict(zip(folders, [named.class_names[label] for label in images.labels], strict=True))
    assert of == {form.format(first + i): word for i, word in enumerate(words)}


def test_numbers_are_part_of_names_that_they_do_not_count():
    assert without_numbers(["0 apple", "1 pear"]) == ["apple", "pear"]
    assert without_numbers(["2 pears", "1 apple"]) == ["apple", "pears"]
    for lines in (["7 up", "3 musketeers"], ["1 apple", "pear"], ["1 apple"], ["0", "1"]):
        assert without_numbers(lines) == lines


def test_classes_with_one_name_are_told_apart_by_imagenet():
    [line] = twins(["Crane", "dog", "crane"], ["n1", "n2", "n3"])
    assert line == (
        "2 classes are called 'Crane' (folders n1, n3), and no prompt tells them apart: the known "
        "set imagenet calls them 'crane bird' and 'construction crane'"
    )
    assert not list(twins(["cat", "dog"]))


def test_empty_folders_and_images_elsewhere_are_counted(tmp_path):
    place(tmp_path, "cat/1.png", "dog/1.png")
    (tmp_path / "owl").mkdir()
    assert load(tmp_path).left_out == "1 folder without images (owl)"


SUN = ("a/abbey/1.png", "a/apse/indoor/1.png", "a/apse/outdoor/1.png", "b/bar/1.png",
       "b/beach/1.png", "c/cave/1.png", "README.png")  # fmt: skip


@pytest.mark.parametrize("kind", ["", ".tar"])
@pytest.mark.parametrize(("above", "names"), [
    ("*", ["abbey", "apse", "bar", "beach", "cave"]),
    ("*/**", ["abbey", "apse indoor", "apse outdoor", "bar", "beach", "cave"]),
    ("a", ["abbey", "apse"]),
])  # fmt: skip
def test_classes_may_lie_below_letters(tmp_path, kind, above, names):
    path = place(tmp_path / "sun", *SUN)
    if kind:
        path = pack(tmp_path / "sun.tar", dict.fromkeys(SUN, PNG))
    images = load(f"{path}/{above}")
    assert list(images.class_names) == names
    assert ("elsewhere" in images.left_out) == (above != "a" or bool(kind))
    assert len(set(images.sample_ids)) == len(images)


def test_the_level_of_the_classes_is_proposed_as_a_command(tmp_path, zsntta):
    (tmp_path / "x").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    place(tmp_path / "kaggle", *(f"data/{part}/{name}/1.png" for part in ("train", "test")
                                 for name in ("Audi A4", "BMW X3", "Seat Ibiza")))  # fmt: skip
    place(tmp_path / "sun", *SUN[:-1])
    for name, typed in (("kaggle", "kaggle/data/test"), ("sun", "'sun/*'")):
        asked = ("extract", "--model", "tiny", "--noise", "none", "--dataset")
        result = zsntta(*asked, f"own={name}", "--features-dir", name)
        assert result.exit_code == 0, result.output
        assert f"--dataset own={typed}" in result.stderr
        again = zsntta(*asked, f"own={typed.strip(chr(39))}", "--features-dir", f"{name}2")
        assert again.exit_code == 0, again.output
        assert "name the folders above" not in again.stderr
